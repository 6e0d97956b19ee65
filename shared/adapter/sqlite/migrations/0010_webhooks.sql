-- Jobs whose end a receiver is told of: a row comes with the end of the job, in
-- the same transaction, and goes with the job.
create table webhook (
    job     text primary key references job on delete cascade,
    account text not null,
    -- When the next attempt is due, in milliseconds; null once none is.
    due     integer
) strict, without rowid;

create index webhook_due on webhook (due) where due is not null;

-- The attempts that were made, numbered from 1. Times are in milliseconds.
create table webhook_attempt (
    job      text not null references webhook on delete cascade,
    number   integer not null,
    at       integer not null,
    duration integer not null,
    -- 0 where there was no answer.
    status   integer not null,
    -- Empty where the message was delivered.
    error    text not null,
    -- Null where no attempt follows.
    next     integer,
    primary key (job, number)
) strict, without rowid;
