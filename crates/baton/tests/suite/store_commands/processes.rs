//! Runs whose processes live, end and die.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{THREAD, database, json, newest, ok, say};
use crate::baton;
use crate::provider::{Provider, Reply};
use crate::run::{Running, eventually, exit_code, project, send};

/// A command in the background.
fn background(dir: &Path, args: &[&str]) -> Running {
    let child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Running(child)
}

/// `baton run` in the background, once its model was asked and that is written down: both happen at the same time.
fn hanging(dir: &Path, provider: &Provider) -> Running {
    let running = background(dir, &["run", "--thread", THREAD, "Hello"]);
    provider.heard.recv_timeout(Duration::from_secs(30)).unwrap();
    eventually("the turn is written down", || {
        ok(dir, &["runs", "show", &newest(dir)]).contains("turn:1").then_some(())
    });
    running
}

#[test]
fn a_run_is_cancelled_from_outside() {
    let provider = Provider::start(vec![Reply::Hang("I was about to")]);
    let dir = project(&provider.base_url, "");
    let mut child = hanging(dir.path(), &provider);
    let run = newest(dir.path());
    let cancelled = ok(dir.path(), &["runs", "cancel", &run]);
    assert_eq!(cancelled, format!("run {run} will end when its process notices, in a few seconds\n"));
    assert_eq!(exit_code(&mut child), Some(130));
    provider.finish();
    assert_eq!(json(dir.path(), &["runs", "show", &run])["status"], "cancelled");
    let again = ok(dir.path(), &["runs", "cancel", &run]);
    assert_eq!(again, format!("run {run} had already ended: cancelled\n"));
}

#[test]
fn a_run_that_is_stopped_says_what_it_has() {
    let slow = Reply::Call { tool: "shell", arguments: r#"{"command": "sleep 4"}"# };
    let provider = Provider::start(vec![slow, Reply::Text(&["Only this much."])]);
    let dir = project(&provider.base_url, "tools: [shell]");
    let config = dir.path().join("baton.toml");
    let enabled = std::fs::read_to_string(&config).unwrap() + "[tools.shell]\nenabled = true\n";
    std::fs::write(&config, enabled).unwrap();
    let mut child = background(dir.path(), &["run", "--approve", "all", "Hello"]);
    provider.heard.recv_timeout(Duration::from_secs(30)).unwrap();
    let run = newest(dir.path());
    let stopped = ok(dir.path(), &["runs", "cancel", &run, "--stop"]);
    assert!(stopped.contains("will end with a closing turn"), "{stopped}");
    assert_eq!(exit_code(&mut child), Some(6));
    provider.finish();
    let shown = ok(dir.path(), &["runs", "show", &run]);
    assert!(
        shown.contains("completed (ended early: stopped)") && shown.contains("Only this much."),
        "{shown}"
    );
}

#[test]
fn a_run_whose_process_was_killed_is_cancelled_at_once_and_says_what_never_finished() {
    let provider = Provider::start(vec![Reply::Hang("I was about to")]);
    let dir = project(&provider.base_url, "");
    let mut child = hanging(dir.path(), &provider);
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    provider.finish();
    let run = newest(dir.path());
    let shown = ok(dir.path(), &["runs", "show", &run]);
    assert!(shown.contains("status    running") && shown.contains("not finished"), "{shown}");
    assert_eq!(ok(dir.path(), &["runs", "cancel", &run]), format!("run {run} has ended: cancelled\n"));
    let shown = ok(dir.path(), &["runs", "show", &run]);
    assert!(
        shown.contains("never finished, so whether it had an effect is not known: a/turn:1\n"),
        "{shown}"
    );
    assert!(ok(dir.path(), &["sessions", "show", &run]).contains("(never finished)"));
    assert_eq!(baton(dir.path(), &["runs", "resume"]).stderr, "no run has lost its process\n");
}

#[test]
fn a_run_whose_process_was_killed_goes_on() {
    let provider = Provider::start(vec![Reply::Hang("I was about to"), Reply::Text(&["Done."])]);
    let dir = project(&provider.base_url, "");
    let mut child = hanging(dir.path(), &provider);
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    let resumed = baton(dir.path(), &["runs", "resume"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(resumed.stderr, "1 run taken up: 1 completed\n");
    assert!(resumed.stdout.contains("completed") && resumed.stdout.contains("Done."), "{}", resumed.stdout);
    provider.finish();
    let shown = ok(dir.path(), &["runs", "show", &newest(dir.path())]);
    assert!(shown.contains("attempts  2 (its process ended once)"), "{shown}");
}

#[test]
fn a_run_that_cannot_be_taken_up_is_named() {
    let provider = Provider::start(vec![Reply::Hang("I was about to")]);
    let dir = project(&provider.base_url, "");
    let mut child = hanging(dir.path(), &provider);
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    provider.finish();
    let refuse =
        "CREATE TRIGGER refuse BEFORE UPDATE OF attempts ON runs BEGIN SELECT RAISE(ABORT, 'no'); END";
    database(dir.path()).execute_batch(refuse).unwrap();
    let run = newest(dir.path());
    let resumed = baton(dir.path(), &["runs", "resume"]);
    assert_eq!(resumed.code, 1, "{}", resumed.stderr);
    let said = format!(
        "1 run taken up: 1 running\nnot ended: {run}; `baton runs resume` tries again, `baton runs cancel` ends one for good\n"
    );
    assert_eq!(resumed.stderr, said);
}

/// Ctrl-C leaves the runs as they are, for the next one who takes them up.
#[test]
fn resuming_can_be_interrupted_and_resumed() {
    let hang = || Reply::Hang("I was about to");
    let provider = Provider::start(vec![hang(), hang(), Reply::Text(&["Done."])]);
    let dir = project(&provider.base_url, "");
    let mut first = background(dir.path(), &["run", "Hello"]);
    provider.heard.recv_timeout(Duration::from_secs(30)).unwrap();
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    assert_eq!(provider.heard.recv_timeout(Duration::from_secs(30)).unwrap(), Value::Null);
    let mut second = background(dir.path(), &["runs", "resume"]);
    provider.heard.recv_timeout(Duration::from_secs(30)).unwrap();
    send("INT", &second);
    assert_eq!(exit_code(&mut second), Some(130));
    let third = baton(dir.path(), &["runs", "resume"]);
    assert_eq!((third.code, third.stderr.as_str()), (0, "1 run taken up: 1 completed\n"));
    provider.finish();
    let shown = ok(dir.path(), &["runs", "show", &newest(dir.path())]);
    assert!(shown.contains("attempts  3 (its process ended 2 times)"), "{shown}");
}

/// History stays; what was only kept for a while does not.
#[test]
fn resuming_sweeps() {
    let provider = Provider::start(vec![Reply::Text(&["Hi."])]);
    let dir = project(&provider.base_url, "");
    say(dir.path(), "Hello");
    provider.finish();
    let database = database(dir.path());
    let keep = "INSERT INTO results (tenant, key, value, expires_at) VALUES ('default', ?1, '1', ?2)";
    database.execute(keep, ("old", 1)).unwrap();
    database.execute(keep, ("new", i64::MAX)).unwrap();
    assert_eq!(baton(dir.path(), &["runs", "resume"]).code, 0);
    let left: String =
        database.query_row("SELECT group_concat(key) FROM results", [], |row| row.get(0)).unwrap();
    assert_eq!(left, "new");
    assert_eq!(json(dir.path(), &["threads", "list"])["data"][0]["total_messages"], 2);
}

/// Kills a run at work, then sends another message to its thread. Returns what the model heard for that message.
fn next_after_a_crash() -> String {
    let replies = vec![Reply::Hang("I was"), Reply::Text(&["First."]), Reply::Text(&["Second."])];
    let provider = Provider::start(replies);
    let dir = project(&provider.base_url, "");
    let mut child = hanging(dir.path(), &provider);
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    let next = say(dir.path(), "And then?");
    assert_eq!((next.code, next.stdout.as_str()), (0, "Second.\n"), "{}", next.stderr);
    let completed = json(dir.path(), &["runs", "list", "--status", "completed"]);
    assert_eq!(completed["data"].as_array().unwrap().len(), 2);
    provider.finish().last().unwrap()["messages"].to_string()
}

/// What came first is finished first.
#[test]
fn the_next_message_of_a_thread_takes_up_the_run_before_it() {
    let told = next_after_a_crash();
    assert!(told.contains("Hello") && told.contains("And then?"), "{told}");
}

#[test]
fn a14_a_message_that_waited_sees_the_answer_it_waited_for() {
    let told = next_after_a_crash();
    assert!(told.contains("First."), "{told}");
}
