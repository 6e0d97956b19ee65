-- Of the requests and of their cost those of batches.
alter table usage add column batch_requests integer not null default 0;
alter table usage add column batch_cost integer not null default 0;
