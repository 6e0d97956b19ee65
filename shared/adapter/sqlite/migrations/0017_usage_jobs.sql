-- How many jobs were accepted.
alter table usage add column jobs integer not null default 0;
