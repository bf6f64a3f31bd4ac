-- Every way in which one agent involves another is a hop. `outcome` was `success`: 0 failed, 1 completed, 2 cancelled, 3 declined.
-- The `run_id` of a handoff that began outside of a run is the nil UUID.
ALTER TABLE hops RENAME COLUMN success TO outcome;
-- 1 once the hop is in the sums of `patterns`. Those of earlier versions were added as they were written.
ALTER TABLE hops ADD COLUMN settled BIGINT NOT NULL DEFAULT 1;
-- Those that are not in the sums yet, the newest ones. Appends only insert: no row of `patterns` is written by two runs at once.
CREATE INDEX hops_unsettled ON hops (tenant, at) WHERE settled = 0;
