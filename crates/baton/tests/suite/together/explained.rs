//! A run that asked two agents, passed the baton to a third, and ended with that one's team.

use std::path::Path;

use serde_json::{Value, json};

use super::{lines, ok, project};

fn json_of(dir: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&ok(dir, args)).unwrap()
}

/// F15, X30, X31: every view of a run tells the same story.
#[test]
fn what_is_kept_of_a_real_run_explains_it() {
    let dir = project();
    let dir = dir.path();
    let began = lines(&ok(dir, &["run", "--json", "What now?"]));
    let (run, thread) = (began[0]["runId"].as_str().unwrap(), began[0]["threadId"].as_str().unwrap());
    explained(dir, run);
    who_worked_for_whom(dir, run);
    passed_on(dir, thread);
    happened(dir, run);
}

/// Whose parts begin in these steps and below them.
fn agents<'a>(steps: &'a Value, into: &mut Vec<&'a str>) {
    for step in steps.as_array().into_iter().flatten() {
        into.extend(step["agent"].as_str());
        agents(&step["children"], into);
    }
}

fn explained(dir: &Path, run: &str) {
    let shown = json_of(dir, &["runs", "show", run, "--json"]);
    assert_eq!((&shown["answered_by"], &shown["status"]), (&json!("lead"), &json!("completed")));
    let mut began = Vec::new();
    agents(&shown["steps"], &mut began);
    let count = |agent: &str| began.iter().filter(|one| **one == agent).count();
    assert_eq!(["desk", "books", "law", "lead"].map(count), [1, 1, 1, 1], "{began:?}");
    assert_eq!(["sales", "ops"].map(count), [2, 2], "two rounds until all were ready: {began:?}");
    // A transfer, two delegations, and two members in two rounds.
    assert_eq!(shown["hops"].as_array().unwrap().len(), 7, "{:#}", shown["hops"]);
    let text = ok(dir, &["runs", "show", run]);
    for part in [
        "answered  by lead\n",
        "answer\n  lead answers.\n",
        "delegate:books",
        "agent law: What do we have?",
        "transfer:lead",
        "agent lead: It needs a decision.",
        "desk → lead   transfer",
    ] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
    // Nobody knows what this model costs, so nothing says that it was free.
    let passed = text.lines().find(|line| line.starts_with("desk → lead")).unwrap();
    assert!(text.contains("cost unknown") && passed.contains("unknown"), "{text}");
}

fn who_worked_for_whom(dir: &Path, run: &str) {
    let tree = ok(dir, &["sessions", "list", "--tree"]);
    let agent = |line: &'_ str| {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).nth(1).map(str::to_owned)
    };
    let mut below: Vec<String> = tree.lines().skip(1).filter_map(agent).collect();
    assert_eq!(below.remove(0), "desk", "{tree}");
    below.sort_unstable();
    assert_eq!(below, ["books", "law", "lead", "ops", "ops", "sales", "sales"], "{tree}");
    // What the tree calls a session finds it.
    let label = tree.split_whitespace().find(|word| word.starts_with("sub_books_")).unwrap();
    let child = ok(dir, &["sessions", "show", label]);
    assert_eq!(child, ok(dir, &["sessions", "show", &format!("{run}:{label}")]));
    assert!(child.contains("What do we have?") && child.contains("books answers."), "{child}");
}

fn passed_on(dir: &Path, thread: &str) {
    let session = json_of(dir, &["threads", "show", thread, "--session"]);
    let chain = session["handoff_chain"].as_array().unwrap();
    let passed: Vec<_> = chain.iter().filter(|link| link["kind"] == "transfer").collect();
    assert_eq!((chain.len(), passed.len()), (7, 1), "{chain:#?}");
    assert_eq!((&passed[0]["from"], &passed[0]["to"]), (&json!("desk"), &json!("lead")));
    assert!(chain.iter().all(|link| link["outcome"] == "completed"), "{chain:#?}");
    assert_eq!(session["current_agent"], "desk", "a transfer is for one message");
    assert_eq!(session["context"], json!({"original_query": "What now?", "previous_work": "lead answers."}));
    let ways = json_of(dir, &["patterns", "--json"]);
    let ways = ways["data"].as_array().unwrap();
    let way = |way: &Value| format!("{} {} {}", way["kind"], way["from"], way["to"]).replace('"', "");
    let mut ways: Vec<String> = ways.iter().map(way).collect();
    ways.sort();
    let expected = [
        "delegation desk books",
        "delegation desk law",
        "team lead ops",
        "team lead sales",
        "transfer desk lead",
    ];
    assert_eq!(ways, expected);
}

fn happened(dir: &Path, run: &str) {
    let events = lines(&ok(dir, &["runs", "events", run, "--json"]));
    let of = |kind: &str| events.iter().filter(|event| event["kind"] == kind).collect::<Vec<_>>();
    assert_eq!(of("session_started").len(), of("session_finished").len());
    assert_eq!((of("broadcast").len(), of("voted").len()), (4, 4), "{events:#?}");
    assert_eq!(of("team_ended")[0]["by"], "consensus");
    let said: Vec<&Value> =
        of("text_finished").into_iter().filter(|event| event["visibility"] == "user").collect();
    assert_eq!(said.len(), 1, "the person hears one answer");
    assert_eq!((&said[0]["agent"], &said[0]["text"]), (&json!("lead"), &json!("lead answers.")));
    let seqs: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{seqs:?}");
}
