-- The schema of release 0.1.0. Times are milliseconds since 1970-01-01T00:00:00Z unless a
-- comment says otherwise. The order of columns is that of databases which 0.1.0 wrote.

-- A job is open while completed_at is null. The partial indexes contain open jobs only, so
-- they stay small however many jobs have ended.
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
  -- The URL that receives a message when the job ends; empty for none.
  webhook      text    not null default '',
  trace        text    not null default '',
  -- How often the server crashed while the job ran.
  crashes      integer not null default 0,
  -- How long the engine is expected to work, in milliseconds; 0 if unknown.
  estimate     integer not null default 0,
  -- What the job has taken from budgets, as JSON; null for nothing.
  holds        text,
  check ((completed_at is null) = (status in ('pending', 'processing'))),
  check ((result is not null) = (status = 'completed')),
  check ((failure is not null) = (status = 'failed'))
) strict, without rowid;

create index job_open_by_lane on job (lane, account) where completed_at is null;
create index job_open_by_account on job (account) where completed_at is null;
create index job_open_by_deadline on job (deadline) where completed_at is null;
create index job_completed_by_lane on job (lane, completed_at, started_at) where status = 'completed';
-- For lists of an account's jobs. It contains only columns that never change.
create index job_by_account on job (account, id);

-- What a job was asked to do, as JSON. It can be large and never changes, so it is not part
-- of the row that every report of progress rewrites.
create table job_request (
  job  text primary key references job (id) on delete cascade,
  body text not null
) strict, without rowid;

-- The unchanged schema of goqite v0.4.0. A queue is a lane and an account, such as
-- "video/acme"; a message's body is the id of a job.
-- The table, its trigger and its index are under this licence:
--
-- MIT License
--
-- Copyright (c) Maragu ApS
--
-- Permission is hereby granted, free of charge, to any person obtaining a copy
-- of this software and associated documentation files (the "Software"), to deal
-- in the Software without restriction, including without limitation the rights
-- to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
-- copies of the Software, and to permit persons to whom the Software is
-- furnished to do so, subject to the following conditions:
--
-- The above copyright notice and this permission notice shall be included in all
-- copies or substantial portions of the Software.
--
-- THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
-- IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
-- FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
-- AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
-- LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
-- OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
-- SOFTWARE.
create table goqite (
  id text primary key default ('m_' || lower(hex(randomblob(16)))),
  created text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
  updated text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
  queue text not null,
  body blob not null,
  timeout text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
  received integer not null default 0,
  priority integer not null default 0
) strict;

create trigger goqite_updated_timestamp after update on goqite begin
  update goqite set updated = strftime('%Y-%m-%dT%H:%M:%fZ') where id = old.id;
end;

create index goqite_queue_priority_created_idx on goqite (queue, priority desc, created);

-- Who holds a message. Without a row a message that is not visible waits out a delay. The
-- receipt is the message's count of receives, so an earlier holder has another one. A row
-- whose message is visible again is an expired lease.
create table lease (
  message text    primary key references goqite (id) on delete cascade,
  queue   text    not null,
  receipt integer not null
) strict, without rowid;

create index lease_by_queue on lease (queue);

-- When each queue was served last, as a count of receives.
create table served (
  queue text    primary key,
  turn  integer not null
) strict, without rowid;

create index served_by_turn on served (turn);

-- Permanent keys by the SHA-256 of the secret.
create table api_key (
  hash       blob    primary key,
  id         text    not null unique,
  account    text    not null,
  tier       text    not null,
  label      text    not null,
  created_at integer not null,
  revoked_at integer,
  -- 1 if the key may make and revoke keys of its account.
  admin      integer not null default 0,
  -- Null if the key does not expire.
  expires_at integer,
  -- The models and routes that the key may use, as JSON.
  limits     text    not null default '{}'
) strict, without rowid;

create index api_key_by_account on api_key (account, created_at);

-- Client tokens by the SHA-256 of the secret, each with the key that it was minted from. The
-- scope and the metadata are JSON.
create table client_token (
  hash       blob    primary key,
  key_hash   blob    not null,
  scope      text    not null,
  metadata   text    not null,
  created_at integer not null,
  expires_at integer not null,
  -- The Ed25519 public key that verifies the token's JWT; null for a token without one.
  verifier   blob
) strict, without rowid;

create index client_token_by_expiry on client_token (expires_at);

-- Stored files. A file is promised until its bytes have arrived at a signed URL, then stored.
-- It is ended once a sweep has found it expired: its bytes wait for deletion, and no index
-- that a request reads contains it.
create table file (
  id            text    not null unique,
  account       text    not null,
  key           text    not null,
  filename      text    not null,
  mime          text    not null,
  size          integer not null,
  md5           text    not null,
  blob          text    not null unique,
  state         text    not null check (state in ('promised', 'stored', 'ended')),
  created_at    integer not null,
  expires_at    integer,
  -- In milliseconds.
  lifetime      integer not null,
  upload_until  integer,
  ends_at       integer generated always as (case state when 'promised' then upload_until else expires_at end) virtual,
  -- A promised file counts promise_bytes of its size until its bytes have arrived. Then it is
  -- compared with the limit that its account had, promise_limit.
  promise_bytes integer not null default 0,
  promise_limit integer not null default 0,
  counts        integer not null generated always as (
    case when state = 'ended' then 0 when state = 'promised' and promise_bytes > 0 then promise_bytes else size end
  ) virtual,
  -- What the file was uploaded for at the inference address; empty for all other files.
  purpose       text    not null default '',
  check (state <> 'promised' or upload_until is not null)
) strict;

-- Lists skip expired rows that no sweep has found yet without reading them, because the
-- expiry is in these indexes.
create index file_stored on file (account, id, expires_at) where state = 'stored';
create index file_stored_by_md5 on file (account, md5, id, expires_at) where state = 'stored';
create index file_by_end on file (account, ends_at) where state <> 'ended';
create index file_ended on file (id) where state = 'ended';
create index file_promised on file (account) where state = 'promised';

-- Uploads in progress. Their bytes are reserved in the account's storage as they arrive. The
-- start of a server deletes all reservations.
create table reservation (
  id      text    primary key,
  account text    not null,
  bytes   integer not null,
  until   integer not null
) strict, without rowid;

create index reservation_by_account on reservation (account, until);

-- How many bytes the files and reservations of an account count. The triggers maintain it; a
-- sum over a million rows would delay every upload.
create table storage (
  account text    primary key,
  bytes   integer not null
) strict, without rowid;

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

-- Usage per account, day (2006-01-02, UTC), model and key.
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
  -- Accepted jobs.
  jobs              integer not null default 0,
  -- In billionths of the catalog's currency.
  cost              integer not null default 0,
  -- Accepted jobs that ended with a result.
  jobs_completed    integer not null default 0,
  -- The part of requests and of cost that batches made.
  batch_requests    integer not null default 0,
  batch_cost        integer not null default 0,
  primary key (account, day, model, key)
) strict, without rowid;

-- Recently added usage records, so that a repeated record does not count twice.
create table usage_record (
  id       text    primary key,
  added_at integer not null
) strict, without rowid;

create index usage_record_by_time on usage_record (added_at);

-- Leases of instances that serve realtime sessions. A row remains for a while after its epoch
-- has died, so that the epoch is not used again.
create table session_lease (
  epoch      text    primary key,
  -- The start of the machine that renewed_at counts from, in milliseconds.
  boot       text    not null,
  renewed_at integer not null,
  dead       integer not null default 0,
  -- Where other instances reach this one; empty if they cannot.
  address    text    not null default ''
) strict, without rowid;

-- Open sessions: a slot has a row while it is taken.
create table session_slot (
  account text not null,
  id      text not null,
  epoch   text not null references session_lease on delete cascade,
  primary key (account, id)
) strict, without rowid;

create index session_slot_epoch on session_slot (epoch);

-- Clients that wait for a slot of an account, in the order of their numbers.
create table session_ticket (
  account text    not null,
  id      text    not null,
  epoch   text    not null references session_lease on delete cascade,
  number  integer not null,
  -- When the instance renewed the ticket, counted like renewed_at of its lease.
  seen_at integer not null,
  primary key (account, id)
) strict, without rowid;

create index session_ticket_epoch on session_ticket (epoch);

-- The last number drawn for an account. It only grows, so that a ticket that comes back keeps
-- its place.
create table session_line (
  account text    primary key,
  number  integer not null
) strict, without rowid;

-- Claims of idempotency keys. settled is 1 once the resource exists.
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

-- The identity of this database and the count of its durable transactions, which together
-- distinguish it from other databases and from its own earlier copies. It has one row.
create table mark (
  database text    not null,
  writes   integer not null
) strict;

insert into mark (database, writes) values (lower(hex(randomblob(16))), 0);

-- How long edits take, as the engine last reported it. It has at most one row.
create table estimates (
  only integer primary key check (only = 1),
  body text    not null
) strict;

-- Batches of inference calls. record is JSON with all that no query asks for.
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

-- A blob with the results of some requests. lines is a JSON array of their line numbers.
create table batch_chunk (
  batch    text    not null references batch (id) on delete cascade,
  number   integer not null,
  blob     text    not null,
  failures integer not null,
  lines    text    not null,
  primary key (batch, number)
) strict, without rowid;

-- How much of a unit an account (key '') or a key may use in each day or month. warn_url
-- receives warnings; empty for none.
create table budget (
  account  text    not null,
  key      text    not null,
  period   text    not null,
  unit     text    not null,
  max_used integer not null,
  warn_url text    not null default '',
  primary key (account, key, period, unit)
) strict, without rowid;

-- used is what was settled and is reserved in one window of a budget. warned is the highest
-- percentage that a warning was due for.
create table budget_counter (
  account text    not null,
  key     text    not null,
  period  text    not null,
  unit    text    not null,
  term    text    not null,
  used    integer not null,
  warned  integer not null default 0,
  primary key (account, key, period, unit, term)
) without rowid;

-- Amounts that processes have taken from counters, all of which are part of used. boot is the
-- start of the machine that renewed_at counts from, in milliseconds.
create table budget_lease (
  id         text    primary key,
  account    text    not null,
  key        text    not null,
  period     text    not null,
  unit       text    not null,
  term       text    not null,
  share      integer not null,
  spent      integer not null,
  flight     integer not null,
  boot       text    not null,
  renewed_at integer not null
) without rowid;

create index budget_lease_by_counter on budget_lease (account, key, period, unit, term);

-- Warnings for a receiver, with the state of the budget when they were recorded.
create table budget_warning (
  id       text    primary key,
  account  text    not null,
  key      text    not null,
  period   text    not null,
  unit     text    not null,
  term     text    not null,
  percent  integer not null,
  max_used integer not null,
  used     integer not null,
  url      text    not null,
  at       integer not null
) strict, without rowid;

create index budget_warning_by_counter on budget_warning (account, key, period, unit, term);

-- Messages about ended jobs and about warnings. A row is deleted with its job or warning.
create table webhook (
  -- The id of the job or of the warning.
  id      text    primary key,
  job     text    references job on delete cascade,
  warning text    references budget_warning on delete cascade,
  account text    not null,
  -- When the next attempt is due; null if no attempt follows.
  due     integer
) strict, without rowid;

create index webhook_due on webhook (due) where due is not null;
create index webhook_by_job on webhook (job);
create index webhook_by_warning on webhook (warning);

-- Attempts to deliver a message, numbered from 1.
create table webhook_attempt (
  id       text    not null references webhook on delete cascade,
  number   integer not null,
  at       integer not null,
  duration integer not null,
  -- 0 if there was no answer.
  status   integer not null,
  -- Empty if the message was delivered.
  error    text    not null,
  -- Null if no attempt follows.
  next     integer,
  primary key (id, number)
) strict, without rowid;

-- What administrators changed. Entries are added, and deleted when they are old. before and
-- after are JSON, or empty.
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
