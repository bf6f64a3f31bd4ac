-- The end of data: costs that outlive their thread, deletions in progress, erased users, and which server sweeps.

-- Calls of deleted threads: what they cost, without thread, session or content. The calls of one run share a random id. Of an erased
-- user, `user_id` is a pseudonym.
CREATE TABLE past_calls (
    tenant TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    run_id UUID NOT NULL,
    number BIGINT NOT NULL,
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    kind TEXT NOT NULL,
    provider TEXT,
    name TEXT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    estimated BIGINT NOT NULL,
    cost_nanos BIGINT NOT NULL,
    cost_known BIGINT NOT NULL,
    PRIMARY KEY (tenant, started_at, run_id, number)
) /* clustered */;
CREATE INDEX past_calls_of_user ON past_calls (tenant, user_id, started_at);

-- Long threads that are deleted: their messages and events are removed in batches. Until then a row of `thread_work` with a random id
-- keeps the number of the thread from being given to another one.
CREATE TABLE deleted_threads (
    tenant TEXT NOT NULL,
    thread_number BIGINT NOT NULL,
    thread_id UUID NOT NULL,
    PRIMARY KEY (tenant, thread_number)
) /* clustered */;

-- Requests to erase a user. `user_id` is null once the erasure is complete.
CREATE TABLE erasures (
    tenant TEXT NOT NULL,
    erasure_id UUID NOT NULL,
    user_id TEXT,
    -- Replaces the id of the user where costs are summed by user.
    pseudonym TEXT NOT NULL,
    requested_at BIGINT NOT NULL,
    finished_at BIGINT,
    PRIMARY KEY (tenant, erasure_id)
) /* clustered */;
CREATE INDEX erasures_open ON erasures (tenant, requested_at) WHERE finished_at IS NULL;

-- Whose the tokens in the audit trail are. Of an erased user there is no row, so that their entries are anonymous and all hashes valid.
CREATE TABLE audit_people (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    token TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) /* clustered */;
CREATE UNIQUE INDEX audit_people_by_token ON audit_people (tenant, token);

-- Up to which run the events of a tenant were removed.
CREATE TABLE event_sweeps (
    tenant TEXT NOT NULL PRIMARY KEY,
    run_id UUID NOT NULL
) /* clustered */;

-- Work that one process of the installation does at a time. It belongs to no tenant.
CREATE TABLE duties (
    name TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    lease_until BIGINT NOT NULL
);

-- Bytes of the messages, artifacts and spooled outputs of a thread.
ALTER TABLE thread_work ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
