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

-- How much long tool output a tenant has, without reading the output.
CREATE INDEX tool_outputs_sizes ON tool_outputs (tenant, size) WHERE chunk = 0;
