-- Leases of instances that serve realtime sessions. A row stays for a while
-- once its epoch is dead, so that the epoch does not come back.
create table session_lease (
    epoch      text primary key,
    -- The start of the machine that renewed_at, in milliseconds, counts from.
    boot       text not null,
    renewed_at integer not null,
    dead       integer not null default 0
) strict, without rowid;

-- Open sessions: a slot is there while it is taken.
create table session_slot (
    account text not null,
    id      text not null,
    epoch   text not null references session_lease on delete cascade,
    primary key (account, id)
) strict, without rowid;

create index session_slot_epoch on session_slot (epoch);
