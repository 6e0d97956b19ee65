alter table usage add column audio_seconds integer not null default 0;
alter table usage add column characters integer not null default 0;
