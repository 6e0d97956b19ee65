-- Times are milliseconds since 1970-01-01T00:00:00Z. A job has not ended while
-- its completed_at is null; the partial indexes hold only what their readers
-- look for, so that they stay small however many jobs have ended.
create table job (
  id           text    primary key,
  account      text    not null,
  key          text    not null,
  model        text    not null,
  lane         text    not null,
  seed         integer not null,
  status       text    not null check (status in ('pending', 'processing', 'completed', 'failed')),
  progress     real    not null default 0,
  runs         integer not null default 0,
  nonce        text    not null default '',
  created_at   integer not null,
  deadline     integer not null,
  started_at   integer,
  completed_at integer,
  result       text,
  failure      text,
  message      text    not null,
  check ((completed_at is null) = (status in ('pending', 'processing'))),
  check ((result is not null) = (status = 'completed')),
  check ((failure is not null) = (status = 'failed'))
) strict, without rowid;

create index job_open_by_lane on job (lane, account) where completed_at is null;
create index job_open_by_account on job (account) where completed_at is null;
create index job_open_by_deadline on job (deadline) where completed_at is null;
create index job_completed_by_lane on job (lane, completed_at, started_at) where status = 'completed';

-- What a job was asked to do, as JSON. It can be large and never changes, so it
-- stands apart from the row that every report of progress rewrites.
create table job_request (
  job  text primary key references job (id) on delete cascade,
  body text not null
) strict, without rowid;
