//! What is changed is what was meant, and what went wrong is said.

use std::fs::File;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;

use super::{THREAD, database, json, newest, ok, say, with_a_tool_call};
use crate::baton;
use crate::provider::{Provider, Reply};
use crate::run::project;

/// A project with one thread and one run, which has ended.
fn with_a_run() -> tempfile::TempDir {
    let provider = Provider::start(vec![Reply::Text(&["Hi."])]);
    let dir = project(&provider.base_url, "");
    assert_eq!(say(dir.path(), "Hello").code, 0);
    provider.finish();
    dir
}

/// Older runs of the same thread, with these numbers.
fn add_runs(dir: &Path, numbers: RangeInclusive<u32>) {
    let sql = "WITH RECURSIVE n (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM n WHERE n < ?2)
        INSERT INTO runs
        SELECT tenant, unhex(printf('01890a5d%04d', n) || substr(hex(run_id), 13)), thread_id, thread_number, ordinal + n, user_id, agent,
            status, request, message_number, created_at - n, started_at, finished_at, attempts, first_seq, last_seq, cancel,
            result, text_of
        FROM runs, n WHERE ordinal = (SELECT min(ordinal) FROM runs)";
    database(dir).execute(sql, [numbers.start(), numbers.end()]).unwrap();
}

/// The beginning of an id may mean another thread than the one that was meant, and nobody would see it.
#[test]
fn without_a_question_only_a_whole_id_is_deleted() {
    let dir = with_a_run();
    let refused = baton(dir.path(), &["threads", "delete", "550e8400", "--yes"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert!(refused.stderr.contains("give the whole id"), "{}", refused.stderr);
    assert!(ok(dir.path(), &["threads", "delete", THREAD, "--yes"]).starts_with("deleted thread"));
}

#[test]
fn a_beginning_cancels_a_run_only_where_all_of_them_are_known() {
    let dir = with_a_run();
    add_runs(dir.path(), 1..=199);
    let run = newest(dir.path());
    assert!(ok(dir.path(), &["runs", "cancel", &run[..13]]).starts_with(&format!("run {run} had already")));
    add_runs(dir.path(), 200..=200);
    let refused = baton(dir.path(), &["runs", "cancel", &run[..13]]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert!(refused.stderr.contains("more than 200 runs"), "{}", refused.stderr);
    assert!(ok(dir.path(), &["runs", "cancel", &run]).starts_with(&format!("run {run} had already")));
    // Looking at another one than was meant does no harm.
    assert!(ok(dir.path(), &["runs", "show", &run[..13]]).contains(&run));
}

#[test]
fn a_cursor_that_no_list_gave_is_a_usage_mistake() {
    let dir = with_a_run();
    for command in [&["threads", "list"][..], &["runs", "list"], &["sessions", "list"], &["audit"]] {
        let ran = baton(dir.path(), &[command, &["--cursor", "zzz"]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{command:?}: {}", ran.stderr);
        let said =
            "error: --cursor is not valid: use the one that the list before ended with, or leave it out\n";
        assert_eq!(ran.stderr, said, "{command:?}");
    }
}

/// A beginning could only be looked for among threads that exist, and those that are deleted are the ones asked about.
#[test]
fn the_trail_of_a_thread_is_asked_for_by_its_whole_id() {
    let dir = with_a_run();
    let refused = baton(dir.path(), &["audit", "--thread", "550e8400"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert!(refused.stderr.contains("is not a thread id"), "{}", refused.stderr);
    ok(dir.path(), &["threads", "delete", THREAD, "--yes"]);
    assert_eq!(json(dir.path(), &["audit", "--thread", THREAD])["data"].as_array().unwrap().len(), 4);
}

#[test]
fn events_that_cannot_be_written_are_an_error() {
    let dir = with_a_tool_call();
    let events = |stdout: File| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        let command = command.args(["runs", "events", &newest(dir.path()), "--json"]).current_dir(dir.path());
        let output = command.env("NO_COLOR", "1").stdout(stdout).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = events(File::options().write(true).open("/dev/full").unwrap());
    assert_eq!(code, Some(1), "{said}");
    assert!(said.starts_with("error: cannot write to stdout: "), "{said}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(events(File::from(std::os::fd::OwnedFd::from(writer))), (Some(0), String::new()));
}
