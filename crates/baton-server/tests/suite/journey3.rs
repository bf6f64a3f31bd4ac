//! Journey 3: a program has several agents research for it. Written as such a program is: with an HTTP client, JSON and nothing of
//! Baton.
//!
//! 1. It sends a research query with a thread id. 2. The main agent understands what is wanted. 3. Two agents work at the same time.
//! 4. Results stream back as they come. 5. There is one answer that says where it comes from. 6. Each result can be read by itself.

mod streamed;

use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};

use crate::site::{Plan, Site};

const THREAD: &str = "550e8400-e29b-41d4-a716-446655440000";
const QUERY: &str = "Electric cargo bikes: what does the market say, and what do we know ourselves?";

fn plan(model: &Scripted) -> Plan {
    let assistant = "---\ndescription: Answers questions.\ndisplay_name: Assistant\nagents: [web-research, internal-docs]\n---\nYou answer.\n";
    Plan::new(model)
        .agent("assistant", assistant)
        .agent(
            "web-research",
            "---\ndescription: Searches the web.\ndisplay_name: Web Research\n---\nYou search.\n",
        )
        .agent(
            "internal-docs",
            "---\ndescription: Knows our documents.\ndisplay_name: Internal Docs\n---\nYou know.\n",
        )
}

/// The main agent decides to ask both.
fn delegates() -> ScriptedTurn {
    let arguments =
        json!({"agents": ["web-research", "internal-docs"], "message": QUERY, "strategy": "parallel"});
    ScriptedTurn::call("delegate", &arguments)
}

async fn post(site: &Site, route: &str, accept: &str, body: &Value) -> reqwest::Response {
    let url = format!("http://{}/api/v1/threads/{THREAD}/{route}", site.address);
    reqwest::Client::new().post(url).header("accept", accept).json(body).send().await.expect("an answer")
}

fn research() -> Value {
    json!({"agents": ["web-research", "internal-docs"], "message": QUERY})
}

/// J3.1, J3.3, J3.5, J3.6: full control, without a model that decides: both are asked, the text says who said what, and each result is
/// there by itself.
#[tokio::test]
async fn j3_6_a_program_asks_two_agents_and_reads_each_result() {
    let model = Scripted::default()
        .script("web-research", [ScriptedTurn::text("The market grows.")])
        .script("internal-docs", [ScriptedTurn::text("We sold 400.")]);
    let site = plan(&model).start().await;
    let answer = post(&site, "delegations", "application/json", &research()).await;
    assert_eq!(answer.status(), 200);
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(
        answer["synthesis"],
        "From web-research:\nThe market grows.\n\nFrom internal-docs:\nWe sold 400."
    );
    let results: Vec<(&str, &str)> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["agent_id"].as_str().unwrap(), one["response"].as_str().unwrap()))
        .collect();
    assert_eq!(results, [("web-research", "The market grows."), ("internal-docs", "We sold 400.")]);
    site.end().await;
}

/// Journey 3 when things go wrong: one agent fails, one takes too long, all fail, one does not exist.
#[tokio::test]
async fn j3_what_goes_wrong_is_said_and_breaks_nothing_else() {
    let model = Scripted::default()
        .script("web-research", [ScriptedTurn::default().hang()])
        .script("internal-docs", [ScriptedTurn::text("We sold 400.")]);
    let site = plan(&model).start().await;
    let mut late = research();
    late["timeout_ms"] = json!(2_000);
    late["strategy"] = json!("sequential");
    let answer: Value = post(&site, "delegations", "application/json", &late).await.json().await.unwrap();
    assert_eq!(answer["results"][0]["error_type"], "timeout");
    assert_eq!(
        (&answer["status"], &answer["synthesis"]),
        (&json!("completed"), &json!("We sold 400.")),
        "{answer}"
    );

    // Neither has anything left to say.
    let answer: Value =
        post(&site, "delegations", "application/json", &research()).await.json().await.unwrap();
    assert_eq!(answer["synthesis"], "All sub-agents failed to provide responses.");
    assert!(answer["results"].as_array().unwrap().iter().all(|one| one["error"].is_string()));

    let unknown = json!({"agents": ["web-reserch"], "message": QUERY});
    let answer = post(&site, "delegations", "application/json", &unknown).await;
    assert_eq!(answer.status(), 404);
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(
        (&problem["code"], &problem["nearest"]),
        (&json!("agent_not_found"), &json!(["web-research"]))
    );
    site.end().await;
}
