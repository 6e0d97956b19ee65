-- Uploads under way. What they bring is reserved in their account's storage as it
-- comes; times as in job. A reservation outlives no start of the server.
create table reservation (
  id      text    primary key,
  account text    not null,
  bytes   integer not null,
  until   integer not null
) strict, without rowid;

create index reservation_by_account on reservation (account, until);

create trigger reservation_takes_storage after insert on reservation begin
  insert into storage (account, bytes) values (new.account, new.bytes)
    on conflict (account) do update set bytes = bytes + excluded.bytes;
end;

create trigger reservation_grows after update of bytes on reservation begin
  update storage set bytes = bytes + new.bytes - old.bytes where account = new.account;
end;

create trigger reservation_gives_storage_back after delete on reservation begin
  update storage set bytes = bytes - old.bytes where account = old.account;
end;

-- A promised file counts a part of its size until its bytes are there, and is then
-- held to the limit that its account had. Those promised before count their size.
alter table file add column promise_bytes integer not null default 0;
alter table file add column promise_limit integer not null default 0;
alter table file add column counts integer not null generated always as (
  case when state = 'ended' then 0 when state = 'promised' and promise_bytes > 0 then promise_bytes else size end) virtual;

create index file_promised on file (account) where state = 'promised';

drop trigger file_takes_storage;
drop trigger file_gives_storage_back_at_its_end;
drop trigger file_gives_storage_back;

create trigger file_takes_storage after insert on file begin
  insert into storage (account, bytes) values (new.account, new.counts)
    on conflict (account) do update set bytes = bytes + excluded.bytes;
end;

create trigger file_changes_storage after update of state on file when old.counts <> new.counts begin
  update storage set bytes = bytes + new.counts - old.counts where account = old.account;
end;

create trigger file_gives_storage_back after delete on file begin
  update storage set bytes = bytes - old.counts where account = old.account;
end;
