-- What a file was uploaded for at the inference address, empty for all others.
alter table file add column purpose text not null default '';

-- Batches of inference calls. Record holds what no query asks for, as JSON; times as
-- in job.
create table batch (
  id         text    primary key,
  account    text    not null,
  status     text    not null,
  answered   integer not null,
  failed     integer not null,
  expires_at integer not null,
  ended_at   integer,
  -- 1 until the blobs of the batch have been deleted.
  kept       integer not null,
  record     text    not null
) strict, without rowid;

create index batch_by_account on batch (account, id);
create index batch_open on batch (id) where ended_at is null;
create index batch_kept on batch (ended_at) where ended_at is not null and kept = 1;
create index batch_cleared on batch (ended_at) where kept = 0;

-- The results of some lines, which a blob holds. Lines is an array of their numbers.
create table batch_chunk (
  batch    text    not null references batch (id) on delete cascade,
  number   integer not null,
  blob     text    not null,
  failures integer not null,
  lines    text    not null,
  primary key (batch, number)
) strict, without rowid;
