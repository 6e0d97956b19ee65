-- What administrators changed. Entries are added, and deleted when they are old; nothing
-- changes one. before and after are JSON, or empty. Times as in job.
create table audit (
  account    text    not null,
  id         text    not null,
  at         integer not null,
  by         text    not null,
  action     text    not null,
  subject    text    not null,
  before     text    not null,
  after      text    not null,
  request_id text    not null,
  primary key (account, id)
) strict, without rowid;

create index audit_by_time on audit (at);

create trigger audit_stays before update on audit begin
  select raise(abort, 'entries of the audit log do not change');
end;
