-- Written for PostgreSQL; `migrate.rs` makes SQLite of it (INTEGER, BLOB, STRICT). Times are microseconds since 1970, JSON is text.
-- Tables begin with their tenant, and row-level security (see postgres.sql) is switched on for each that has one.
--
-- `clustered` tables have no row ids in SQLite: rows lie in the order of their primary key, which is then stored once.
--
-- What a run writes has no foreign keys: its claim proves that the thread is there, and a thread is deleted with all it owns
-- (`threads/delete.rs`).

CREATE TABLE tenants (
    tenant TEXT NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL
);

-- One row per process. A claim lasts as long as the lease of its owner. It belongs to no tenant.
CREATE TABLE servers (
    owner TEXT NOT NULL PRIMARY KEY,
    started_at BIGINT NOT NULL,
    lease_until BIGINT NOT NULL
) WITH (fillfactor = 50);

-- What threads are listed by. `updated_at` changes when a message comes in and when a run ends.
CREATE TABLE threads (
    tenant TEXT NOT NULL,
    thread_number BIGINT NOT NULL,
    thread_id UUID NOT NULL,
    user_id TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (thread_number, tenant)
) /* clustered */;
CREATE INDEX threads_by_use ON threads (tenant, updated_at, thread_id);
CREATE INDEX threads_of_user ON threads (tenant, user_id, updated_at, thread_id);

-- What every append of a thread changes. The primary key is its only index, so that PostgreSQL can update it in place (HOT).
-- Its row is locked before that of `threads`, and before anything else of the thread is written.
--
-- Ids of threads are random, so rows that are sorted by them lie anywhere in their table, and each costs a page. Tables that a run
-- writes are sorted by the number of the thread instead, which rises with its creation: the rows of new threads share pages, also
-- those of different tenants.
CREATE TABLE thread_work (
    tenant TEXT NOT NULL,
    thread_id UUID NOT NULL,
    thread_number BIGINT GENERATED ALWAYS AS IDENTITY,
    -- That of the thread.
    user_id TEXT NOT NULL,
    holder TEXT,
    handoff_id UUID,
    -- The same, also once it has ended.
    last_handoff UUID,
    -- Counters, so that numbers have no gaps and nothing is ever counted by reading it all.
    messages BIGINT NOT NULL DEFAULT 0,
    last_seq BIGINT NOT NULL DEFAULT 0,
    runs BIGINT NOT NULL DEFAULT 0,
    queued BIGINT NOT NULL DEFAULT 0,
    -- Appends and ledger rows of all its runs, for their order.
    records BIGINT NOT NULL DEFAULT 0,
    -- Bytes of its messages, artifacts and spooled outputs.
    bytes BIGINT NOT NULL DEFAULT 0,
    -- Bytes of the files in its workspace, as they were measured after the last tool call that may have written some.
    file_bytes BIGINT NOT NULL DEFAULT 0,
    -- The claim: which run is worked on, by which process, under which number.
    active_run UUID,
    owner TEXT,
    epoch BIGINT NOT NULL DEFAULT 0,
    -- The last append of this claim, for which run, and the number of its first event: an append that is repeated is
    -- recognised, also when the claim has ended with it. Where it has taken the next run, `appended` is 0 and `appended_run` is
    -- the run before.
    appended BIGINT NOT NULL DEFAULT 0,
    appended_run UUID,
    appended_seq BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, thread_id)
) WITH (fillfactor = 50) /* numbered */;

CREATE TABLE messages (
    tenant TEXT NOT NULL,
    thread_number BIGINT NOT NULL,
    number BIGINT NOT NULL,
    message_id UUID NOT NULL,
    run_id UUID NOT NULL,
    role TEXT NOT NULL,
    agent TEXT,
    visibility TEXT NOT NULL,
    parts TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (thread_number, tenant, number)
);
CREATE INDEX messages_by_id ON messages (tenant, message_id);

CREATE TABLE runs (
    tenant TEXT NOT NULL,
    run_id UUID NOT NULL,
    thread_id UUID NOT NULL,
    thread_number BIGINT NOT NULL,
    -- Its place among the runs of its thread.
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
    -- Its events have numbers from `first_seq`, once it has begun, to `last_seq`, once it has ended. Others may lie between.
    first_seq BIGINT,
    last_seq BIGINT,
    cancel TEXT,
    result TEXT,
    text_of BIGINT,
    PRIMARY KEY (tenant, run_id)
) /* clustered */;
-- One for each question that lists are asked with. Ids of runs rise with time, so all of them give the newest first.
CREATE INDEX runs_of_thread ON runs (tenant, thread_number, run_id);
CREATE INDEX runs_of_user ON runs (tenant, user_id, run_id);
CREATE INDEX runs_of_agent ON runs (tenant, agent, run_id);
-- No condition of an index uses IN: SQLite would fill a temporary table for it with each row that is written. `finished_at` is null
-- exactly while a run is queued, running or waiting.
-- The few that did not go well.
CREATE INDEX runs_unsuccessful ON runs (tenant, status, run_id) WHERE finished_at IS NOT NULL AND status <> 'completed';
-- Those that are queued or running: how many a tenant has, which is the next of a thread, and which have no owner.
CREATE INDEX runs_open ON runs (tenant, thread_number, ordinal) WHERE finished_at IS NULL AND status <> 'waiting';
-- Those that wait for a decision. There may be many.
CREATE INDEX runs_waiting ON runs (tenant, status, run_id) WHERE status = 'waiting';
-- Those whose process has to be asked to end them.
CREATE INDEX runs_to_cancel ON runs (tenant, run_id) WHERE status = 'running' AND cancel IS NOT NULL;

-- What the runs of a thread recorded, one row per append: its events, steps and changes of sessions, each a line with a JSON array,
-- compressed (`journal/content.rs`).
-- `last_seq` is the number of its last event, or of the last one before it if it has none; `record` is its place among the records
-- of the thread. Where `text_of` is the number of a message, the text of that message is left out of the JSON, and so is the id of
-- the run (`once.rs`). Rows up to 8 kB stay in their page on PostgreSQL.
CREATE TABLE journal (
    tenant TEXT NOT NULL,
    thread_number BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    record BIGINT NOT NULL,
    run_id UUID NOT NULL,
    content BYTEA NOT NULL,
    text_of BIGINT,
    PRIMARY KEY (thread_number, tenant, last_seq, record)
) WITH (toast_tuple_target = 8160);

-- A session's id begins with that of its run; `session_id` is what follows.
CREATE TABLE ledger (
    tenant TEXT NOT NULL,
    run_id UUID NOT NULL,
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
    PRIMARY KEY (tenant, run_id, number)
) /* clustered */;
-- Sums over a stretch of time read that stretch and nothing else.
CREATE INDEX ledger_by_time ON ledger (tenant, started_at);

CREATE TABLE handoffs (
    tenant TEXT NOT NULL,
    handoff_id UUID NOT NULL,
    thread_id UUID NOT NULL,
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
    -- A request that waits for its end.
    next TEXT,
    PRIMARY KEY (tenant, handoff_id),
    FOREIGN KEY (tenant, thread_id) REFERENCES thread_work (tenant, thread_id) ON DELETE CASCADE
);
-- One open handoff per thread, whoever asks and however many at once.
CREATE UNIQUE INDEX handoffs_open ON handoffs (tenant, thread_id) WHERE state <> 'completed' AND state <> 'cancelled' AND state <> 'error';
CREATE INDEX handoffs_of_target ON handoffs (tenant, target) WHERE state <> 'completed' AND state <> 'cancelled' AND state <> 'error';
CREATE INDEX handoffs_by_end ON handoffs (tenant, expires_at) WHERE state = 'active';
CREATE INDEX handoffs_of_thread ON handoffs (tenant, thread_id, started_at);
-- The unfinished work of a user, newest first, whatever the number of their threads.
CREATE INDEX handoffs_left ON handoffs (tenant, user_id, updated_at)
    WHERE state <> 'pending' AND state <> 'active' AND state <> 'returning' AND state <> 'completed';
-- How long the newest completed handoffs to an agent took, whatever the number of handoffs. Both times are in the index.
CREATE INDEX handoffs_completed ON handoffs (tenant, target, completed_at, started_at) WHERE state = 'completed';

CREATE TABLE workflow_states (
    tenant TEXT NOT NULL,
    handoff_id UUID NOT NULL,
    state TEXT NOT NULL,
    data TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, handoff_id),
    FOREIGN KEY (tenant, handoff_id) REFERENCES handoffs (tenant, handoff_id) ON DELETE CASCADE
);

CREATE TABLE approvals (
    tenant TEXT NOT NULL,
    -- Derived from the run, the path of the call and the digest of its arguments.
    approval_id UUID NOT NULL,
    thread_id UUID NOT NULL,
    -- That of the thread.
    user_id TEXT NOT NULL,
    run_id UUID NOT NULL,
    kind TEXT NOT NULL,
    tool TEXT NOT NULL,
    -- What was asked, as JSON.
    request TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    decided_at BIGINT,
    -- Who decided, and what, as JSON.
    outcome TEXT,
    remember BIGINT NOT NULL DEFAULT 0,
    -- When a webhook is to be told of it, 0 for at once; null when nothing is to be sent any more.
    notify_at BIGINT DEFAULT 0,
    notify_attempts BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, approval_id),
    FOREIGN KEY (tenant, run_id) REFERENCES runs (tenant, run_id) ON DELETE CASCADE
);
CREATE INDEX approvals_by_time ON approvals (tenant, created_at, approval_id);
CREATE INDEX approvals_of_user ON approvals (tenant, user_id, created_at, approval_id);
CREATE INDEX approvals_of_thread ON approvals (tenant, thread_id, created_at, approval_id);
CREATE INDEX approvals_of_run ON approvals (tenant, run_id, created_at, approval_id);
CREATE INDEX approvals_to_notify ON approvals (notify_at) WHERE status = 'pending' AND notify_at IS NOT NULL;
-- Not many: they expire.
CREATE INDEX approvals_pending ON approvals (tenant, created_at, approval_id) WHERE status = 'pending';
CREATE INDEX approvals_pending_of_user ON approvals (tenant, user_id, created_at, approval_id) WHERE status = 'pending';
CREATE INDEX approvals_open ON approvals (tenant, thread_id, created_at, approval_id) WHERE status = 'pending';
CREATE INDEX approvals_by_expiry ON approvals (expires_at) WHERE status = 'pending';
CREATE INDEX approvals_remembered ON approvals (tenant, thread_id, tool, decided_at) WHERE remember = 1;

CREATE TABLE artifacts (
    tenant TEXT NOT NULL,
    artifact_id UUID NOT NULL,
    thread_id UUID NOT NULL,
    run_id UUID,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (tenant, artifact_id),
    FOREIGN KEY (tenant, thread_id) REFERENCES thread_work (tenant, thread_id) ON DELETE CASCADE
);
CREATE INDEX artifacts_of_thread ON artifacts (tenant, thread_id, created_at);

-- Tool output that is too long to show to a model at once, in chunks of 64 KiB. `size` is that of the whole output, `output_id` is in
-- its handle. Deleted with its thread, or by the sweep once its run has ended.
CREATE TABLE tool_outputs (
    tenant TEXT NOT NULL,
    run_id UUID NOT NULL,
    output_id UUID NOT NULL,
    chunk BIGINT NOT NULL,
    size BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (tenant, run_id, output_id, chunk)
);
-- How much long tool output a tenant has, without reading the output.
CREATE INDEX tool_outputs_sizes ON tool_outputs (tenant, size) WHERE chunk = 0;

-- Every way in which one agent involves another. The `run_id` of a handoff that began outside of a run is the nil UUID.
CREATE TABLE hops (
    tenant TEXT NOT NULL,
    thread_number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    hop_id UUID NOT NULL,
    run_id UUID NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    reason TEXT NOT NULL,
    query_class TEXT NOT NULL,
    -- 0 failed, 1 completed, 2 cancelled, 3 declined.
    outcome BIGINT NOT NULL,
    latency_ms BIGINT NOT NULL,
    cost_nanos BIGINT NOT NULL,
    -- A fingerprint of the request, by which repeated requests are found (`baton-core/learning.rs`); 0 if unknown.
    request BIGINT NOT NULL,
    -- 1 once the hop is in the sums of `patterns`.
    settled BIGINT NOT NULL,
    -- What settling added to the tries of `experience`, in millionths.
    weight BIGINT NOT NULL DEFAULT 0,
    -- Whether settling added the same to the wins: 0 no; 1 yes; 2 no, only because of bad ratings: 1 if they are
    -- withdrawn.
    win BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (thread_number, tenant, at, hop_id)
) /* clustered */;
-- Those that are not in the sums yet, the newest ones. Appends only insert: no row of `patterns` is written by two runs at once.
CREATE INDEX hops_unsettled ON hops (tenant, at) WHERE settled = 0;

CREATE TABLE feedback (
    tenant TEXT NOT NULL,
    message_id UUID NOT NULL,
    user_id TEXT NOT NULL,
    thread_id UUID NOT NULL,
    -- That of the message.
    run_id UUID NOT NULL,
    rating TEXT NOT NULL,
    comment TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, message_id, user_id),
    FOREIGN KEY (tenant, thread_id) REFERENCES thread_work (tenant, thread_id) ON DELETE CASCADE
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
    -- What people thought of answers in whose run an agent was involved this way.
    liked BIGINT NOT NULL,
    disliked BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, kind, source, target, query_class)
);

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

-- Not owned by threads: deleting a conversation does not delete who deleted it. A tenant has 16 hash chains, and a thread is always
-- in the same one; on SQLite, which has one writer, all entries are in chain 0. A transaction adds one row per chain, with all its
-- entries.
CREATE TABLE audit (
    tenant TEXT NOT NULL,
    chain BIGINT NOT NULL,
    -- That of its last entry.
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    -- A line of JSON for each entry.
    entries TEXT NOT NULL,
    -- That of its last entry.
    hash BYTEA NOT NULL,
    PRIMARY KEY (tenant, chain, number)
) /* clustered */;
CREATE INDEX audit_by_time ON audit (tenant, at, chain, number);

-- Which rows of `audit` have entries about a thread that exists.
CREATE TABLE audit_threads (
    tenant TEXT NOT NULL,
    thread_number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    chain BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (thread_number, tenant, at, chain, number)
) /* clustered */;

-- Which rows of `audit` have entries of an actor (`actor:` and its name), of an action (`action:` and its name) or about a thread that
-- does not exist, or not any more (`thread:` and its id). Every run has entries of a few actions; these have no rows here, and a page
-- of them is found by time.
CREATE TABLE audit_names (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    at BIGINT NOT NULL,
    chain BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (tenant, name, at, chain, number)
) /* clustered */;

-- The end of each chain: how many entries it has, the hash of the last and its time. Chain 16 is that of the seals: how many entries
-- are sealed, the hash of the last seal and its time. The only index is the primary key, so that updates are HOT.
CREATE TABLE audit_chains (
    tenant TEXT NOT NULL,
    chain BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    head BYTEA NOT NULL,
    at BIGINT NOT NULL,
    -- The end of a chain is signed, because no seal covers it yet. Of chain 16, `key_id` is that of the newest seal.
    key_id TEXT NOT NULL DEFAULT '',
    mac BYTEA,
    PRIMARY KEY (tenant, chain)
) /* clustered */;

CREATE TABLE audit_seals (
    tenant TEXT NOT NULL,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    -- Entries of each chain, 16 numbers in LEB128.
    counts BYTEA NOT NULL,
    hash BYTEA NOT NULL,
    -- The key that it is signed with; empty without a key.
    key_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, number)
);

-- Where the last successful verification of a trail ended: at a seal. `state` has the ends of all chains at that seal and is signed.
CREATE TABLE audit_checkpoints (
    tenant TEXT NOT NULL,
    seal BIGINT NOT NULL,
    state BYTEA NOT NULL,
    key_id TEXT NOT NULL,
    mac BYTEA NOT NULL,
    PRIMARY KEY (tenant)
) /* clustered */;

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

-- Whose the tokens in the audit trail are. Of an erased user there is no row, so that their entries are anonymous and all hashes valid.
CREATE TABLE audit_people (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    token TEXT NOT NULL,
    -- Signed like the ends of chains: otherwise a changed row would attribute entries to another person.
    key_id TEXT NOT NULL DEFAULT '',
    mac BYTEA,
    PRIMARY KEY (tenant, name)
) /* clustered */;
CREATE UNIQUE INDEX audit_people_by_token ON audit_people (tenant, token);

CREATE TABLE api_keys (
    tenant TEXT NOT NULL,
    key_id UUID NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    user_id TEXT NOT NULL,
    roles TEXT NOT NULL,
    prefix TEXT NOT NULL,
    name TEXT NOT NULL DEFAULT '',
    -- A JSON array of permissions, or null for all of the roles.
    scopes TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT,
    revoked_at BIGINT,
    PRIMARY KEY (tenant, key_id)
);

CREATE TABLE idempotency (
    tenant TEXT NOT NULL,
    user_id TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    run_id UUID NOT NULL,
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

-- Budgets that runs share. Only runs for which one is configured write here.

-- What was spent: by a thread (period 'total', starting at 0), or by a user or the tenant in a day or month of UTC.
CREATE TABLE budget_accounts (
    tenant TEXT NOT NULL,
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    period TEXT NOT NULL,
    starts_at BIGINT NOT NULL,
    cost_nanos BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    -- Whether the warning that it is nearly used up was published.
    warned BIGINT NOT NULL,
    PRIMARY KEY (tenant, scope, subject, period, starts_at)
) WITH (fillfactor = 50) /* clustered */;

-- The most that a call in progress can take, once for each account that it counts against.
CREATE TABLE budget_reservations (
    tenant TEXT NOT NULL,
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    period TEXT NOT NULL,
    starts_at BIGINT NOT NULL,
    run_id UUID NOT NULL,
    path TEXT NOT NULL,
    called_at BIGINT NOT NULL,
    cost_nanos BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, scope, subject, period, starts_at, run_id, called_at, path)
) /* clustered */;
CREATE INDEX budget_reservations_of_run ON budget_reservations (tenant, run_id);

-- Push notifications of A2A tasks. A task has the id of its first run.
CREATE TABLE push_configs (
    tenant TEXT NOT NULL,
    task_id UUID NOT NULL,
    config_id TEXT NOT NULL,
    thread_id UUID NOT NULL,
    -- The run that the task was at, and its status, when it was looked at last.
    run_id UUID NOT NULL,
    seen TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- Where the state is sent to, as JSON.
    target TEXT NOT NULL,
    -- The state of the task that was delivered last.
    delivered TEXT NOT NULL,
    -- When to look again: from this time on (0 for at once) if the status of the run has changed, or in any case if `recheck` is 1.
    -- Null once the task has ended.
    due_at BIGINT,
    recheck BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    PRIMARY KEY (tenant, task_id, config_id),
    FOREIGN KEY (tenant, thread_id) REFERENCES thread_work (tenant, thread_id) ON DELETE CASCADE
);
CREATE INDEX push_configs_due ON push_configs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX push_configs_of_thread ON push_configs (tenant, thread_id);

-- Skills that people of a tenant created. They stay when the thread is deleted in which they were made.
CREATE TABLE skills (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    -- The whole of SKILL.md.
    text TEXT NOT NULL,
    -- Who saved it. Of an erased user, a pseudonym.
    user_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Skills that are being made, deleted with their thread.
CREATE TABLE skill_drafts (
    tenant TEXT NOT NULL,
    thread_id UUID NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (tenant, thread_id, name),
    FOREIGN KEY (tenant, thread_id) REFERENCES thread_work (tenant, thread_id) ON DELETE CASCADE
);

-- Agents that people of a tenant created. They stay when the thread is deleted in which they were made.
CREATE TABLE created_agents (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    -- The whole agent file.
    text TEXT NOT NULL,
    -- Who saved it last. Of an erased user, a pseudonym.
    user_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Raised by every save and deletion, so that each server finds out with one query which tenants have changed.
CREATE TABLE agent_versions (
    tenant TEXT NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (tenant)
) /* clustered */;

-- Agents that are being made, deleted with their thread.
CREATE TABLE agent_drafts (
    tenant TEXT NOT NULL,
    thread_id UUID NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    -- The text of the saved agent that the draft changes.
    replaces TEXT,
    PRIMARY KEY (tenant, thread_id, name),
    FOREIGN KEY (tenant, thread_id) REFERENCES thread_work (tenant, thread_id) ON DELETE CASCADE
);

-- Vectors of the sections of shared documents, by the text that was embedded. They hold nothing of users and threads.
CREATE TABLE embeddings (
    tenant TEXT NOT NULL,
    -- As it is configured.
    model TEXT NOT NULL,
    -- SHA-256 of the text.
    section BYTEA NOT NULL,
    -- Numbers of 4 bytes, little-endian.
    vector BYTEA NOT NULL,
    PRIMARY KEY (tenant, model, section)
);

-- The lifecycle of data: costs that outlive their thread, deletions in progress, erased users, and which server sweeps.

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
