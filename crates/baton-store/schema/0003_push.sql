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
