//! PostgreSQL keeps tenants apart by itself, whatever a statement says.

use baton_core::{Store as _, StoreError};
use jiff::Timestamp;
use serde_json::json;
use tokio_postgres::Client;

use crate::support::{LEASE, acme, append, claimed, connect, count, fresh_postgres, open_postgres, owner};

/// Past Baton, but under the role it works under.
async fn as_application(url: &str) -> Client {
    let client = connect(url).await;
    client.batch_execute("SET ROLE baton_app; SET search_path = baton").await.unwrap();
    client
}

const TABLES: &str = "SELECT relname::text, relrowsecurity,
        EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'tenant' AND NOT attisdropped),
        (SELECT count(*) FROM pg_policies WHERE schemaname = 'baton' AND tablename = relname
            AND qual LIKE '(tenant = current_setting(%' AND with_check = qual AND cmd = 'ALL')
    FROM pg_class c
    WHERE relnamespace = 'baton'::regnamespace AND relkind IN ('r', 'p', 'm', 'v', 'f') AND relname NOT IN ('baton_schema', 'servers', 'duties')";

#[tokio::test]
async fn every_table_has_a_tenant_and_a_policy() {
    let (_store, url) = fresh_postgres().await;
    let tables = connect(&url).await.query(TABLES, &[]).await.unwrap();
    assert!(tables.len() > 10);
    for table in tables {
        let name: String = table.get(0);
        assert!(table.get::<_, bool>(1), "{name} has no row-level security");
        assert!(table.get::<_, bool>(2), "{name} has no tenant");
        assert_eq!(table.get::<_, i64>(3), 1, "{name} has no policy for its tenant");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_tenant_there_is_nothing() {
    let (store, url) = fresh_postgres().await;
    let tenant = acme(&store);
    let claim = claimed(&*tenant, "one").await;
    tenant.append(&claim, append(1)).await.unwrap();
    tenant.keep("weather", json!("rain"), Timestamp::MAX).await.unwrap();

    let (owner, application) = (connect(&url).await, as_application(&url).await);
    let mut filled = 0;
    for table in owner.query(TABLES, &[]).await.unwrap() {
        let all = format!("SELECT count(*) FROM baton.{}", table.get::<_, &str>(0));
        filled += i64::from(count(&owner, &all).await > 0);
        assert_eq!(count(&application, &all).await, 0, "{all}");
    }
    assert!(filled >= 7, "there was something to see in {filled} tables");

    application.batch_execute("SELECT set_config('baton.tenant', 'acme', false)").await.unwrap();
    assert_eq!(count(&application, "SELECT count(*) FROM threads").await, 1);
    application.batch_execute("SELECT set_config('baton.tenant', 'rival', false)").await.unwrap();
    assert_eq!(count(&application, "SELECT count(*) FROM threads").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_can_be_written_for_another_tenant() {
    let (store, url) = fresh_postgres().await;
    acme(&store).keep("weather", json!("rain"), Timestamp::MAX).await.unwrap();
    let application = as_application(&url).await;
    application.batch_execute("SELECT set_config('baton.tenant', 'acme', false)").await.unwrap();
    for forbidden in [
        "INSERT INTO results (tenant, key, value, expires_at) VALUES ('rival', 'k', '1', 1)",
        "UPDATE results SET tenant = 'rival'",
        "UPDATE audit SET entries = 'nobody'",
        "UPDATE audit_names SET name = 'nobody'",
        "UPDATE audit_threads SET thread_number = 0",
        "DELETE FROM audit",
        "UPDATE audit_seals SET at = 0",
        "DELETE FROM audit_seals",
        "DELETE FROM audit_chains",
        "TRUNCATE results",
        "ALTER TABLE results DISABLE ROW LEVEL SECURITY",
        "UPDATE baton_schema SET version = 0",
    ] {
        let error = application.batch_execute(forbidden).await.expect_err(forbidden);
        assert_eq!(error.code().unwrap().code(), "42501", "{forbidden}: {error:?}");
    }
    let allowed = "INSERT INTO results (tenant, key, value, expires_at) VALUES ('acme', 'k', '1', 1)";
    application.batch_execute(allowed).await.unwrap();
}

const FUNCTIONS: &str = "SELECT proname::text, prosecdef, 'search_path=baton, pg_temp' = ANY(proconfig),
        has_function_privilege('baton_app', oid, 'EXECUTE'),
        EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee = 0)
    FROM pg_proc WHERE pronamespace = 'baton'::regnamespace";

#[tokio::test]
async fn questions_about_all_tenants_are_only_for_baton() {
    let (_store, url) = fresh_postgres().await;
    let functions = connect(&url).await.query(FUNCTIONS, &[]).await.unwrap();
    assert_eq!(functions.len(), 13);
    for function in functions {
        let name: String = function.get(0);
        let [definer, fixed_path, ours, public] = [1, 2, 3, 4].map(|at| function.get::<_, bool>(at));
        assert!(definer && fixed_path && ours && !public, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_lost_a_thread_cannot_write_to_it() {
    let (first, url) = fresh_postgres().await;
    let second = open_postgres(&url).await.unwrap();
    let (paused, alive) = (acme(&first), acme(&second));
    first.beat(&owner("paused"), LEASE).await.unwrap();
    let stale = claimed(&*paused, "paused").await;
    paused.append(&stale, append(1)).await.unwrap();
    assert!(alive.claim(stale.thread_id, &owner("alive")).await.unwrap().is_none(), "it is taken");

    assert_eq!(second.release(&owner("paused")).await.unwrap(), 1);
    assert_eq!(second.due(10).await.unwrap().len(), 1);
    let taken = alive.claim(stale.thread_id, &owner("alive")).await.unwrap().unwrap().claim;
    assert!(taken.epoch > stale.epoch);

    assert_eq!(paused.append(&stale, append(2)).await.unwrap_err(), StoreError::Fenced);
    alive.append(&taken, append(1)).await.unwrap();
    let events = paused.events(stale.thread_id, 0, 10).await.unwrap();
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(second.owners().await.unwrap(), []);
}
