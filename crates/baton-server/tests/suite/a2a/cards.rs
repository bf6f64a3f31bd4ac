//! Agent cards.

use baton_models::scripted::Scripted;
use baton_server::a2a::settings::{A2aSettings, CardForm};
use http::Method;
use serde_json::{Value, json};

use super::{check, plan};

const LEAD: &str = "---\ndescription: Leads.\nagents: [maker]\n---\nYou lead.\n";
const MAKER: &str = "---\ndescription: Makes skills.\ndisplay_name: Skill Maker\naccepts_handoff:\n  triggers: [create skill, build \
                     skill, new skill]\nworkflow:\n  states:\n    - name: gathering\n      collect: [{key: name, ask: What is it \
                     called?}]\n    - name: done\n---\nYou make skills.\n";

fn site() -> crate::site::Plan {
    plan(&Scripted::default()).agent("assistant", LEAD).agent("maker", MAKER)
}

#[tokio::test]
async fn d11_the_card_is_at_both_paths_and_of_the_schema() {
    let site = site().start().await;
    let root: Value = site.get("/.well-known/agent-card.json").await.json().await.unwrap();
    check("AgentCard", &root);
    assert_eq!(root["protocolVersion"], "0.3.0");
    assert_eq!(root["url"], site.url("/"));
    assert_eq!(root["capabilities"]["streaming"], true);
    assert_eq!(root["capabilities"]["pushNotifications"], false);
    assert!(root.get("securitySchemes").is_none(), "nothing is enforced in open mode");
    let old: Value = site.get("/.well-known/agent.json").await.json().await.unwrap();
    assert_eq!(old, root);
    let maker: Value = site.get("/a2a/maker/.well-known/agent-card.json").await.json().await.unwrap();
    check("AgentCard", &maker);
    assert_eq!((&maker["name"], &maker["url"]), (&json!("Skill Maker"), &json!(site.url("/a2a/maker"))));
    assert_eq!(site.get("/a2a/unknown/.well-known/agent-card.json").await.status(), 404);
    site.end().await;
}

#[tokio::test]
async fn c_21_c_22_and_b11_capabilities_are_parameters_of_the_extension() {
    let site = site().start().await;
    let params = async |path: &str| {
        let card: Value = site.get(path).await.json().await.unwrap();
        let extension = card["capabilities"]["extensions"][0].clone();
        assert_eq!(extension["uri"], "https://baton.dev/a2a/extensions/orchestration/v1");
        extension["params"].clone()
    };
    let maker = params("/a2a/maker/.well-known/agent-card.json").await;
    assert_eq!((&maker["handoff_support"], &maker["stateful_workflows"]), (&json!(true), &json!(true)));
    assert_eq!(maker["handoff"]["handoff_triggers"], json!(["create skill", "build skill", "new skill"]));
    assert_eq!(maker["handoff"]["workflow_states"], json!(["gathering", "done"]));
    assert_eq!(maker["handoff"]["max_session_duration_seconds"], 3600);
    let lead = params("/.well-known/agent-card.json").await;
    assert_eq!(lead["handoff"]["supports_handoff"], false);
    assert_eq!(lead["orchestration"]["can_orchestrate"], true);
    assert_eq!(lead["orchestration"]["max_concurrent_delegations"], 5);
    site.end().await;
}

#[tokio::test]
async fn a_card_is_cached_and_follows_the_requested_version() {
    let site = site().start().await;
    let response = site.get("/.well-known/agent-card.json").await;
    let tag = response.headers()["etag"].clone();
    assert!(response.headers()["cache-control"].to_str().unwrap().contains("max-age"));
    assert!(response.headers()["vary"].to_str().unwrap().contains("a2a-version"));
    let get = |name: &str, value: &str| {
        site.http
            .get(site.url("/.well-known/agent-card.json"))
            .header(name.to_owned(), value.to_owned())
            .send()
    };
    assert_eq!(get("if-none-match", tag.to_str().unwrap()).await.unwrap().status(), 304);
    let new: Value = get("a2a-version", "1.0").await.unwrap().json().await.unwrap();
    assert!(new.get("url").is_none() && new["supportedInterfaces"].is_array());
    let old: Value = get("a2a-version", "0.3").await.unwrap().json().await.unwrap();
    assert!(old.get("supportedInterfaces").is_none());
    site.end().await;
}

#[tokio::test]
async fn a_card_shows_what_is_enforced_and_never_a_forged_address() {
    let forged = |site: &crate::site::Site| {
        site.http.get(site.url("/.well-known/agent-card.json")).header("host", "evil.example").send()
    };
    let plain = site().required().start().await;
    assert_eq!(forged(&plain).await.unwrap().status(), 404);
    let card: Value = plain.get("/.well-known/agent-card.json").await.json().await.unwrap();
    assert_eq!(card["securitySchemes"]["bearer"]["type"], "http");
    assert_eq!(card["security"], json!([{ "bearer": [] }]));
    plain.end().await;
    let public_url = Some("https://agents.example.com".to_owned());
    let a2a = Some(A2aSettings { public_url, card: CardForm::V03, ..A2aSettings::default() });
    let configured = site().settings(|settings| settings.a2a = a2a).start().await;
    let card: Value = forged(&configured).await.unwrap().json().await.unwrap();
    assert_eq!(card["url"], "https://agents.example.com/");
    assert!(card.get("supportedInterfaces").is_none());
    configured.end().await;
}

#[tokio::test]
async fn the_extended_card_adds_the_agents_it_works_with() {
    let site = site().required().start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let public: Value = site.get("/.well-known/agent-card.json").await.json().await.unwrap();
    assert_eq!(public["supportsAuthenticatedExtendedCard"], true);
    assert_eq!(public["skills"].as_array().unwrap().len(), 1);
    let method = "agent/getAuthenticatedExtendedCard";
    let extended = super::call(ada.request(Method::POST, "/"), method, &json!({})).await["result"].clone();
    let skills: Vec<_> =
        extended["skills"].as_array().unwrap().iter().map(|skill| skill["id"].clone()).collect();
    assert_eq!(skills, ["assistant", "maker"]);
    assert_eq!(ada.see("/v1/card").await, extended);
    let new = ada.see("/extendedAgentCard").await;
    assert!(new["supportedInterfaces"].is_array());
    assert_eq!(site.get("/v1/card").await.status(), 401);
    let native = ada.see("/api/v1/agents/maker/card").await;
    assert_eq!(native["name"], "Skill Maker");
    site.end().await;
}

#[tokio::test]
async fn a_server_without_a2a_has_none_of_it() {
    let site = site().settings(|settings| settings.a2a = None).start().await;
    assert_eq!(site.get("/.well-known/agent-card.json").await.status(), 404);
    assert_eq!(site.post("/a2a/assistant", &json!({})).await.status(), 404);
    assert_eq!(site.get("/api/v1/agents/maker/card").await.status(), 200, "the native API has it anyway");
    site.end().await;
}
