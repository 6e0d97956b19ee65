-- The clients that wait for a session of an account, as the program's text.
create table session_queue (
  account text primary key,
  -- The start of the machine that the times in tickets count from.
  boot    text not null,
  tickets text not null
) strict, without rowid;

-- Earlier programs kept the queue here. The process that renews it has ended.
drop table session_ticket;
drop table session_line;
