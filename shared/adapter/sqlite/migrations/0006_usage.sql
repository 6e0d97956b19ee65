-- What accounts have used, by day (2006-01-02, UTC), model and key.
create table usage (
  account           text    not null,
  day               text    not null,
  model             text    not null,
  key               text    not null,
  requests          integer not null,
  prompt_tokens     integer not null,
  cached_tokens     integer not null,
  completion_tokens integer not null,
  reasoning_tokens  integer not null,
  estimated         integer not null,
  session_seconds   integer not null,
  primary key (account, day, model, key)
) strict, without rowid;

-- The records that were added lately, so that one that is added again does not
-- count twice. Times as in job.
create table usage_record (
  id       text    primary key,
  added_at integer not null
) strict, without rowid;

create index usage_record_by_time on usage_record (added_at);
