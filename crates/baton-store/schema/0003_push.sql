-- Push notifications of A2A tasks. A task has the id of its first run.
CREATE TABLE push_configs (
    tenant TEXT NOT NULL,
    task_id UUID NOT NULL,
    config_id TEXT NOT NULL,
    thread_id UUID NOT NULL,
    -- The run that the task is at.
    run_id UUID NOT NULL,
    created_at BIGINT NOT NULL,
    -- Where the state is sent to, as JSON.
    target TEXT NOT NULL,
    -- The status of the run that was delivered last.
    told TEXT NOT NULL,
    -- When the next delivery may be tried, 0 for at once; null when nothing is to be sent any more.
    due_at BIGINT,
    attempts BIGINT NOT NULL,
    PRIMARY KEY (tenant, task_id, config_id),
    FOREIGN KEY (tenant, thread_id) REFERENCES thread_work (tenant, thread_id) ON DELETE CASCADE
);
CREATE INDEX push_configs_due ON push_configs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX push_configs_of_thread ON push_configs (tenant, thread_id);
