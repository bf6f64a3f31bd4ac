//! Long tool output survives kill -9: it is in the store with the step that recorded the tool's result, and in no temporary folder.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_core::ThreadId;
use baton_core::store::RunStatus;
use serde_json::{Value, json};

use super::project;
use super::seen::{Seen, block_on};
use super::wire::{self, Answer};
use crate::{baton, postgres};

/// 108 894 bytes, of which the last line is `20000`.
const COMMAND: &str = "seq 1 20000";
/// Within the part of the output that the model is not shown.
const OFFSET: u64 = 108_000;

/// Requests a long output, hangs the first time it gets the beginning of it, and reads the end of it the second time.
#[derive(Clone, Default)]
struct Provider {
    second_turns: Arc<AtomicUsize>,
    /// The last result of `read_output`.
    read: Arc<Mutex<String>>,
}

impl Provider {
    fn answer(&self, request: &Value) -> Option<Answer> {
        let messages = request["messages"].as_array()?;
        let results: Vec<&Value> = messages.iter().filter(|message| message["role"] == "tool").collect();
        let (frame, finish) = match results.as_slice() {
            [] => (call("shell", &json!({"command": COMMAND})), "tool_calls"),
            [shown] if self.second_turns.fetch_add(1, Ordering::SeqCst) > 0 => {
                let arguments = json!({"handle": handle(&shown["content"].to_string()), "offset": OFFSET});
                (call("read_output", &arguments), "tool_calls")
            }
            [_] => (wire::text("Let me see"), wire::HANG),
            [.., read] => {
                read["content"].as_str()?.clone_into(&mut self.read.lock().unwrap());
                (wire::text("It ends with 20000."), "stop")
            }
        };
        Some(Answer { frames: vec![frame], finish })
    }

    /// Waits until the model has been sent the beginning of the output.
    fn wait_for_second_turn(&self) {
        for _ in 0..6_000 {
            if self.second_turns.load(Ordering::SeqCst) > 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the second turn never began");
    }
}

fn call(tool: &str, arguments: &Value) -> String {
    wire::calls(&[(tool, "call_1".to_owned(), arguments.clone())])
}

fn handle(text: &str) -> String {
    let start = text.find("out_").expect("a handle");
    text[start..start + 36].to_owned()
}

/// Starts the run in a process of its own, whose temporary files go to `temporary`.
fn start(dir: &Path, temporary: &Path, thread: ThreadId) -> Child {
    Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["run", "--json", "--approve", "all", "--thread", &thread.to_string(), "Go"])
        .current_dir(dir)
        .env("TMPDIR", temporary)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the process after the tool has finished and before the model reads the rest of its output.
fn kill_before_the_rest_is_read(store: &str) {
    let provider = Provider::default();
    let answers = provider.clone();
    let base_url = wire::serve(move |request| answers.answer(request));
    let (dir, temporary) = (project(&base_url, store), tempfile::tempdir().unwrap());
    let thread = ThreadId::random();
    let mut child = start(dir.path(), temporary.path(), thread);
    provider.wait_for_second_turn();
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = baton(dir.path(), &["runs", "resume"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let read = provider.read.lock().unwrap().clone();
    assert!(read.contains("; this is the end.") && read.contains("\n19999\n20000\n"), "{read}");
    assert!(read.contains("<<<output "), "the marks of untrusted output are missing: {read}");
    let left: Vec<_> = std::fs::read_dir(temporary.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "temporary files are left: {left:?}");
    let seen = block_on(async { Seen::open(dir.path(), store, thread).await.run().await });
    assert_eq!(seen.unwrap().status, RunStatus::Completed);
}

#[test]
fn spooled_output_is_readable_after_a_crash_on_sqlite() {
    kill_before_the_rest_is_read("sqlite://baton.db");
}

#[test]
fn spooled_output_is_readable_after_a_crash_on_postgres() {
    kill_before_the_rest_is_read(&postgres::new_span_id());
}
