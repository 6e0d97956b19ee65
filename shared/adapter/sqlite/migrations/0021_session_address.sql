-- Where other instances reach the one that has the lease, empty if they do not.
alter table session_lease add column address text not null default '';
