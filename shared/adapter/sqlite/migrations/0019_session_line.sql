-- Who waits for a slot of an account, in the order of the numbers.
create table session_ticket (
    account text not null,
    id      text not null,
    epoch   text not null references session_lease on delete cascade,
    number  integer not null,
    -- When the instance last said that it is here, as renewed_at of its lease.
    seen_at integer not null,
    primary key (account, id)
) strict, without rowid;

create index session_ticket_epoch on session_ticket (epoch);

-- The last number that was drawn in the line of an account. It only grows, so that
-- a ticket that comes back finds its place.
create table session_line (
    account text primary key,
    number  integer not null
) strict, without rowid;
