//! What the server works with.

use baton_models::scripted::Scripted;
use baton_server::system::{McpFacts, McpState, ProviderFacts, StoreKind, SystemFacts};
use serde_json::{Value, json};

use crate::described::body;
use crate::site::{Plan, Site};

const ROUTE: &str = "/api/v1/system";

async fn site() -> Site {
    let inspect = |tenant: &baton_core::TenantId| {
        let mcp = |name: &str, is_http, state| McpFacts { name: name.to_owned(), is_http, state };
        let provider = |name: &str, is_configured| ProviderFacts {
            name: name.to_owned(),
            is_configured,
            key_variable: Some(format!("{}_API_KEY", name.to_uppercase())),
        };
        let failed = McpState::Failed { reason: "cannot start `/home/ada/bin/serve`".to_owned() };
        SystemFacts {
            store: StoreKind::Postgres,
            providers: vec![provider("openai", true), provider("gemini", false)],
            mcp_servers: vec![
                mcp(tenant.as_str(), false, McpState::Idle),
                mcp("web", true, McpState::Running { tools: Some(3) }),
                mcp("files", false, failed),
            ],
        }
    };
    Plan::new(&Scripted::default()).required().inspect(Box::new(inspect)).start().await
}

async fn seen_by(site: &Site, role: &str) -> Value {
    body(site.visitor("ann", role).await.get(ROUTE).await, "get", ROUTE).await
}

#[tokio::test]
async fn the_system_is_shown_without_details_that_only_operators_need() {
    let site = site().await;
    let seen = seen_by(&site, "viewer").await;
    for (field, value) in [
        ("version", json!("0.0.0-test")),
        ("store", json!({ "kind": "postgres", "status": "ok" })),
        ("default_model", json!("scripted/m")),
        ("offline", json!(false)),
        (
            "providers",
            json!([{ "name": "openai", "configured": true }, { "name": "gemini", "configured": false }]),
        ),
        (
            "mcp_servers",
            json!([
                { "name": "acme", "transport": "stdio", "state": "idle" },
                { "name": "web", "transport": "http", "state": "running", "tools": 3 },
                { "name": "files", "transport": "stdio", "state": "failed" },
            ]),
        ),
        ("agents", json!(1)),
        ("active_runs", json!(null)),
    ] {
        assert_eq!(seen[field], value, "{field}");
    }
    assert!(seen["started_at"].is_string());
    site.end().await;
}

#[tokio::test]
async fn details_need_metrics_read_and_name_no_folder() {
    let site = site().await;
    let seen = seen_by(&site, "admin").await;
    assert_eq!(seen["providers"][1]["key_variable"], "GEMINI_API_KEY");
    assert_eq!(seen["mcp_servers"][2]["error"], "cannot start `serve`");
    assert!(!seen.to_string().contains("/home"), "{seen}");
    site.end().await;
}

#[tokio::test]
async fn a_store_that_is_closed_is_unavailable() {
    let site = Plan::new(&Scripted::default()).start().await;
    site.app.store().close().await.unwrap();
    let seen = body(site.get(ROUTE).await, "get", ROUTE).await;
    assert_eq!(seen["store"], json!({ "kind": "sqlite", "status": "unavailable" }));
    site.end().await;
}
