-- Who is told of a job's end, and the trace that it belongs to; empty where
-- there is none.
alter table job add column webhook text not null default '';
alter table job add column trace text not null default '';
