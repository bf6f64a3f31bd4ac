-- API keys have a name, an expiry, the time of their last use, and scopes: a JSON array of permissions, or null for all of the roles.
ALTER TABLE api_keys ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN scopes TEXT;
ALTER TABLE api_keys ADD COLUMN expires_at BIGINT;
ALTER TABLE api_keys ADD COLUMN last_used_at BIGINT;

-- The key that a seal is signed with; empty without a key.
ALTER TABLE audit_seals ADD COLUMN key_id TEXT NOT NULL DEFAULT '';

-- The end of a chain is signed too, because no seal covers it yet. Of chain 16, `key_id` is that of the newest seal.
ALTER TABLE audit_chains ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_chains ADD COLUMN mac BYTEA;

-- Where the last successful verification of a trail ended: at a seal. `state` has the ends of all chains at that seal and is signed.
CREATE TABLE audit_checkpoints (
    tenant TEXT NOT NULL,
    seal BIGINT NOT NULL,
    state BYTEA NOT NULL,
    key_id TEXT NOT NULL,
    mac BYTEA NOT NULL,
    PRIMARY KEY (tenant)
) /* clustered */;
