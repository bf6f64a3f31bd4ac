-- What PostgreSQL needs beside the tables, brought up to date after every migration. Nothing here changes when it is run again.

-- The role that Baton works under. It owns nothing, so row-level security applies to it. Roles belong to all databases of a
-- server: another one may be making the same at this moment.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'baton_app') THEN
        BEGIN
            CREATE ROLE baton_app NOLOGIN;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
    END IF;
    IF NOT pg_has_role(
        current_user, 'baton_app',
        CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END
    ) THEN
        BEGIN
            EXECUTE format('GRANT baton_app TO %I', current_user);
        EXCEPTION WHEN unique_violation THEN
            NULL;
        END;
    END IF;
END $$;

GRANT USAGE ON SCHEMA baton TO baton_app;
GRANT SELECT ON baton_schema TO baton_app;
-- Processes belong to no tenant.
GRANT SELECT, INSERT, UPDATE, DELETE ON servers, duties TO baton_app;

-- Every table that has a tenant, also those of migrations to come: rows of another tenant cannot be seen, and not be written.
DO $$
DECLARE
    found name;
BEGIN
    FOR found IN
        SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'baton'::regnamespace AND c.relkind IN ('r', 'p')
            AND a.attname = 'tenant' AND NOT a.attisdropped
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', found);
        EXECUTE format('DROP POLICY IF EXISTS own_tenant ON %I', found);
        EXECUTE format(
            'CREATE POLICY own_tenant ON %I USING (tenant = current_setting(''baton.tenant'', true)) '
            'WITH CHECK (tenant = current_setting(''baton.tenant'', true))', found);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO baton_app', found);
    END LOOP;
END $$;

-- Nothing changes what is in the trail, and only the functions of retention below remove something.
REVOKE UPDATE, DELETE ON audit FROM baton_app;
REVOKE UPDATE ON audit_threads FROM baton_app;
REVOKE UPDATE, DELETE ON audit_names FROM baton_app;
REVOKE UPDATE, DELETE ON audit_seals FROM baton_app;
REVOKE DELETE ON audit_chains FROM baton_app;

-- Updated by almost every transaction: new versions of a row find room on its own page.
ALTER TABLE audit_chains SET (fillfactor = 50);

-- The few questions that concern all tenants. They run as the owner of the tables, and answer nothing else.
CREATE OR REPLACE FUNCTION system_tenants() RETURNS SETOF TEXT
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT tenant FROM tenants ORDER BY tenant
$$;

CREATE OR REPLACE FUNCTION system_agent_versions() RETURNS TABLE (tenant TEXT, version BIGINT)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT v.tenant, v.version FROM agent_versions v
$$;

-- Active runs of a process that are to end.
CREATE OR REPLACE FUNCTION system_cancelled(beating TEXT) RETURNS TABLE (tenant TEXT, run_id UUID, cancel TEXT)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT r.tenant, r.run_id, r.cancel FROM runs r
    JOIN thread_work w ON w.tenant = r.tenant AND w.thread_id = r.thread_id
    WHERE r.status = 'running' AND r.cancel IS NOT NULL AND w.active_run = r.run_id AND w.owner = $1
$$;

-- Threads with a run to take, in no order.
CREATE OR REPLACE FUNCTION system_due(most BIGINT) RETURNS TABLE (tenant TEXT, thread_id UUID)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT due.tenant, due.thread_id FROM (
        SELECT DISTINCT r.tenant, r.thread_id FROM runs r
        JOIN thread_work w ON w.tenant = r.tenant AND w.thread_id = r.thread_id
        WHERE r.finished_at IS NULL AND r.status <> 'waiting' AND CASE
            WHEN w.active_run IS NULL THEN r.status = 'queued'
            ELSE r.run_id = w.active_run AND NOT EXISTS (
                SELECT 1 FROM servers s
                WHERE s.owner = w.owner
                    AND s.lease_until >= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
        END
    ) AS due ORDER BY random() LIMIT $1
$$;

-- Open approvals of which a webhook has to be told.
CREATE OR REPLACE FUNCTION system_due_notifications(most BIGINT) RETURNS TABLE (tenant TEXT, approval_id UUID)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT a.tenant, a.approval_id FROM approvals a
    WHERE a.status = 'pending' AND a.notify_at <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
        AND a.expires_at > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    ORDER BY a.notify_at LIMIT $1
$$;

-- Push notification configurations whose run has another status than at the last look, or that are to be looked at again; few of
-- each tenant.
CREATE OR REPLACE FUNCTION system_due_push(most BIGINT) RETURNS TABLE (tenant TEXT, task_id UUID, config_id TEXT)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT d.tenant, d.task_id, d.config_id FROM (
        SELECT p.tenant, p.task_id, p.config_id, p.due_at,
            row_number() OVER (PARTITION BY p.tenant ORDER BY p.due_at) AS place
        FROM push_configs p JOIN runs r ON r.tenant = p.tenant AND r.run_id = p.run_id
        WHERE p.due_at <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
            AND (p.recheck = 1 OR p.seen <> r.status)
    ) d WHERE d.place <= 8 ORDER BY d.due_at LIMIT $1
$$;

-- Approvals that nobody decided in time.
CREATE OR REPLACE FUNCTION system_overdue(most BIGINT) RETURNS TABLE (tenant TEXT, approval_id UUID)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT a.tenant, a.approval_id FROM approvals a
    WHERE a.status = 'pending' AND a.expires_at <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    LIMIT $1
$$;

CREATE OR REPLACE FUNCTION system_claims(holding TEXT) RETURNS BIGINT
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT count(*) FROM runs r
    JOIN thread_work w ON w.tenant = r.tenant AND w.thread_id = r.thread_id
    WHERE r.finished_at IS NULL AND r.status <> 'waiting' AND w.active_run = r.run_id AND w.owner = $1
$$;

-- A function cannot be replaced by one with another result.
DROP FUNCTION IF EXISTS system_key(TEXT);
CREATE FUNCTION system_key(hashed TEXT) RETURNS TABLE (
    tenant TEXT, key_id UUID, user_id TEXT, roles TEXT, prefix TEXT, created_at BIGINT, revoked_at BIGINT,
    name TEXT, scopes TEXT, expires_at BIGINT, last_used_at BIGINT
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT k.tenant, k.key_id, k.user_id, k.roles, k.prefix, k.created_at, k.revoked_at,
        k.name, k.scopes, k.expires_at, k.last_used_at
    FROM api_keys k
    WHERE k.hash = $1 AND k.revoked_at IS NULL
$$;

-- Tenants whose audit trail has entries after its last seal, or whose last seal was signed with another key. Chain 16 says how many
-- entries are sealed.
DROP FUNCTION IF EXISTS system_unsealed();
CREATE OR REPLACE FUNCTION system_unsealed(signer TEXT) RETURNS SETOF TEXT
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT c.tenant FROM audit_chains c GROUP BY c.tenant
    HAVING sum(CASE WHEN c.chain < 16 THEN c.entries ELSE -c.entries END) <> 0
        OR ($1 <> '' AND bool_or(c.chain = 16 AND c.entries > 0 AND c.key_id <> $1))
$$;

-- Retention of the audit trail. Each removes rows of the caller's tenant only, and only what the record of the truncation will cover:
-- verification reports any other removal.
CREATE OR REPLACE FUNCTION audit_remove(of_tenant TEXT, of_chain BIGINT, up_to BIGINT) RETURNS BIGINT
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    WITH removed AS (
        DELETE FROM audit
        WHERE tenant = $1 AND tenant = current_setting('baton.tenant', true) AND chain = $2 AND number <= $3
        RETURNING 1
    ) SELECT count(*) FROM removed
$$;

CREATE OR REPLACE FUNCTION audit_remove_seals(of_tenant TEXT, up_to BIGINT) RETURNS BIGINT
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    WITH removed AS (
        DELETE FROM audit_seals
        WHERE tenant = $1 AND tenant = current_setting('baton.tenant', true) AND number <= $2
        RETURNING 1
    ) SELECT count(*) FROM removed
$$;

CREATE OR REPLACE FUNCTION audit_remove_name(of_tenant TEXT, of_name TEXT, up_to BIGINT) RETURNS BIGINT
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    WITH removed AS (
        DELETE FROM audit_names AS n
        WHERE n.tenant = $1 AND n.tenant = current_setting('baton.tenant', true) AND n.name = $2 AND n.at <= $3
            AND NOT EXISTS (
                SELECT 1 FROM audit AS a WHERE a.tenant = n.tenant AND a.chain = n.chain AND a.number = n.number)
        RETURNING 1
    ) SELECT count(*) FROM removed
$$;

DO $$
DECLARE
    found regprocedure;
BEGIN
    FOR found IN SELECT oid FROM pg_proc WHERE pronamespace = 'baton'::regnamespace LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', found);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO baton_app', found);
    END LOOP;
END $$;
