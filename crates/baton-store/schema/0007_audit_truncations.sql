-- Where the trail of a tenant begins after its oldest entries were removed: `state` has the ends of all chains and of the seals there. It
-- is signed, so that no other removal passes for this one.
CREATE TABLE audit_truncations (
    tenant TEXT NOT NULL,
    -- The last seal that was removed.
    seal BIGINT NOT NULL,
    -- When entries were last removed.
    at BIGINT NOT NULL,
    state BYTEA NOT NULL,
    key_id TEXT NOT NULL,
    mac BYTEA NOT NULL,
    PRIMARY KEY (tenant)
) /* clustered */;
