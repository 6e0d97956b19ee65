-- What a job has taken from budgets, as JSON; null for nothing.
alter table job add column holds text;
