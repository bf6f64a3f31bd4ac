//! Several processes on one store: a thread is worked on by one at a time, and everybody gets their answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_core::event::EventKind;
use baton_core::store::MessageQuery;
use baton_core::{Store, TenantId, ThreadId};
use serde_json::json;

use crate::postgres;

const PROCESSES: usize = 6;

/// How many requests there were, how many there are now, and the most at once.
#[derive(Default)]
struct Load {
    all: AtomicUsize,
    now: AtomicUsize,
    most: AtomicUsize,
}

fn provider(load: &Arc<Load>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    let load = Arc::clone(load);
    // Its threads end with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let load = Arc::clone(&load);
            std::thread::spawn(move || answer(stream, &load));
        }
    });
    base_url
}

fn answer(mut stream: TcpStream, load: &Load) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    // A question about the model is not a call.
    if first.starts_with("GET") {
        let _ = stream.write_all(b"HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    }
    let mut length = 0;
    for line in reader.by_ref().lines().map_while(Result::ok) {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    load.all.fetch_add(1, Ordering::SeqCst);
    load.most.fetch_max(load.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(60));
    load.now.fetch_sub(1, Ordering::SeqCst);
    let choice = json!({"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"});
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let body = format!("{head}data: {}\n\ndata: [DONE]\n\n", json!({"id": "1", "choices": [choice]}));
    let _ = stream.write_all(body.as_bytes());
}

/// All of them ask in the same thread at the same time.
fn contend(store: &str) {
    let load = Arc::new(Load::default());
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    std::fs::write(dir.path().join("agents/a.md"), "---\ndescription: Helps.\n---\nYou help.\n").unwrap();
    let config = format!(
        "[agents]\nmain = \"a\"\n[store]\nurl = \"{store}\"\n[models]\ndefault = \"local/m\"\n[models.providers.local]\n\
         base_url = \"{}\"\n",
        provider(&load)
    );
    std::fs::write(dir.path().join("baton.toml"), config).unwrap();
    let thread = ThreadId::random();
    let ask = |number: usize| {
        Command::new(env!("CARGO_BIN_EXE_baton"))
            .args(["run", "--thread", &thread.to_string(), &format!("Question {number}")])
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..PROCESSES).map(ask).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "Yes.\n");
    }
    assert_eq!(load.all.load(Ordering::SeqCst), PROCESSES, "each message is worked on once");
    assert_eq!(load.most.load(Ordering::SeqCst), 1, "two worked on one thread at once");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(in_order(store, dir.path(), thread));
}

/// One run begins when the one before has ended, and what each was told comes before its answer.
async fn in_order(store: &str, dir: &std::path::Path, thread: ThreadId) {
    let store = baton_store::open(store, dir).await.unwrap();
    let tenant = store.tenant(&TenantId::parse("default").unwrap());
    let mut open = None;
    for event in tenant.events(thread, 0, 10_000).await.unwrap() {
        match event.kind {
            EventKind::RunStarted { .. } => assert_eq!(open.replace(event.run_id), None),
            kind if kind.is_end() => assert_eq!(open.take(), Some(event.run_id)),
            _ => assert_eq!(open, Some(event.run_id)),
        }
    }
    let messages = tenant.messages(thread, MessageQuery::last(100)).await.unwrap();
    assert_eq!(messages.len(), 2 * PROCESSES);
}

#[test]
fn processes_on_one_postgres_take_turns() {
    contend(&postgres::new_span_id());
}

#[test]
fn processes_on_one_file_take_turns() {
    contend("sqlite://baton.db");
}
