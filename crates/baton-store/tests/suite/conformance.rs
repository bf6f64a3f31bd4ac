//! What every store has to pass, one test per property and database.

macro_rules! on_sqlite {
    ($($module:ident :: $property:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $property() {
            let (store, _folder) = crate::support::fresh_sqlite().await;
            baton_store::conformance::$module::$property(&store).await;
        })*
    };
}

macro_rules! on_postgres {
    ($($module:ident :: $property:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $property() {
            let (store, _url) = crate::support::fresh_postgres().await;
            baton_store::conformance::$module::$property(&store).await;
        })*
    };
}

mod sqlite {
    baton_store::each_property!(on_sqlite);
}

mod postgres {
    baton_store::each_property!(on_postgres);
}

/// Reads and writes share the one connection that a store in memory has.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_memory_passes_it_all() {
    let make = async || {
        let store = baton_store::open("sqlite::memory:", std::path::Path::new(".")).await.unwrap();
        std::sync::Arc::new(store) as std::sync::Arc<dyn baton_core::Store>
    };
    baton_store::conformance::all(make).await;
}
