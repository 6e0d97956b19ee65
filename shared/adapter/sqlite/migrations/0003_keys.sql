-- Permanent keys by the SHA-256 of the secret. Times as in job.
create table api_key (
  hash       blob    primary key,
  id         text    not null unique,
  account    text    not null,
  tier       text    not null,
  label      text    not null,
  created_at integer not null,
  revoked_at integer
) strict, without rowid;

create index api_key_by_account on api_key (account, created_at);
