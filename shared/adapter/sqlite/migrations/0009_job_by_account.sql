-- For the list of an account's jobs, which sort by their ids. The index holds
-- nothing that changes, so that it costs one entry when a job is accepted.
create index job_by_account on job (account, id);
