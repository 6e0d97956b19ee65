-- Client tokens by the SHA-256 of the secret, each with the key that it was
-- minted from. The scope and the metadata are JSON. Times as in job.
create table client_token (
  hash       blob    primary key,
  key_hash   blob    not null,
  scope      text    not null,
  metadata   text    not null,
  created_at integer not null,
  expires_at integer not null
) strict, without rowid;

create index client_token_by_expiry on client_token (expires_at);
