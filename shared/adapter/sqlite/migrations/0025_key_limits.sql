-- When a key stops working, null for never, and what it may be used for, as JSON. Times
-- as in job.
alter table api_key add column expires_at integer;
alter table api_key add column limits text not null default '{}';
