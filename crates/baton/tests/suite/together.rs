//! Runs in which several agents really take part: what the commands say of them, and what AG-UI's own client thinks of their events.

mod agui;
mod explained;

use serde_json::{Value, json};

use crate::baton;
use crate::crash::wire::{self, Answer};

/// Agent files: name and frontmatter.
const AGENTS: &[(&str, &str)] = &[
    ("desk", "agents: [books, law]\ncollaborations: [lead]"),
    ("lead", "team: { members: [sales, ops], termination_mode: consensus, max_rounds: 3 }"),
    ("chair", "team: { members: [sales, ops], max_rounds: 3 }"),
    ("reception", "router: { destinations: [books, law] }"),
    ("draft", "handoff: law"),
    ("advised", "advisors: [law, far]"),
    ("caller", "agents: [books, law]"),
    ("front", "collaborations: [keeper]"),
    (
        "keeper",
        "accepts_handoff: true\nworkflow: { states: [{ name: ask, collect: [{ key: name, ask: Which name? }] }, { name: tell }] }",
    ),
    ("books", ""),
    ("law", ""),
    ("sales", ""),
    ("ops", ""),
    ("far", "kind: remote\nagent_card_url: http://127.0.0.1:1/card.json"),
];

/// What a model says to whoever asks, from what it is offered and how often it has spoken.
fn answer(request: &Value) -> Option<Answer> {
    let messages = request["messages"].as_array()?;
    let system = messages.iter().find(|message| message["role"] == "system")?["content"].as_str()?;
    let agent = system.trim().strip_prefix("You are ")?.strip_suffix('.')?;
    let spoken = messages.iter().filter(|message| message["role"] == "assistant").count();
    let is_asked = messages.last()?["role"] == "user";
    let offered = |tool: &str| {
        let tools = request["tools"].as_array();
        tools.is_some_and(|tools| tools.iter().any(|one| one["function"]["name"] == tool))
    };
    let call = |tool, id: &str, arguments| (tool, format!("call_{agent}_{id}"), arguments);
    let calls = match (agent, spoken) {
        ("desk", 0) => {
            vec![call("delegate", "1", json!({"agents": ["books", "law"], "message": "What do we have?"}))]
        }
        ("desk", 1) => vec![call("transfer_to_lead", "2", json!({"reason": "It needs a decision."}))],
        ("caller", 0) => vec![
            call("call_agent", "1", json!({"mission": "Look it up.", "specialist": "books"})),
            call("call_agent", "2", json!({"mission": "May we?", "specialist": "law"})),
        ],
        ("front", 0) if offered("transfer_to_keeper") => {
            vec![call("transfer_to_keeper", "1", json!({"reason": "It takes a while."}))]
        }
        ("reception", 0) => {
            vec![call("route_to", "1", json!({"agent": "law", "reason": "It is about law."}))]
        }
        // In the first round only one of them is ready.
        ("sales" | "ops", _) if is_asked => vec![
            call("broadcast", "1", json!({"message": format!("{agent} agrees.")})),
            call(
                "vote_conclude",
                "2",
                json!({"ready": agent == "sales" || spoken > 0, "reason": "It is so."}),
            ),
        ],
        ("chair", 0) if offered("conclude_team") => {
            vec![call("conclude_team", "1", json!({"summary": "All agree."}))]
        }
        _ => Vec::new(),
    };
    if calls.is_empty() {
        let frames = vec![wire::text(&format!("{agent} ")), wire::text("answers.")];
        return Some(Answer { frames, finish: "stop" });
    }
    Some(Answer { frames: vec![wire::calls(&calls)], finish: "tool_calls" })
}

fn project() -> tempfile::TempDir {
    let base_url = wire::serve(answer);
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    for (name, head) in AGENTS {
        let text = format!("---\ndescription: Helps.\n{head}\n---\nYou are {name}.\n");
        std::fs::write(dir.path().join(format!("agents/{name}.md")), text).unwrap();
    }
    let config = format!(
        "[agents]\nmain = \"desk\"\n[models]\ndefault = \"local/m\"\n[models.providers.local]\nbase_url = \"{base_url}\"\n"
    );
    std::fs::write(dir.path().join("baton.toml"), config).unwrap();
    dir
}

/// What a command printed, if it ended well.
fn ok(dir: &std::path::Path, args: &[&str]) -> String {
    let ran = baton(dir, args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    ran.stdout
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
