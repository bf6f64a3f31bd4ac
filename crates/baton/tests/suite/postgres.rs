//! A PostgreSQL database for a test.

use tokio_postgres::NoTls;

/// The address of a database that nobody else uses. The server is the one that `make test` started.
pub fn new_span_id() -> String {
    let Ok(server) = std::env::var("BATON_TEST_POSTGRES") else {
        panic!("no PostgreSQL to test with: start the tests with `make test`, or set BATON_TEST_POSTGRES");
    };
    let name = format!("baton_{}", uuid::Uuid::new_v4().simple());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&server, NoTls).await.unwrap();
        let create = format!("CREATE DATABASE {name}");
        tokio::select! {
            made = client.batch_execute(&create) => made.unwrap(),
            ended = connection => ended.unwrap(),
        }
    });
    let (address, _) = server.rsplit_once('/').expect("an address with a database");
    format!("{address}/{name}")
}
