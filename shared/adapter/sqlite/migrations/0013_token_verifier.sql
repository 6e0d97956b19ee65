-- The public key that the JWT of a client token is verified with (Ed25519); null
-- for a token that has no JWT.
alter table client_token add column verifier blob;
