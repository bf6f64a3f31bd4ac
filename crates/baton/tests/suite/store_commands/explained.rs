//! A run in which several agents took part, as it is explained afterwards.

use std::sync::Arc;

use baton_core::event::{Dissent, Source};
use baton_core::ledger::{CallOutcome, Called, LedgerRow};
use baton_core::message::{Message, Part, Role, Visibility};
use baton_core::store::work::{RunEnd, SessionChange};
use baton_core::store::{
    Append, Feedback, Hop, HopKind, HopOutcome, NewRun, Owner, Rating, RunEndData, RunStatus, Step, StepKind,
    StepState,
};
use baton_core::usage::{Cost, Tokens};
use baton_core::{
    AgentName, MessageId, RunId, SessionId, Store as _, TenantId, TenantStore, ThreadId, Usd, UserId,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{THREAD, ok, redacted};
use crate::baton;
use crate::run::project;

const RUN: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
/// The places of the story.
const LEGAL: &str = "a/advisor:legal";
const RESEARCH: &str = "a/turn:1/tool:1/call:research";
const BOOKS: &str = "a/turn:1/tool:1/call:research/turn:1/tool:1/call:books";
const BILLING: &str = "a/turn:2/tool:1/transfer:billing";

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

fn run_id() -> RunId {
    RunId::parse(RUN).unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_770_000_000 + second).unwrap()
}

/// The session at a place, or the one that the place is within.
fn session(path: &str) -> SessionId {
    let root = SessionId::root(run_id());
    let research = root.child(&name("research"), 2);
    match path {
        _ if path.starts_with(BOOKS) => research.child(&name("books"), 3),
        _ if path.starts_with(RESEARCH) => research,
        _ if path.starts_with(LEGAL) => root.child(&name("legal"), 1),
        _ if path.starts_with(BILLING) => root.child(&name("billing"), 4),
        _ => root,
    }
}

fn step(path: &str, kind: StepKind, data: Value) -> Step {
    let state = if path == "a" { StepState::Started } else { StepState::Finished };
    Step { path: path.to_owned(), session_id: session(path), kind, state, data: data.into(), at: at(0) }
}

fn part(path: &str, why: &str, end: &Value) -> Step {
    let mut data = json!({"why": why, "input": [{"type": "text", "text": format!("Look at this: {why}")}]});
    data.as_object_mut().unwrap().extend(end.as_object().unwrap().clone());
    step(path, StepKind::Session, data)
}

fn turn(path: &str, text: &str, calls: &Value) -> Step {
    step(path, StepKind::Turn, json!({"reply": {"text": text, "calls": calls}, "finish": "stop"}))
}

fn returned(path: &str, tool: &str, content: &str, ending: Option<Value>) -> Step {
    let mut data = json!({"call_id": "c1", "name": tool, "content": content, "failed": false});
    if let Some(ending) = ending {
        data["ending"] = ending;
    }
    step(path, StepKind::Tool, data)
}

fn call(tool: &str) -> Value {
    json!([{"id": "c1", "name": tool, "arguments": "{}"}])
}

fn steps() -> Vec<Step> {
    let outcome = |agent: &str, text: &str| json!({"outcome": {"text": text, "value": null, "limit": null, "turns": 1, "agent": agent, "is_shown": false}});
    let passed = json!({"passed": {"text": "You owe 5.", "agent": "billing"}});
    vec![
        step("a", StepKind::Session, json!({})),
        part(LEGAL, "It may be about the law", &json!({"failure": {"code": "late", "message": "too late"}})),
        turn("a/turn:1", "", &call("call_agent")),
        part(RESEARCH, "What do the books say?", &outcome("research", "Nothing.")),
        turn(&format!("{RESEARCH}/turn:1"), "", &call("call_agent")),
        part(BOOKS, "Look it up", &outcome("books", "Nothing here.")),
        turn(&format!("{BOOKS}/turn:1"), "Nothing here.", &json!([])),
        returned(&format!("{RESEARCH}/turn:1/tool:1"), "call_agent", "Nothing here.", None),
        turn(&format!("{RESEARCH}/turn:2"), "Nothing.", &json!([])),
        returned("a/turn:1/tool:1", "call_agent", "Nothing.", None),
        turn("a/turn:2", "", &call("transfer_to_billing")),
        part(BILLING, "It is about a bill", &outcome("billing", "You owe 5.")),
        turn(&format!("{BILLING}/turn:1"), "You owe 5.", &json!([])),
        returned("a/turn:2/tool:1", "transfer_to_billing", "The baton was passed.", Some(passed)),
    ]
}

fn rows() -> Vec<LedgerRow> {
    let turns = steps().into_iter().filter(|step| step.kind == StepKind::Turn);
    let rows = turns.enumerate().map(|(nth, step)| LedgerRow {
        run_id: run_id(),
        agent: name("a"),
        call: Called::Model { provider: "local".into(), model: "m".into() },
        tokens: Tokens { input_tokens: 10, output_tokens: 5, ..Tokens::default() },
        estimated: false,
        cost: Cost::Known(Usd::from_nanos(1_000_000)),
        started_at: at(i64::try_from(nth).unwrap()),
        latency_ms: 1000,
        outcome: CallOutcome::Ok,
        error: None,
        session_id: step.session_id,
        path: step.path,
    });
    rows.collect()
}

fn sessions() -> Vec<SessionChange> {
    let began = Timestamp::now();
    let of = |path: &str, agent: &str, status| {
        let change = |status, at| {
            let (session_id, agent, path) = (session(path), name(agent), path.to_owned());
            SessionChange { session_id, agent, path, status, at }
        };
        [change(RunStatus::Running, began), change(status, began + SignedDuration::from_secs(2))]
    };
    [
        of("a", "a", RunStatus::Running),
        of(LEGAL, "legal", RunStatus::Failed),
        of(RESEARCH, "research", RunStatus::Completed),
        of(BOOKS, "books", RunStatus::Completed),
        of(BILLING, "billing", RunStatus::Completed),
    ]
    .concat()
}

fn hop(thread: ThreadId, to: &str, success: bool, millis: u64) -> Hop {
    Hop {
        hop_id: Uuid::new_v4(),
        thread_id: thread,
        run_id: Some(run_id()),
        kind: HopKind::Transfer,
        from: name("a"),
        to: name(to),
        reason: "It is about a bill".into(),
        query_class: "general".into(),
        outcome: if success { HopOutcome::Completed } else { HopOutcome::Failed },
        latency_ms: millis,
        cost: Usd::from_nanos(2_000_000),
        at: at(i64::try_from(millis).unwrap()),
        request: 0,
    }
}

fn message(role: Role, agent: Option<&str>, text: &str) -> Message {
    Message {
        id: MessageId::from_uuid(Uuid::now_v7()),
        run_id: run_id(),
        role,
        agent: agent.map(name),
        visibility: Visibility::User,
        parts: vec![Part::text(text)],
        created_at: at(0),
    }
}

async fn write(tenant: &dyn TenantStore) {
    let thread_id = ThreadId::parse(THREAD).unwrap();
    let message = message(Role::User, None, "What do I owe?");
    let new = NewRun {
        request: json!({"entry": {"domain": "billing", "confidence": 0.85}}),
        ..NewRun::new(thread_id, UserId::parse("local").unwrap(), name("a"), message)
    };
    tenant.accept(new).await.unwrap();
    let answer = self::message(Role::Assistant, Some("billing"), "You owe 5.");
    let message_id = answer.id;
    let claimed = tenant.claim(thread_id, &Owner("test".into())).await.unwrap().unwrap();
    let sources = [("research", RESEARCH), ("books", BOOKS)];
    let sources = sources.map(|(agent, path)| Source { agent: name(agent), session_id: session(path) });
    let end = RunEndData {
        answer: Some("You owe 5.".into()),
        answered_by: Some(name("billing")),
        sources: sources.to_vec(),
        dissent: vec![Dissent { member: name("legal"), reason: "not sure".into() }],
        ..RunEndData::default()
    };
    let append = Append {
        number: 1,
        steps: steps(),
        messages: vec![answer],
        rows: rows(),
        sessions: sessions(),
        holder: Some(name("a")),
        end: Some(RunEnd { status: RunStatus::Completed, end }),
        ..Append::default()
    };
    tenant.append(&claimed.claim, Arc::new(append)).await.unwrap();
    tenant.record_hop(hop(thread_id, "billing", true, 3000)).await.unwrap();
    tenant
        .record_hop(Hop {
            run_id: Some(RunId::from_uuid(Uuid::now_v7())),
            ..hop(thread_id, "billing", false, 1000)
        })
        .await
        .unwrap();
    for (who, rating) in [("local", Rating::Good), ("boss", Rating::Bad), ("local", Rating::Good)] {
        let user_id = UserId::parse(who).unwrap();
        let feedback = Feedback { message_id, user_id, rating, comment: None, at: at(9) };
        tenant.put_feedback(feedback).await.unwrap();
    }
}

/// A project in whose store several agents have worked on one request.
fn explained() -> tempfile::TempDir {
    let dir = project("http://127.0.0.1:1", "");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = baton_store::open("sqlite://baton.db", dir.path()).await.unwrap();
        write(&*store.tenant(&TenantId::parse("default").unwrap())).await;
        store.close().await.unwrap();
    });
    dir
}

/// Who did what, why, for how much, which ways the baton took, and whose answer it is.
#[test]
fn a_run_shows_who_did_what_and_why_and_the_ways_of_the_baton() {
    let dir = explained();
    let shown = ok(dir.path(), &["runs", "show", RUN]);
    insta::assert_snapshot!("explained-run", redacted(&shown, &[(RUN, "RUN"), (THREAD, "THREAD")]));
    let run = super::json(dir.path(), &["runs", "show", RUN]);
    assert_eq!((&run["answered_by"], &run["hops"][1]), (&json!("billing"), &Value::Null));
    let hop = &run["hops"][0];
    assert_eq!(
        (&hop["from"], &hop["to"], &hop["kind"]),
        (&json!("a"), &json!("billing"), &json!("transfer"))
    );
    let root = &run["steps"][0];
    assert_eq!((&root["agent"], &root["total"]["input_tokens"]), (&json!("a"), &json!(60)));
    let legal = &root["children"][0];
    assert_eq!((&legal["agent"], &legal["status"]), (&json!("legal"), &json!("failed")));
    assert_eq!(
        (&legal["why"], &legal["failure"]["code"]),
        (&json!("It may be about the law"), &json!("late"))
    );
    let research = &root["children"][1]["children"][0]["children"][0];
    assert_eq!(
        (&research["agent"], &research["why"]),
        (&json!("research"), &json!("What do the books say?"))
    );
    assert_eq!(research["total"]["input_tokens"], 30);
}

/// F15
#[test]
fn f15_sessions_of_sub_agents_are_drawn_and_shown() {
    let dir = explained();
    let tree = ok(dir.path(), &["sessions", "list", "--tree"]);
    insta::assert_snapshot!("explained-sessions", redacted(&tree, &[(RUN, "RUN")]));
    let research = session(RESEARCH).to_string();
    let shown = ok(dir.path(), &["sessions", "show", &research]);
    insta::assert_snapshot!("explained-session", redacted(&shown, &[(RUN, "RUN"), (THREAD, "THREAD")]));
    let root = super::json(dir.path(), &["sessions", "show", RUN]);
    let roles: Vec<&str> = root["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "tool"]);
    assert_eq!(root["messages"][4]["content"], "The baton was passed.");
}

/// G14: counts and success rates per way, across threads.
#[test]
fn g14_patterns_say_how_well_each_way_ends() {
    let dir = explained();
    insta::assert_snapshot!("patterns", redacted(&ok(dir.path(), &["patterns"]), &[]));
    let learnt = super::json(dir.path(), &["patterns"]);
    let way = &learnt["data"][0];
    assert_eq!((&way["count"], &way["successes"], &way["success_rate"]), (&json!(2), &json!(1), &json!(0.5)));
    assert_eq!((&way["average_latency_ms"], &way["average_cost_usd"]), (&json!(2000), &json!(0.002)));
    assert_eq!((&way["liked"], &way["disliked"]), (&json!(1), &json!(1)));
    // What was learnt outlives the thread.
    ok(dir.path(), &["threads", "delete", THREAD, "--yes"]);
    assert_eq!(super::json(dir.path(), &["patterns"]), learnt);
}

#[test]
fn where_nothing_was_learnt_that_is_said() {
    let dir = project("http://127.0.0.1:1", "");
    assert_eq!(baton(dir.path(), &["patterns"]).stderr, "nothing was kept yet\n");
    assert_eq!(
        super::json(dir.path(), &["patterns"]),
        json!({"data": [], "next_cursor": null, "insights": []})
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let store = runtime.block_on(baton_store::open("sqlite://baton.db", dir.path())).unwrap();
    runtime.block_on(store.close()).unwrap();
    let ran = baton(dir.path(), &["patterns"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert!(ran.stderr.starts_with("no baton was passed yet"), "{}", ran.stderr);
}

/// G7, G8
#[test]
fn g7_g8_a_thread_is_a_session_document() {
    let dir = explained();
    let text = ok(dir.path(), &["threads", "show", "550e", "--session"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let link = |at: &str, outcome: &str, millis: u64| {
        json!({
            "from": "a", "to": "billing", "reason": "It is about a bill", "timestamp": at, "kind": "transfer",
            "outcome": outcome, "latency_ms": millis, "cost_usd": 0.002,
        })
    };
    let time = |millis: i64| (at(0) + SignedDuration::from_secs(millis)).to_string();
    assert_eq!(
        document,
        json!({
            "version": "1.4",
            "context_id": THREAD,
            "current_agent": "a",
            "session_start": document["session_start"],
            "handoff_chain": [link(&time(1000), "failed", 1000), link(&time(3000), "completed", 3000)],
            "context": {"original_query": "What do I owe?", "previous_work": "You owe 5."},
            "handoffs_enabled": true,
            "domain": "billing",
            "last_classification_confidence": 0.85,
        })
    );
    assert!(document["session_start"].is_string());
    let config = std::fs::read_to_string(dir.path().join("baton.toml")).unwrap();
    std::fs::write(dir.path().join("baton.toml"), config + "[features]\ntransfers = false\n").unwrap();
    let off = ok(dir.path(), &["threads", "show", "550e", "--session"]);
    assert_eq!(serde_json::from_str::<Value>(&off).unwrap()["handoffs_enabled"], false);
    assert_eq!(baton(dir.path(), &["threads", "show", "550e", "--session", "--internal"]).code, 2);
}

/// G9: the file form has one file per context, which only its owner can read, and which is replaced as a whole.
#[test]
fn g9_session_document_is_written_to_a_private_file() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = explained();
    let folder = dir.path().join("sessions");
    std::fs::create_dir(&folder).unwrap();
    let command = ["threads", "show", "550e", "--session", "--session-dir", folder.to_str().unwrap()];
    let path = folder.join(format!("swarm_session_{THREAD}.json"));
    // A reader that has the file before it open, which others could read.
    std::fs::write(&path, "old").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut before = std::fs::File::open(&path).unwrap();
    assert_eq!(ok(dir.path(), &command).trim(), path.to_str().unwrap());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let written = std::fs::read_to_string(&path).unwrap();
    let printed = ok(dir.path(), &command[..4]);
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(parse(&written), parse(&printed));
    let mut old = String::new();
    std::io::Read::read_to_string(&mut before, &mut old).unwrap();
    assert_eq!(old, "old", "a reader keeps what it has opened");
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(names.len(), 1, "no temporary file is left: {names:?}");
    let missing = dir.path().join("missing");
    let failed = baton(
        dir.path(),
        &["threads", "show", "550e", "--session", "--session-dir", missing.to_str().unwrap()],
    );
    assert!(failed.code != 0 && failed.stderr.contains("cannot write to"), "{}", failed.stderr);
    assert_eq!(baton(dir.path(), &["threads", "show", "550e", "--session-dir", "x"]).code, 2);
}
