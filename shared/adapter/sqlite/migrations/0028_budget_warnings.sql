-- Budgets with who is told of warnings, empty for nobody. The table is made anew, because for
-- a few days before a release it had such a column already.
create table new_budget (
    account  text not null,
    key      text not null,
    period   text not null,
    unit     text not null,
    max_used integer not null,
    warn_url text not null default '',
    primary key (account, key, period, unit)
) strict, without rowid;

insert into new_budget (account, key, period, unit, max_used) select account, key, period, unit, max_used from budget;
drop table budget;
alter table new_budget rename to budget;

-- Warnings that a receiver is told of, with what the budget was when they were noted. at is
-- in milliseconds.
create table budget_warning (
    id       text primary key,
    account  text not null,
    key      text not null,
    period   text not null,
    unit     text not null,
    term     text not null,
    percent  integer not null,
    max_used integer not null,
    used     integer not null,
    url      text not null,
    at       integer not null
) strict, without rowid;

create index budget_warning_by_counter on budget_warning (account, key, period, unit, term);

-- Webhooks tell of ended jobs and of warnings: a row goes with what it tells of.
create table new_webhook (
    -- That of the job or of the warning.
    id      text primary key,
    job     text references job on delete cascade,
    warning text references budget_warning on delete cascade,
    account text not null,
    -- When the next attempt is due, in milliseconds; null once none is.
    due     integer
) strict, without rowid;

insert into new_webhook (id, job, account, due) select job, job, account, due from webhook;

-- The attempts that were made, numbered from 1. Times are in milliseconds.
create table new_webhook_attempt (
    id       text not null references new_webhook on delete cascade,
    number   integer not null,
    at       integer not null,
    duration integer not null,
    -- 0 where there was no answer.
    status   integer not null,
    -- Empty where the message was delivered.
    error    text not null,
    -- Null where no attempt follows.
    next     integer,
    primary key (id, number)
) strict, without rowid;

insert into new_webhook_attempt (id, number, at, duration, status, error, next)
    select job, number, at, duration, status, error, next from webhook_attempt;

drop table webhook_attempt;
drop table webhook;
alter table new_webhook rename to webhook;
alter table new_webhook_attempt rename to webhook_attempt;

create index webhook_due on webhook (due) where due is not null;
create index webhook_by_job on webhook (job);
create index webhook_by_warning on webhook (warning);
