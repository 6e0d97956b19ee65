-- Responses kept for an hour. ends counts the bytes of the account's responses up to and including this one.
create table response (
  account text    not null,
  id      text    not null,
  content blob    not null,
  ends    integer not null,
  kept_at integer not null,
  primary key (account, id)
) strict;

create index response_by_end on response (account, ends);
create index response_by_age on response (kept_at);
