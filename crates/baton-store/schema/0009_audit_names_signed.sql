-- Whose a token is, is signed like the ends of chains: otherwise a changed row would attribute entries to another person.
ALTER TABLE audit_people ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_people ADD COLUMN mac BYTEA;
