-- How long the engine was expected to work on the job, in milliseconds; 0 if nobody knew.
alter table job add column estimate integer not null default 0;

-- How long edits take, as the engine told last: at most one row.
create table estimates (
    only integer primary key check (only = 1),
    body text not null
) strict;
