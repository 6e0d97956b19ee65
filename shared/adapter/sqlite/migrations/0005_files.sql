-- Stored files. Times as in job; the lifetime is in milliseconds.
--
-- A file is promised until its bytes have come by a signed URL, then stored, and
-- ended once a sweep has found its time over: it waits for its bytes to be
-- deleted, and no index that a request reads holds it any more.
create table file (
  id           text    not null unique,
  account      text    not null,
  key          text    not null,
  filename     text    not null,
  mime         text    not null,
  size         integer not null,
  md5          text    not null,
  blob         text    not null unique,
  state        text    not null check (state in ('promised', 'stored', 'ended')),
  created_at   integer not null,
  expires_at   integer,
  lifetime     integer not null,
  upload_until integer,
  ends_at      integer generated always as (case state when 'promised' then upload_until else expires_at end) virtual,
  check (state <> 'promised' or upload_until is not null)
) strict;

-- The expiry is in the indexes that are walked, so that a row that has expired
-- and was not swept yet is passed over without being read.
create index file_stored on file (account, id, expires_at) where state = 'stored';
create index file_stored_by_md5 on file (account, md5, id, expires_at) where state = 'stored';
create index file_by_end on file (account, ends_at) where state <> 'ended';
create index file_ended on file (id) where state = 'ended';

-- How many bytes the files of an account hold that are promised or stored. The
-- triggers keep it true whoever writes; a sum over a million rows would make
-- every upload wait.
create table storage (
  account text    primary key,
  bytes   integer not null
) strict, without rowid;

create trigger file_takes_storage after insert on file when new.state <> 'ended' begin
  insert into storage (account, bytes) values (new.account, new.size)
    on conflict (account) do update set bytes = bytes + excluded.bytes;
end;

create trigger file_gives_storage_back_at_its_end after update of state on file
when old.state <> 'ended' and new.state = 'ended' begin
  update storage set bytes = bytes - old.size where account = old.account;
end;

create trigger file_gives_storage_back after delete on file when old.state <> 'ended' begin
  update storage set bytes = bytes - old.size where account = old.account;
end;
