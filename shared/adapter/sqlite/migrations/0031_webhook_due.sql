-- Due webhooks are read by account.
drop index webhook_due;
create index webhook_due on webhook (account, due) where due is not null;
