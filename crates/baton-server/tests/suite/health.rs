//! Whether the server lives and is ready.

use baton_models::scripted::Scripted;

use crate::site::Plan;

#[tokio::test]
async fn it_lives_and_is_ready() {
    let site = Plan::new(&Scripted::default()).start().await;
    for path in ["/livez", "/readyz", "/version"] {
        assert_eq!(site.get(path).await.status(), 200, "{path}");
    }
    let missing = site.get("/api/v1/nothing").await;
    assert_eq!(missing.headers()["content-type"], "application/problem+json");
    let problem: serde_json::Value = missing.json().await.unwrap();
    assert_eq!(problem["code"], "not_found");
    assert_eq!(problem["trace_id"].as_str().unwrap().len(), 32);
    site.end().await;
}
