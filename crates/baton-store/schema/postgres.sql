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

-- Nobody changes or removes what is in the trail.
REVOKE UPDATE, DELETE ON audit FROM baton_app;
REVOKE UPDATE, DELETE ON audit_seals FROM baton_app;
REVOKE DELETE ON audit_chains FROM baton_app;

-- Updated by almost every transaction: new versions of a row find room on its own page.
ALTER TABLE audit_chains SET (fillfactor = 50);

-- The few questions that concern all tenants. They run as the owner of the tables, and answer nothing else.
CREATE OR REPLACE FUNCTION system_tenants() RETURNS SETOF TEXT
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT tenant FROM tenants ORDER BY tenant
$$;

-- Threads with a run that nobody works on, those that have waited longest first.
CREATE OR REPLACE FUNCTION system_due(most BIGINT) RETURNS TABLE (tenant TEXT, thread_id TEXT)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT due.tenant, due.thread_id FROM (
        (SELECT t.tenant, t.thread_id, t.updated_at AS since FROM threads t
        WHERE t.active_run IS NULL AND t.queued > 0
        ORDER BY t.updated_at LIMIT $1)
        UNION ALL
        (SELECT t.tenant, t.thread_id, coalesce(t.lease_until, 0) AS since FROM threads t
        WHERE t.active_run IS NOT NULL AND (
            t.lease_until IS NULL OR t.lease_until < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
        ORDER BY t.lease_until NULLS FIRST LIMIT $1)
    ) AS due ORDER BY due.since LIMIT $1
$$;

CREATE OR REPLACE FUNCTION system_owners() RETURNS SETOF TEXT
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT DISTINCT t.owner FROM threads t WHERE t.active_run IS NOT NULL AND t.owner IS NOT NULL ORDER BY t.owner
$$;

CREATE OR REPLACE FUNCTION system_release(gone TEXT) RETURNS BIGINT
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    WITH released AS (
        UPDATE threads t SET lease_until = 0 WHERE t.active_run IS NOT NULL AND t.owner = $1 RETURNING 1
    )
    SELECT count(*) FROM released
$$;

CREATE OR REPLACE FUNCTION system_key(hashed TEXT) RETURNS TABLE (
    tenant TEXT, key_id TEXT, user_id TEXT, roles TEXT, prefix TEXT, created_at BIGINT, revoked_at BIGINT
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT k.tenant, k.key_id, k.user_id, k.roles, k.prefix, k.created_at, k.revoked_at FROM api_keys k
    WHERE k.hash = $1 AND k.revoked_at IS NULL
$$;

-- Tenants whose audit trail has entries after its last seal. Chain 16 says how many are sealed.
CREATE OR REPLACE FUNCTION system_unsealed() RETURNS SETOF TEXT
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = baton, pg_temp AS $$
    SELECT c.tenant FROM audit_chains c GROUP BY c.tenant
    HAVING sum(CASE WHEN c.chain < 16 THEN c.entries ELSE -c.entries END) <> 0
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
