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
