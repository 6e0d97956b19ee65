-- What accounts (key '') and keys may use up of a unit in each day or month.
create table budget (
    account text not null,
    key text not null,
    period text not null,
    unit text not null,
    max_used integer not null,
    primary key (account, key, period, unit)
) without rowid;

-- used is what was settled and is reserved in one window of a budget, and warned the
-- highest percentage that a warning was due for.
create table budget_counter (
    account text not null,
    key text not null,
    period text not null,
    unit text not null,
    term text not null,
    used integer not null,
    warned integer not null default 0,
    primary key (account, key, period, unit, term)
) without rowid;

-- Shares of counters that processes have taken, all of which are part of used. boot is the
-- start of the machine that renewed_at, in milliseconds, counts from.
create table budget_lease (
    id text primary key,
    account text not null,
    key text not null,
    period text not null,
    unit text not null,
    term text not null,
    share integer not null,
    spent integer not null,
    flight integer not null,
    boot text not null,
    renewed_at integer not null
) without rowid;
create index budget_lease_by_counter on budget_lease (account, key, period, unit, term);
