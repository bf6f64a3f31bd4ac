//! Callers, processes and stores that go away in the middle. What was accepted is worked on to its end, and what was used is paid
//! for once.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use baton_core::event::EventKind;
use baton_core::ledger::CallOutcome;
use baton_core::model::ModelErrorKind;
use baton_core::store::{Owner, PageRequest, RunQuery, RunStatus};
use baton_core::{HumanDuration, LedgerRow};
use baton_engine::{Engine, EngineParts, HeartbeatConfig, RunRequest, SubmitOptions};
use baton_models::scripted::{Scripted, ScriptedTurn};
use futures_util::FutureExt as _;
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::durability::{die, die_in, go_on, successor};
use super::{LONG, Setup, TestTool, eventually};

/// With a store in a file, which can be away. `patience` is how long a write waits for whoever else has it.
async fn on_file(setup: Setup, patience: Duration) -> (EngineParts, RunRequest, TempDir) {
    let (mut parts, request) = setup.parts().await;
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://baton.db?busy_timeout={}", patience.as_millis());
    parts.store = Arc::new(baton_store::open(&url, dir.path()).await.unwrap());
    (parts, request, dir)
}

/// Another program that has the file open.
fn other_program(dir: &TempDir) -> Connection {
    let connection = Connection::open(dir.path().join("baton.db")).unwrap();
    connection.busy_timeout(LONG).unwrap();
    connection
}

/// A tool that goes on until whoever called it gives up, which is then known. After that it returns at once.
fn endless(given_up: &CancellationToken) -> TestTool {
    let given_up = given_up.clone();
    TestTool::new("look", move |_| {
        let guard = (!given_up.is_cancelled()).then(|| given_up.clone().drop_guard());
        async move {
            if let Some(_guard) = guard {
                pending::<()>().await;
            }
            Ok("seen".to_owned())
        }
    })
}

async fn is_under_way(tool: &TestTool) {
    eventually(async || tool.running.0.load(Ordering::SeqCst) > 0).await;
}

#[tokio::test]
async fn message_is_processed_when_its_sender_disconnects() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("Done.")]);
    let (parts, request, _dir) = on_file(Setup::new(&model), LONG).await;
    let engine = Engine::new(parts);
    assert!(engine.start(request.clone()).now_or_never().is_none(), "it was accepted at once");
    let store = engine.parts.store.tenant(&request.caller.tenant);
    eventually(async || {
        let runs = store.runs(RunQuery::default(), PageRequest::default()).await.unwrap().data;
        !runs.is_empty() && runs.iter().all(|run| run.status.is_final())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unprocessable_thread_does_not_block_recovery() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("Done.")]);
    let (parts, request, dir) = on_file(Setup::new(&model), LONG).await;
    let engine = Engine::new(parts);
    engine.start(request).await.unwrap().finish().await;
    engine.idle().await;
    assert_eq!(
        other_program(&dir).execute("UPDATE runs SET status = 'queued', finished_at = NULL", []).unwrap(),
        1
    );
    let recovered =
        tokio::time::timeout(LONG, engine.recover()).await.expect("recovery goes round in circles");
    assert_eq!(recovered.unwrap(), 1, "it was due");
}

/// As after a downgrade, or with a damaged row.
#[tokio::test(flavor = "multi_thread")]
async fn unreadable_run_ends_and_later_runs_continue() {
    for (damage, is_first) in [
        ("UPDATE runs SET request = '{' WHERE ordinal = 1", true),
        ("UPDATE runs SET status = 'newer' WHERE ordinal = 1", true),
        // Content that is not compressed, with steps that are no JSON.
        (
            "INSERT INTO journal SELECT tenant, thread_number, last_seq, record + 100, run_id, x'000A5B7B0A', NULL
                FROM journal WHERE run_id = (SELECT run_id FROM runs WHERE ordinal = 1) LIMIT 1",
            true,
        ),
        ("UPDATE messages SET parts = '[{\"kind\": \"newer\"}]' WHERE number = 1", true),
        ("UPDATE runs SET request = '{', status = 'newer' WHERE ordinal = 2", false),
    ] {
        let turns = [ScriptedTurn::default().say("I").hang(), ScriptedTurn::default().say("I").hang()];
        let model = Scripted::default().script("a", turns);
        let (parts, request, dir) = on_file(Setup::new(&model), LONG).await;
        let before = Engine::new(parts);
        let mut run = before.start(request.clone()).await.unwrap();
        while !matches!(run.events.recv().await.unwrap().kind, EventKind::TextDelta { .. }) {}
        let behind = RunRequest { input: vec![baton_core::Part::text("And now?")], ..request.clone() };
        let next = before.start(behind).await.unwrap();
        before.drain(Duration::ZERO).await.unwrap();
        assert!(other_program(&dir).execute(damage, []).unwrap() > 0, "{damage}");

        let model = Scripted::default().script("a", [ScriptedTurn::text("Now.")]);
        let (parts, _) = Setup::new(&model).parts().await;
        let engine = Engine::new(successor(parts, &before.parts));
        tokio::time::timeout(LONG, engine.recover()).await.expect("it never ends").unwrap();
        let store = engine.parts.store.tenant(&request.caller.tenant);
        let events = store.events(request.caller.thread_id, 0, 1000).await.unwrap();
        let (unreadable, other) = if is_first { (run.id, next.id) } else { (next.id, run.id) };
        let end_of = |run| events.iter().find(|event| event.run_id == run && event.kind.is_end());
        let ended = end_of(unreadable).unwrap_or_else(|| panic!("{damage}: the thread is blocked"));
        let EventKind::RunFailed { code, message, .. } = &ended.kind else { panic!("{damage}: {ended:?}") };
        assert_eq!(code, "interrupted", "{damage}");
        assert!(message.contains("cannot be read"), "{damage}: {message}");
        assert!(end_of(other).is_some(), "{damage}: the thread is blocked");
        assert!(engine.parts.store.due(10).await.unwrap().is_empty(), "{damage}");
    }
}

/// Threads that stay due do not hide the others: with more of them than one look takes, the selection is random.
#[tokio::test]
async fn recovery_is_not_starved_by_the_oldest_threads() {
    let model = Scripted::default().script("a", (0..3).map(|_| ScriptedTurn::default().hang()));
    let (parts, request) = Setup::new(&model).parts().await;
    let engine = Engine::new(parts);
    let mut threads = std::collections::BTreeSet::new();
    for number in 0..3 {
        let thread = format!("550e8400-e29b-41d4-a716-44665544000{number}");
        let thread_id = baton_core::ThreadId::parse(&thread).unwrap();
        let caller = baton_engine::RunCaller { thread_id, ..request.caller.clone() };
        let accepted =
            engine.submit(RunRequest { caller, ..request.clone() }, SubmitOptions::default()).await;
        accepted.unwrap();
        threads.insert(thread);
    }
    engine.drain(Duration::ZERO).await.unwrap();
    for _ in 0..300 {
        for (_, thread) in engine.parts.store.due(1).await.unwrap() {
            threads.remove(&thread.to_string());
        }
    }
    assert!(threads.is_empty(), "never due: {threads:?}");
}

#[tokio::test]
async fn process_without_heartbeat_stops_when_its_lease_ends() {
    let model = Scripted::default().script("a", [ScriptedTurn::call("look", &json!({}))]);
    let given_up = CancellationToken::new();
    let look = endless(&given_up);
    // The store hangs for longer than any lease.
    let (parts, request, dir) = on_file(Setup::new(&model).tool(look.clone()), Duration::from_hours(1)).await;
    let length = parts.lease.length;
    let engine = Engine::new(parts);
    let _run = engine.start(request).await.unwrap();
    is_under_way(&look).await;
    let other = other_program(&dir);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // From here on nothing but the clock can end anything, so it need not be waited for.
    let since = Instant::now();
    tokio::time::pause();
    let stopped = tokio::time::timeout(length * 10, given_up.cancelled()).await;
    assert!(stopped.is_ok(), "it goes on while somebody else may have begun");
    let late = since.elapsed().saturating_sub(length);
    assert!(late < Duration::from_millis(10), "it went on for {late:?} after the lease had ended");
    other.execute_batch("ROLLBACK").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn store_outage_longer_than_the_lease_does_not_fail_the_run() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::call("look", &json!({})), ScriptedTurn::text("Done.")]);
    let given_up = CancellationToken::new();
    let look = endless(&given_up);
    let (mut parts, request, dir) =
        on_file(Setup::new(&model).tool(look.clone()), Duration::from_millis(50)).await;
    parts.lease = HeartbeatConfig { length: Duration::from_secs(2), beat: Duration::from_millis(100) };
    let engine = Engine::new(parts);
    let run = engine.start(request.clone()).await.unwrap();
    let id = run.id;
    is_under_way(&look).await;
    let other = other_program(&dir);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    tokio::time::timeout(LONG, given_up.cancelled()).await.expect("nobody noticed");
    other.execute_batch("ROLLBACK").unwrap();
    let finished = tokio::time::timeout(LONG, run.finish()).await.expect("nobody took the run up again");
    assert_eq!(finished.status, RunStatus::Completed, "{:?}", finished.failure);
    assert_eq!(finished.answer.unwrap().text, "Done.");
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let record = store.run(id).await.unwrap();
    assert_eq!(record.status, RunStatus::Completed);
    assert!(record.attempts > 1);
}

/// The process gets no time for longer than its lease: its only thread sleeps. Its run continues unless another process could have
/// claimed it meanwhile; then it is executed again.
#[tokio::test]
async fn starved_process_keeps_its_runs_if_it_is_alone() {
    for (is_alone, attempts) in [(true, 1), (false, 2)] {
        let model = Scripted::default()
            .script("a", [ScriptedTurn::call("look", &json!({})), ScriptedTurn::text("Done.")]);
        let calls = Arc::new(AtomicU32::new(0));
        let starve = Arc::clone(&calls);
        let look = TestTool::new("look", move |_| {
            let is_first = starve.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if is_first {
                    // After the heartbeat has started its wait.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    std::thread::sleep(Duration::from_millis(900));
                    // Gives the heartbeat its turn.
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
                Ok("seen".to_owned())
            }
        });
        let (mut parts, request, _dir) = on_file(Setup::new(&model).tool(look), LONG).await;
        parts.lease =
            HeartbeatConfig { length: Duration::from_millis(600), beat: Duration::from_millis(100) };
        if !is_alone {
            parts.store.beat(&Owner("another".into()), LONG).await.unwrap();
        }
        let engine = Engine::new(parts);
        let run = engine.start(request.clone()).await.unwrap();
        let id = run.id;
        let finished = tokio::time::timeout(LONG, run.finish()).await.expect("the run did not end");
        assert_eq!(finished.status, RunStatus::Completed, "{:?}", finished.failure);
        let record = engine.parts.store.tenant(&request.caller.tenant).run(id).await.unwrap();
        assert_eq!(
            (record.attempts, calls.load(Ordering::SeqCst)),
            (attempts, attempts),
            "alone: {is_alone}"
        );
    }
}

/// What came of the calls that were made at a place.
fn outcomes<'a>(rows: &'a [LedgerRow], path: &str) -> Vec<(CallOutcome, Option<&'a str>)> {
    let there = rows.iter().filter(|row| row.path == path);
    there.map(|row| (row.outcome, row.error.as_deref())).collect()
}

#[test]
fn failed_call_before_a_crash_is_billed_once() {
    let busy = ModelErrorKind::Overloaded;
    let first = ScriptedTurn::default().say("Half").fail_and_retry_after(busy, Duration::from_secs(30));
    let first = Scripted::default().script("a", [first]);
    let (engine, _, _) =
        die(Setup::new(&first), |event| matches!(event.kind, EventKind::TurnRestarted { .. }));
    let second = Scripted::default().script("a", [ScriptedTurn::text("Whole.")]);
    let after = go_on(Setup::new(&second), &engine);
    after.is_sound();
    let expected = [(CallOutcome::Failed, Some(busy.word())), (CallOutcome::Ok, None)];
    assert_eq!(outcomes(&after.rows, "a/turn:1"), expected);
    assert_eq!(after.rows.len(), 2);
    let restarts = after.count(|kind| matches!(kind, EventKind::TurnRestarted { .. }));
    assert_eq!(restarts, 1, "its text was taken back already");
}

#[test]
fn skipped_closing_turn_is_billed() {
    let with = |model: &Scripted| {
        Setup::new(model).agent(|agent| agent.limits.timeout = HumanDuration::from_secs(30))
    };
    let first = [ScriptedTurn::default().say("Long").hang(), ScriptedTurn::default().say("Closing").hang()];
    let first = Scripted::default().script("a", first);
    // Its time is over at once for the clock of the process, and has hardly begun for the one that comes after.
    let process =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (engine, _, _) = die_in(
        process,
        with(&first),
        |event| matches!(&event.kind, EventKind::TextDelta { delta, .. } if delta == "Closing"),
    );
    let second = Scripted::default().script("a", [ScriptedTurn::text("Whole.")]);
    let after = go_on(with(&second), &engine);
    after.is_sound();
    assert_eq!(after.run.status, RunStatus::Completed);
    let taken_again = [(CallOutcome::Cancelled, None), (CallOutcome::Ok, None)];
    assert_eq!(outcomes(&after.rows, "a/turn:1"), taken_again);
    assert_eq!(outcomes(&after.rows, "a/turn:2"), [(CallOutcome::Cancelled, Some("interrupted"))]);
    let paid = after.rows.iter().map(|row| row.tokens.input_tokens).sum::<u64>();
    assert_eq!(after.run.usage.tokens.input_tokens, paid);
}
