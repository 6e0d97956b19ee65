-- Claims of idempotency keys. Times as in job; settled says that the resource was
-- made.
create table idempotency (
  account     text    not null,
  key         text    not null,
  fingerprint text    not null,
  resource    text    not null,
  settled     integer not null default 0,
  answer      blob,
  claimed_at  integer not null,
  primary key (account, key)
) strict, without rowid;

create index idempotency_by_age on idempotency (claimed_at);
