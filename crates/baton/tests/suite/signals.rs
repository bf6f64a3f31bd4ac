//! Signals while the store is unavailable: they are heard all the same.

use std::io::Read as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio_postgres::NoTls;

use crate::postgres;
use crate::provider::{Provider, Reply};
use crate::run::{Running, eventually, exit_code, project, send, signal_mask, signals};
use crate::store_commands::{json, newest};

/// Well below what the store would be waited for.
const AT_ONCE: Duration = Duration::from_secs(10);

fn with_store(dir: &Path, url: &str) {
    let file = dir.join("baton.toml");
    let config = std::fs::read_to_string(&file).unwrap() + &format!("[store]\nurl = \"{url}\"\n");
    std::fs::write(file, config).unwrap();
}

/// `baton run Hello`, still running.
fn asking(dir: &Path) -> Running {
    let child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["run", "Hello"])
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Running(child)
}

/// Sends a signal. Returns the exit code and what was said on stderr.
fn ended_by(signal: &str, child: &mut Running) -> (i32, String) {
    send(signal, child);
    let code = exit_code(child).expect("an exit code, not a signal");
    let mut said = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (code, said)
}

#[test]
fn a_server_that_never_answers_does_not_keep_signals_from_being_heard() {
    for (signal, code) in signals() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let dir = project("http://127.0.0.1:1", "");
        with_store(dir.path(), &format!("postgres://baton@{}/baton", server.local_addr().unwrap()));
        let mut child = asking(dir.path());
        let connection = server.accept().unwrap();
        let begun = Instant::now();
        assert_eq!(ended_by(signal, &mut child), (code, String::new()));
        assert!(begun.elapsed() < AT_ONCE, "{signal}: {:?}", begun.elapsed());
        drop(connection);
    }
}

#[test]
fn a_file_that_is_locked_does_not_keep_signals_from_being_heard() {
    let dir = project("http://127.0.0.1:1", "");
    with_store(dir.path(), "sqlite://baton.db?busy_timeout=60000");
    let locked = Connection::open(dir.path().join("baton.db")).unwrap();
    locked.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let mut child = asking(dir.path());
    let pid = child.0.id().to_string();
    eventually("signals are listened to", || (signal_mask(&pid, "SigCgt:") & 0b10 != 0).then_some(()));
    let begun = Instant::now();
    assert_eq!(ended_by("INT", &mut child), (130, String::new()));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

/// Nobody knows whether the message was accepted, so it is said how to find out.
#[test]
fn a_signal_while_the_message_is_sent_says_that_it_may_have_been_accepted() {
    let provider = Provider::start(vec![Reply::Text(&["Hi."])]);
    let dir = project(&provider.base_url, "");
    let url = postgres::new_span_id();
    with_store(dir.path(), &url);
    assert_eq!(exit_code(&mut asking(dir.path())), Some(0));
    provider.finish();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (client, connection) = runtime.block_on(tokio_postgres::connect(&url, NoTls)).unwrap();
    runtime.spawn(connection);
    runtime.block_on(client.batch_execute("BEGIN; LOCK TABLE baton.messages")).unwrap();
    let mut child = asking(dir.path());
    let waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'baton.messages'::regclass";
    eventually("the message is being sent", || runtime.block_on(client.query_opt(waits, &[])).unwrap());
    let (code, said) = ended_by("TERM", &mut child);
    assert_eq!(code, 143, "{said}");
    assert_eq!(said, "the message may have been accepted: `baton runs list` shows its run then\n");
}

#[test]
fn a_run_that_the_store_could_not_be_told_the_end_of_is_not_left_unsaid() {
    let provider = Provider::start(vec![Reply::Hang("I was about to")]);
    let dir = project(&provider.base_url, "");
    with_store(dir.path(), "sqlite://baton.db?busy_timeout=100");
    let mut child = asking(dir.path());
    provider.heard.recv_timeout(Duration::from_secs(30)).unwrap();
    let run = newest(dir.path());
    let locked = Connection::open(dir.path().join("baton.db")).unwrap();
    locked.busy_timeout(Duration::from_secs(30)).unwrap();
    locked.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (code, said) = ended_by("INT", &mut child);
    assert_eq!(code, 130, "{said}");
    let way_out = format!("`baton runs cancel {run}` ends it, and `baton runs resume` goes on with it");
    assert!(said.contains("the store is unavailable") && said.contains(&way_out), "{said}");
    locked.execute_batch("ROLLBACK").unwrap();
    provider.finish();
    assert_eq!(json(dir.path(), &["runs", "show", &run])["status"], "running");
}
