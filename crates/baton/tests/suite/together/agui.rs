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

/// The same for a thread that changes hands: given away, held, left with a word, gone on with, left from outside. Each is a run.
#[test]
fn c_19_the_npm_client_accepts_a_thread_that_changes_hands() {
    let dir = project();
    let thread = "6f1c2a9e-3b47-4d0a-9c55-2f8e7a1b4c3d";
    let say = |agent: &[&str], text: &str| {
        let args = [&["run", "--json", "--thread", thread], agent, &[text]].concat();
        lines(&ok(dir.path(), &args))
    };
    let mut streams = vec![say(&["-a", "front"], "Go"), say(&[], "More"), say(&[], "cancel")];
    ok(dir.path(), &["handoff", "resume", "--thread", thread]);
    ok(dir.path(), &["handoff", "exit", "--thread", thread]);
    let runs = super::super::store_commands::json(dir.path(), &["runs", "list", "--thread", thread]);
    let runs: Vec<&str> =
        runs["data"].as_array().unwrap().iter().rev().map(|run| run["run_id"].as_str().unwrap()).collect();
    assert_eq!(runs.len(), 5);
    let mut phases = Vec::new();
    for run in runs {
        let kept = lines(&ok(dir.path(), &["runs", "events", run, "--json"]));
        let kept: Vec<Event> = kept.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect();
        let person = joined(&kept, 0);
        let told = person.iter().filter(|event| event["name"] == "baton.handoff");
        phases.push(
            told.map(|event| event["value"]["phase"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
                .join(" "),
        );
        assert_eq!(person.iter().filter(|event| event["type"] == "RUN_FINISHED").count(), 1);
        streams.extend((0..kept.len()).map(|at| joined(&kept, at)));
    }
    assert_eq!(phases, ["connecting active", "", "cancelled", "active", "cancelled"]);
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
