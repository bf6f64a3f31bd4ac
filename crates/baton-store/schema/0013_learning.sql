-- A fingerprint of the request that a hop belongs to, by which repeated requests are found (`baton-core/learning.rs`); 0 if unknown.
ALTER TABLE hops ADD COLUMN request BIGINT NOT NULL DEFAULT 0;

-- How well an agent serves a kind of request: decayed counts as of `at`, in millionths, and the decayed cost. Written when hops are
-- settled, by one process at a time. Like `patterns`, it outlives threads and says nothing about them.
CREATE TABLE experience (
    tenant TEXT NOT NULL,
    query_class TEXT NOT NULL,
    agent TEXT NOT NULL,
    tries BIGINT NOT NULL,
    wins BIGINT NOT NULL,
    cost_nanos BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, query_class, agent)
) /* clustered */;
