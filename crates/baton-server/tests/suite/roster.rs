//! The state of the agent files.

use std::sync::Arc;

use baton_agents::{KnownNames, Rejected, Roster, RosterDraft, SourceFile};
use baton_models::scripted::Scripted;
use baton_server::RosterState;
use serde_json::{Value, json};

use crate::described::body;
use crate::site::{Plan, Site};

const ROUTE: &str = "/api/v1/roster";

fn read(file: &str) -> Result<Roster, Rejected> {
    RosterDraft::parse(&[SourceFile::new("assistant.md", file)], &KnownNames::default(), Vec::new()).finish()
}

async fn roster(site: &Site) -> Value {
    body(site.get(ROUTE).await, "get", ROUTE).await
}

#[tokio::test]
async fn warnings_of_the_files_in_use_are_shown_with_their_lines() {
    let file = "---\ndescription: Helps.\nwingspan: wide\n---\nYou help.\n";
    let site = Plan::new(&Scripted::default()).agent("assistant", file).start().await;
    let seen = roster(&site).await;
    assert_eq!((&seen["status"], &seen["agents"]), (&json!("current"), &json!(1)));
    assert_eq!(seen["loaded_at"], seen["checked_at"]);
    let [found] = seen["diagnostics"].as_array().unwrap().as_slice() else { panic!("{seen:#}") };
    assert_eq!((&found["rule"], &found["line"]), (&json!("unknown-key"), &json!(3)));
    let lines = ["---", "description: Helps.", "wingspan: wide", "---", "You help."];
    let lines: Vec<Value> =
        (1..).zip(lines).map(|(line, text): (u32, _)| json!({ "line": line, "text": text })).collect();
    assert_eq!(found["excerpt"], json!(lines));
    site.end().await;
}

#[tokio::test]
async fn rejected_files_leave_the_last_good_agents_active() {
    let site = Plan::new(&Scripted::default()).start().await;
    let before = roster(&site).await;
    let broken =
        "---\ndescription: Helps.\nmax_turns: many\nauth:\n  token: hunter2hunter2\n---\nYou help.\n";
    let rejected = read(broken).unwrap_err();
    site.rosters.send_modify(|state| state.keep(rejected));
    let seen = roster(&site).await;
    assert_eq!((&seen["status"], &seen["agents"]), (&json!("last_good"), &json!(1)));
    assert_eq!(seen["loaded_at"], before["loaded_at"]);
    assert!(seen["checked_at"].as_str() > before["checked_at"].as_str());
    let errors: Vec<&Value> =
        seen["diagnostics"].as_array().unwrap().iter().filter(|one| one["severity"] == "error").collect();
    assert!(!errors.is_empty(), "{seen:#}");
    assert!(!seen.to_string().contains("hunter2"), "secrets are masked: {seen:#}");
    assert_eq!(site.get("/api/v1/agents/assistant").await.status(), 200, "it can still be asked");
    let good = read("---\ndescription: Helps again.\n---\nYou help.\n").unwrap();
    site.rosters.send_replace(RosterState::loaded(Arc::new(good)));
    let mended = roster(&site).await;
    assert_eq!((&mended["status"], &mended["diagnostics"]), (&json!("current"), &json!([])));
    site.end().await;
}
