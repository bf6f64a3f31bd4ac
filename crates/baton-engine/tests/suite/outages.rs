//! Callers, processes and stores that go away in the middle. What was accepted is worked on to its end, and what was used is paid
//! for once.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use baton_core::event::EventKind;
use baton_core::ledger::CallOutcome;
use baton_core::model::ModelErrorKind;
use baton_core::store::{PageRequest, RunQuery, RunStatus};
use baton_core::{HumanDuration, LedgerRow};
use baton_engine::{Engine, LeaseTimes, Parts, RunRequest};
use baton_models::scripted::{Scripted, Turn};
use futures_util::FutureExt as _;
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::durability::{die, die_in, go_on};
use super::{LONG, Setup, TestTool, eventually};

/// With a store in a file, which can be away. `patience` is how long a write waits for whoever else has it.
async fn on_file(setup: Setup, patience: Duration) -> (Parts, RunRequest, TempDir) {
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
async fn a_message_whose_sender_goes_away_while_it_is_accepted_is_worked_on() {
    let model = Scripted::default().script("a", [Turn::text("Done.")]);
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
async fn a_thread_that_nobody_can_work_on_does_not_keep_recovery_from_ending() {
    let model = Scripted::default().script("a", [Turn::text("Done.")]);
    let (parts, request, dir) = on_file(Setup::new(&model), LONG).await;
    let engine = Engine::new(parts);
    engine.start(request).await.unwrap().finish().await;
    engine.idle().await;
    assert_eq!(other_program(&dir).execute("UPDATE runs SET status = 'queued'", []).unwrap(), 1);
    let recovered =
        tokio::time::timeout(LONG, engine.recover()).await.expect("recovery goes round in circles");
    assert_eq!(recovered.unwrap(), 1, "it was due");
}

#[tokio::test]
async fn whoever_cannot_be_heard_stops_when_the_lease_ends() {
    let model = Scripted::default().script("a", [Turn::call("look", &json!({}))]);
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
async fn a_store_that_is_away_for_longer_than_a_lease_costs_time_not_the_run() {
    let model = Scripted::default().script("a", [Turn::call("look", &json!({})), Turn::text("Done.")]);
    let given_up = CancellationToken::new();
    let look = endless(&given_up);
    let (mut parts, request, dir) =
        on_file(Setup::new(&model).tool(look.clone()), Duration::from_millis(50)).await;
    parts.lease = LeaseTimes { length: Duration::from_secs(2), beat: Duration::from_millis(100) };
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

/// What came of the calls that were made at a place.
fn outcomes<'a>(rows: &'a [LedgerRow], path: &str) -> Vec<(CallOutcome, Option<&'a str>)> {
    let there = rows.iter().filter(|row| row.path == path);
    there.map(|row| (row.outcome, row.error.as_deref())).collect()
}

#[test]
fn a_call_that_failed_before_the_process_died_is_paid_for_once() {
    let busy = ModelErrorKind::Overloaded;
    let first = Turn::default().say("Half").fail_and_retry_after(busy, Duration::from_secs(30));
    let first = Scripted::default().script("a", [first]);
    let (engine, _, _) =
        die(Setup::new(&first), |event| matches!(event.kind, EventKind::TurnRestarted { .. }));
    let second = Scripted::default().script("a", [Turn::text("Whole.")]);
    let after = go_on(Setup::new(&second), &engine);
    after.is_sound();
    let expected = [(CallOutcome::Failed, Some(busy.word())), (CallOutcome::Ok, None)];
    assert_eq!(outcomes(&after.rows, "a/turn:1"), expected);
    assert_eq!(after.rows.len(), 2);
    let restarts = after.count(|kind| matches!(kind, EventKind::TurnRestarted { .. }));
    assert_eq!(restarts, 1, "its text was taken back already");
}

#[test]
fn a_closing_turn_that_is_not_taken_again_is_paid_for() {
    let with = |model: &Scripted| {
        Setup::new(model).agent(|agent| agent.limits.timeout = HumanDuration::from_secs(30))
    };
    let first = [Turn::default().say("Long").hang(), Turn::default().say("Closing").hang()];
    let first = Scripted::default().script("a", first);
    // Its time is over at once for the clock of the process, and has hardly begun for the one that comes after.
    let process =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (engine, _, _) = die_in(
        process,
        with(&first),
        |event| matches!(&event.kind, EventKind::TextDelta { delta, .. } if delta == "Closing"),
    );
    let second = Scripted::default().script("a", [Turn::text("Whole.")]);
    let after = go_on(with(&second), &engine);
    after.is_sound();
    assert_eq!(after.run.status, RunStatus::Completed);
    let taken_again = [(CallOutcome::Cancelled, None), (CallOutcome::Ok, None)];
    assert_eq!(outcomes(&after.rows, "a/turn:1"), taken_again);
    assert_eq!(outcomes(&after.rows, "a/turn:2"), [(CallOutcome::Cancelled, Some("interrupted"))]);
    let paid = after.rows.iter().map(|row| row.tokens.input_tokens).sum::<u64>();
    assert_eq!(after.run.usage.tokens.input_tokens, paid);
}
