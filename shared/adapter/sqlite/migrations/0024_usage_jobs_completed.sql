-- How many of the jobs that were accepted ended with a result.
alter table usage add column jobs_completed integer not null default 0;
