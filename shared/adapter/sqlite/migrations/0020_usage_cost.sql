-- What was used cost, in billionths of the catalog's currency.
alter table usage add column cost integer not null default 0;
