-- Whether a key makes and revokes keys of its account; 1 for the development key,
-- which every server has.
alter table api_key add column admin integer not null default 0;
update api_key set admin = 1 where account = 'dev' and tier = 'dev' and label = 'development key';
