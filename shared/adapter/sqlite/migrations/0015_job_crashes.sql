-- How often the server went down while it had the job in hand.
alter table job add column crashes integer not null default 0;
