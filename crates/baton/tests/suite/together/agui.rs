//! Events of real runs, as the client of AG-UI from npm sees them.

use std::io::Write as _;
use std::process::{Command, Stdio};

use baton_agui::{Detail, Projection};
use baton_core::event::Event;
use serde_json::Value;

use super::{lines, ok, project};
use crate::root;

/// Runs of every pattern, with all that happened and as a person's page gets them: each event satisfies its schema of `@ag-ui/core`,
/// and `@ag-ui/client` accepts their order. The same for whoever joins them, wherever that is.
#[test]
fn the_npm_client_accepts_runs_of_every_pattern() {
    let dir = project();
    let mut streams: Vec<Vec<Value>> = Vec::new();
    for agent in ["desk", "chair", "reception", "draft", "advised", "caller"] {
        let trace = lines(&ok(dir.path(), &["run", "--json", "-a", agent, "Go"]));
        let run = trace[0]["runId"].as_str().unwrap().to_owned();
        let kept = lines(&ok(dir.path(), &["runs", "events", &run, "--json"]));
        let kept: Vec<Event> = kept.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect();
        let person = joined(&kept, 0);
        let count = |events: &[Value], kind: &str| events.iter().filter(|one| one["type"] == kind).count();
        for events in [&trace, &person] {
            assert_eq!(count(events, "RUN_FINISHED"), 1, "{agent}");
            assert_eq!(count(events, "SUBAGENT_STARTED"), subagents(agent), "{agent}");
        }
        streams.extend([trace, person]);
        streams.extend((1..kept.len()).map(|at| joined(&kept, at)));
    }
    check(&streams);
}

/// What a person's page gets that comes when `at` events have happened.
fn joined(kept: &[Event], at: usize) -> Vec<Value> {
    let mut projection = Projection::new(Detail::Person);
    let (seen, rest) = kept.split_at(at);
    for event in seen {
        projection.replay(event);
    }
    let preamble = projection.preamble(Vec::new());
    let told = preamble.into_iter().chain(rest.iter().flat_map(|event| projection.project(event)));
    told.map(|event| serde_json::to_value(event).unwrap()).collect()
}

/// Who works behind the scenes in a run of this agent.
fn subagents(agent: &str) -> usize {
    match agent {
        // Two that are asked, and two members in two rounds.
        "desk" => 6,
        "chair" | "advised" | "caller" => 2,
        _ => 0,
    }
}

fn check(streams: &[Vec<Value>]) {
    let packages = root().join("target/npm/agui");
    let is_there = packages.join("node_modules/@ag-ui/client").is_dir();
    assert!(is_there, "the AG-UI client is not installed: run scripts/setup.sh test");
    let mut node = Command::new("node")
        .arg(root().join("crates/baton-agui/tests/fixtures/check.mjs"))
        .arg(packages)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Node.js, which scripts/setup.sh test asks for");
    let input: String = streams.iter().map(|events| Value::from(events.clone()).to_string() + "\n").collect();
    let mut stdin = node.stdin.take().unwrap();
    // A check that fails ends before it has read everything.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), streams.len().to_string());
}
