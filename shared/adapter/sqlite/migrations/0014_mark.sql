-- What tells this database from others, and an earlier copy of it from a later
-- one: an id of its own, and a count of its durable transactions. It has one row.
create table mark (
    database text    not null,
    writes   integer not null
) strict;

insert into mark (database, writes) values (lower(hex(randomblob(16))), 0);
