-- How long the newest completed handoffs to an agent took, whatever the number of handoffs. Both times are in the index.
CREATE INDEX handoffs_completed ON handoffs (tenant, target, completed_at, started_at) WHERE state = 'completed';
