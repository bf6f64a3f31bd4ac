-- The unfinished work of a user, newest first, whatever the number of their threads.
CREATE INDEX handoffs_left ON handoffs (tenant, user_id, updated_at)
    WHERE state <> 'pending' AND state <> 'active' AND state <> 'returning' AND state <> 'completed';
