//! The caller's own identity.

use baton_core::Permission;
use baton_models::scripted::Scripted;
use baton_server::identity::roles::PERMISSIONS;
use serde_json::json;

use crate::described::body;
use crate::site::Plan;

const ROUTE: &str = "/api/v1/me";

#[tokio::test]
async fn me_names_the_tenant_the_user_and_every_permission() {
    let custom = |settings: &mut baton_server::ServerSettings| {
        let permissions = ["audit:*", "deploy:run"].map(|text| Permission::parse(text).unwrap());
        settings.auth.roles.insert("auditor".to_owned(), permissions.to_vec());
    };
    let site = Plan::new(&Scripted::default()).required().settings(custom).start().await;
    let viewer = site.visitor("ann", "viewer").await.get(ROUTE).await;
    let expected = json!({
        "tenant_id": "acme", "user_id": "ann", "roles": ["viewer"], "permissions": ["thread:read", "agent:read"],
        "auth": "required",
    });
    assert_eq!(body(viewer, "get", ROUTE).await, expected);
    let admin = body(site.visitor("root", "admin").await.get(ROUTE).await, "get", ROUTE).await;
    assert_eq!(admin["permissions"], json!(PERMISSIONS));
    let auditor = body(site.visitor("olga", "auditor").await.get(ROUTE).await, "get", ROUTE).await;
    assert_eq!(auditor["permissions"], json!(["audit:read", "audit:*", "deploy:run"]));
    assert_eq!(site.get(ROUTE).await.status(), 401);
    site.end().await;
}

#[tokio::test]
async fn me_is_the_local_administrator_in_open_mode() {
    let site = Plan::new(&Scripted::default()).start().await;
    let me = body(site.get(ROUTE).await, "get", ROUTE).await;
    assert_eq!(
        (&me["tenant_id"], &me["user_id"], &me["auth"]),
        (&json!("default"), &json!("local"), &json!("open"))
    );
    assert_eq!(me["permissions"], json!(PERMISSIONS));
    site.end().await;
}
