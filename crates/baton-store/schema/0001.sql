-- Written for PostgreSQL; `migrate.rs` makes SQLite of it (INTEGER, BLOB, STRICT). Times are microseconds since 1970, JSON is text,
-- ids are text. Every table begins with its tenant, and row-level security (see postgres.sql) is switched on for each of them.

CREATE TABLE tenants (
    tenant TEXT NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL,
    -- Runs that are queued, running or waiting.
    open_runs BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE threads (
    tenant TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    holder TEXT,
    handoff_id TEXT,
    -- The same, also once it has ended.
    last_handoff TEXT,
    -- Counters, so that numbers have no gaps and nothing is ever counted by reading it all.
    messages BIGINT NOT NULL DEFAULT 0,
    last_seq BIGINT NOT NULL DEFAULT 0,
    runs BIGINT NOT NULL DEFAULT 0,
    queued BIGINT NOT NULL DEFAULT 0,
    -- Steps and ledger rows of all its runs, for their order.
    records BIGINT NOT NULL DEFAULT 0,
    -- The claim: which run is worked on, by whom, until when, under which number.
    active_run TEXT,
    owner TEXT,
    epoch BIGINT NOT NULL DEFAULT 0,
    lease_until BIGINT,
    -- The last append of this claim, for which run, and the number of its first event: an append that is repeated is
    -- recognised, also when the claim has ended with it.
    appended BIGINT NOT NULL DEFAULT 0,
    appended_run TEXT,
    appended_seq BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, thread_id)
);
CREATE INDEX threads_by_use ON threads (tenant, updated_at, thread_id);
CREATE INDEX threads_of_user ON threads (tenant, user_id, updated_at, thread_id);
-- Threads with work to do, whoever's they are.
CREATE INDEX threads_at_work ON threads (lease_until) WHERE active_run IS NOT NULL;
CREATE INDEX threads_waiting ON threads (updated_at) WHERE active_run IS NULL AND queued > 0;

CREATE TABLE messages (
    tenant TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    message_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    role TEXT NOT NULL,
    agent TEXT,
    visibility TEXT NOT NULL,
    parts TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, thread_id, number),
    FOREIGN KEY (tenant, thread_id) REFERENCES threads (tenant, thread_id) ON DELETE CASCADE
);
CREATE INDEX messages_by_id ON messages (tenant, message_id);
-- What a person sees, without stepping over what happened behind the scenes.
CREATE INDEX messages_seen ON messages (tenant, thread_id, number) WHERE visibility = 'user' AND role <> 'system';

CREATE TABLE runs (
    tenant TEXT NOT NULL,
    run_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    ordinal BIGINT NOT NULL,
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    status TEXT NOT NULL,
    request TEXT NOT NULL,
    message_number BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    attempts BIGINT NOT NULL DEFAULT 0,
    cancel TEXT,
    result TEXT,
    PRIMARY KEY (tenant, run_id),
    UNIQUE (tenant, thread_id, ordinal),
    FOREIGN KEY (tenant, thread_id) REFERENCES threads (tenant, thread_id) ON DELETE CASCADE
);
-- One for each question that lists are asked with; all of them give the newest first. SQLite takes the first of those that seem
-- equal to it, so the most exact come first.
CREATE INDEX runs_of_thread ON runs (tenant, thread_id, created_at, run_id);
CREATE INDEX runs_of_user ON runs (tenant, user_id, created_at, run_id);
CREATE INDEX runs_of_agent ON runs (tenant, agent, created_at, run_id);
CREATE INDEX runs_by_status ON runs (tenant, status, created_at, run_id);
CREATE INDEX runs_by_time ON runs (tenant, created_at, run_id);
CREATE INDEX runs_queued ON runs (tenant, thread_id, ordinal) WHERE status = 'queued';

CREATE TABLE events (
    tenant TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    run_id TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, thread_id, seq),
    FOREIGN KEY (tenant, thread_id) REFERENCES threads (tenant, thread_id) ON DELETE CASCADE
);
CREATE INDEX events_of_run ON events (tenant, run_id, seq);

CREATE TABLE steps (
    tenant TEXT NOT NULL,
    run_id TEXT NOT NULL,
    path TEXT NOT NULL,
    session_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    data TEXT NOT NULL,
    -- Their order is that of their beginning; times may be equal.
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, run_id, path),
    FOREIGN KEY (tenant, run_id) REFERENCES runs (tenant, run_id) ON DELETE CASCADE
);

CREATE TABLE sessions (
    tenant TEXT NOT NULL,
    session_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    path TEXT NOT NULL,
    status TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    finished_at BIGINT,
    PRIMARY KEY (tenant, session_id),
    FOREIGN KEY (tenant, run_id) REFERENCES runs (tenant, run_id) ON DELETE CASCADE
);
CREATE INDEX sessions_of_run ON sessions (tenant, run_id, session_id);

CREATE TABLE ledger (
    tenant TEXT NOT NULL,
    run_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    session_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    path TEXT NOT NULL,
    -- `model` with its provider, or `tool` without one.
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
    started_at BIGINT NOT NULL,
    latency_ms BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    error TEXT,
    PRIMARY KEY (tenant, run_id, number),
    FOREIGN KEY (tenant, run_id) REFERENCES runs (tenant, run_id) ON DELETE CASCADE
);
-- Sums over a stretch of time read that stretch and nothing else.
CREATE INDEX ledger_by_time ON ledger (tenant, started_at);

CREATE TABLE handoffs (
    tenant TEXT NOT NULL,
    handoff_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    state TEXT NOT NULL,
    version BIGINT NOT NULL,
    context_summary TEXT NOT NULL,
    reason TEXT NOT NULL,
    metadata TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    completed_at BIGINT,
    result_summary TEXT,
    artifacts TEXT NOT NULL,
    expires_at BIGINT,
    notes TEXT NOT NULL,
    PRIMARY KEY (tenant, handoff_id),
    FOREIGN KEY (tenant, thread_id) REFERENCES threads (tenant, thread_id) ON DELETE CASCADE
);
-- One open handoff per thread, whoever asks and however many at once.
CREATE UNIQUE INDEX handoffs_open ON handoffs (tenant, thread_id) WHERE state IN ('pending', 'active', 'returning');
CREATE INDEX handoffs_of_target ON handoffs (tenant, target) WHERE state IN ('pending', 'active', 'returning');
CREATE INDEX handoffs_by_end ON handoffs (tenant, expires_at) WHERE state = 'active';
CREATE INDEX handoffs_of_thread ON handoffs (tenant, thread_id, started_at);

CREATE TABLE workflow_states (
    tenant TEXT NOT NULL,
    handoff_id TEXT NOT NULL,
    state TEXT NOT NULL,
    data TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, handoff_id),
    FOREIGN KEY (tenant, handoff_id) REFERENCES handoffs (tenant, handoff_id) ON DELETE CASCADE
);

CREATE TABLE approvals (
    tenant TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    -- That of the thread.
    user_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    path TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    risk TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    decided_at BIGINT,
    decided_by TEXT,
    reason TEXT,
    PRIMARY KEY (tenant, approval_id),
    UNIQUE (tenant, run_id, path),
    FOREIGN KEY (tenant, run_id) REFERENCES runs (tenant, run_id) ON DELETE CASCADE
);
CREATE INDEX approvals_by_time ON approvals (tenant, created_at, approval_id);
CREATE INDEX approvals_of_user ON approvals (tenant, user_id, created_at, approval_id);
-- Not many: they expire.
CREATE INDEX approvals_pending ON approvals (tenant, created_at, approval_id) WHERE status = 'pending';

CREATE TABLE artifacts (
    tenant TEXT NOT NULL,
    artifact_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    run_id TEXT,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (tenant, artifact_id),
    FOREIGN KEY (tenant, thread_id) REFERENCES threads (tenant, thread_id) ON DELETE CASCADE
);
CREATE INDEX artifacts_of_thread ON artifacts (tenant, thread_id, created_at);

CREATE TABLE hops (
    tenant TEXT NOT NULL,
    hop_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    reason TEXT NOT NULL,
    query_class TEXT NOT NULL,
    success BIGINT NOT NULL,
    latency_ms BIGINT NOT NULL,
    cost_nanos BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, hop_id),
    FOREIGN KEY (tenant, thread_id) REFERENCES threads (tenant, thread_id) ON DELETE CASCADE
);
CREATE INDEX hops_of_thread ON hops (tenant, thread_id, at);
CREATE INDEX hops_of_run ON hops (tenant, run_id);

CREATE TABLE feedback (
    tenant TEXT NOT NULL,
    message_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    -- That of the message.
    run_id TEXT NOT NULL,
    rating TEXT NOT NULL,
    comment TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, message_id, user_id),
    FOREIGN KEY (tenant, thread_id) REFERENCES threads (tenant, thread_id) ON DELETE CASCADE
);
CREATE INDEX feedback_of_thread ON feedback (tenant, thread_id);
CREATE INDEX feedback_of_run ON feedback (tenant, run_id);

-- Sums over hops; they stay when a thread is deleted, and say nothing about it.
CREATE TABLE patterns (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    query_class TEXT NOT NULL,
    count BIGINT NOT NULL,
    successes BIGINT NOT NULL,
    latency_ms BIGINT NOT NULL,
    cost_nanos BIGINT NOT NULL,
    -- What people thought of answers in whose run the baton went this way.
    liked BIGINT NOT NULL,
    disliked BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, kind, source, target, query_class)
);

-- Not owned by threads: deleting a conversation does not delete who deleted it. A tenant has 16 hash chains, and a thread is always
-- in the same one.
CREATE TABLE audit (
    tenant TEXT NOT NULL,
    chain BIGINT NOT NULL,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    thread_id TEXT,
    -- The rest of the entry.
    entry TEXT NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (tenant, chain, number)
);
CREATE INDEX audit_by_time ON audit (tenant, at, chain, number);
CREATE INDEX audit_of_thread ON audit (tenant, thread_id, at, chain, number);
CREATE INDEX audit_of_actor ON audit (tenant, actor, at, chain, number);
-- Every run has one entry of each of these three, so a page of them is found by time without passing many others.
CREATE INDEX audit_of_action ON audit (tenant, action, at, chain, number)
    WHERE action NOT IN ('message.send', 'run.start', 'run.end');

-- The end of each chain: how many entries it has, the hash of the last and its time. Chain 16 is that of the seals: how many entries
-- are sealed, the hash of the last seal and its time. The only index is the primary key, so that updates are HOT.
CREATE TABLE audit_chains (
    tenant TEXT NOT NULL,
    chain BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    head BYTEA NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, chain)
);

CREATE TABLE audit_seals (
    tenant TEXT NOT NULL,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    -- Entries of each chain, 16 numbers in LEB128.
    counts BYTEA NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (tenant, number)
);

CREATE TABLE api_keys (
    tenant TEXT NOT NULL,
    key_id TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    user_id TEXT NOT NULL,
    roles TEXT NOT NULL,
    prefix TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT,
    PRIMARY KEY (tenant, key_id)
);

CREATE TABLE idempotency (
    tenant TEXT NOT NULL,
    user_id TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    run_id TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, user_id, key),
    -- Written before its run: whoever has the key goes on, everyone else waits here and then sees whose it is.
    FOREIGN KEY (tenant, run_id) REFERENCES runs (tenant, run_id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX idempotency_of_run ON idempotency (tenant, run_id);

CREATE TABLE results (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, key)
);
