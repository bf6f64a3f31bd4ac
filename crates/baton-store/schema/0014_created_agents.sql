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
