//! Opening a PostgreSQL: whoever may, however many at once, and what is said when it cannot be.

use baton_core::{StoreError, ThreadId};
use futures_util::future::join_all;
use uuid::Uuid;

use crate::support::{
    Server, acme, connect, count, fresh_database, fresh_postgres, message, open_postgres, server,
};

#[tokio::test(flavor = "multi_thread")]
async fn many_servers_start_at_once() {
    // A server that has never seen Baton: the role is missing too, and belongs to all databases.
    let server = Server::start();
    let urls = [
        fresh_database(&server.url).await,
        fresh_database(&server.url).await,
        fresh_database(&server.url).await,
    ];
    let opened = join_all(urls.iter().chain(&urls).map(|url| open_postgres(url))).await;
    assert!(opened.iter().all(Result::is_ok), "{opened:?}");
    let admin = connect(&urls[0]).await;
    assert_eq!(count(&admin, "SELECT count(*) FROM baton.baton_schema").await, 1);
}

/// A user who may log in and nothing else.
async fn user(url: &str) -> (String, url::Url) {
    let name = format!("user_{}", Uuid::new_v4().simple());
    let admin = connect(url).await;
    admin.batch_execute(&format!("CREATE ROLE {name} LOGIN PASSWORD 'hushhush'")).await.unwrap();
    let mut address = url::Url::parse(url).unwrap();
    address.set_username(&name).unwrap();
    address.set_password(Some("hushhush")).unwrap();
    (name, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_rights_learns_what_an_administrator_has_to_do() {
    // The role belongs to the whole server, so there is one now.
    let _ = fresh_postgres().await;
    let url = fresh_database(&server()).await;
    let (name, address) = user(&url).await;
    let error = open_postgres(address.as_str()).await.unwrap_err();
    let StoreError::Failed(text) = &error else { panic!("{error}") };
    assert!(!text.contains("hushhush"), "{text}");

    let (_, orders) = text.split_once("in this database: ").expect("what to run");
    let orders = orders.replace("CREATE ROLE baton_app NOLOGIN;", "");
    assert!(orders.contains(&name));
    connect(&url).await.batch_execute(&orders).await.unwrap();
    let store = open_postgres(address.as_str()).await.expect("the user owns the schema now");
    acme(&store).accept(message(ThreadId::random(), "hello")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_the_role_needs_no_other_right() {
    let (_store, url) = fresh_postgres().await;
    let (name, address) = user(&url).await;
    let error = open_postgres(address.as_str()).await.unwrap_err();
    assert!(error.to_string().contains("GRANT baton_app"), "{error}");
    connect(&url).await.batch_execute(&format!("GRANT baton_app TO {name}")).await.unwrap();
    let store = open_postgres(address.as_str()).await.unwrap();
    acme(&store).accept(message(ThreadId::random(), "hello")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_with_too_many_rights_is_refused() {
    // The role belongs to the whole server, so this needs one of its own.
    let server = Server::start();
    drop(open_postgres(&server.url).await.unwrap());
    let admin = connect(&server.url).await;
    for right in ["BYPASSRLS", "SUPERUSER"] {
        admin.batch_execute(&format!("ALTER ROLE baton_app {right}")).await.unwrap();
        let error = open_postgres(&server.url).await.unwrap_err();
        assert!(error.to_string().contains("row-level security"), "{error}");
        admin.batch_execute(&format!("ALTER ROLE baton_app NO{right}")).await.unwrap();
    }
    open_postgres(&server.url).await.unwrap();
}

#[tokio::test]
async fn a_newer_schema_is_left_alone() {
    let (_store, url) = fresh_postgres().await;
    connect(&url).await.batch_execute("UPDATE baton.baton_schema SET version = 1000").await.unwrap();
    let error = open_postgres(&url).await.unwrap_err();
    assert!(error.to_string().contains("newer Baton"), "{error}");
}

/// Hops of such a store lack a column.
#[tokio::test]
async fn a_schema_of_a_development_version_is_refused() {
    let (_store, url) = fresh_postgres().await;
    let drop_column = "ALTER TABLE baton.hops DROP COLUMN win";
    connect(&url).await.batch_execute(drop_column).await.unwrap();
    let error = open_postgres(&url).await.unwrap_err();
    assert!(error.to_string().contains("development version"), "{error}");
}

#[tokio::test]
async fn other_tables_of_the_database_are_left_alone() {
    let url = fresh_database(&server()).await;
    let admin = connect(&url).await;
    admin
        .batch_execute("CREATE TABLE threads (tenant TEXT); INSERT INTO threads VALUES ('x')")
        .await
        .unwrap();
    let _store = open_postgres(&url).await.unwrap();
    let secured = "SELECT count(*) FROM pg_class WHERE oid = 'public.threads'::regclass AND relrowsecurity";
    assert_eq!(count(&admin, secured).await, 0);
    assert_eq!(count(&admin, "SELECT count(*) FROM threads").await, 1);
}

#[tokio::test]
async fn a_server_that_is_not_there() {
    let error = open_postgres("postgres://baton:hushhush@127.0.0.1:1/baton").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    assert!(!format!("{error:?}").contains("hushhush"));
    let error = open_postgres(&server().replace("/postgres", "/no_such_database")).await.unwrap_err();
    assert!(matches!(&error, StoreError::Failed(text) if text.contains("no_such_database")), "{error}");
}
