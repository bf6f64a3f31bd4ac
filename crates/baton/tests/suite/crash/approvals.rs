//! Kill -9 of the server while a call deep in a run waits for approval.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use super::wire::{self, Answer};
use crate::served::{LONG, Served};

/// The agent of a request and which of its turns it is.
type Asked = (&'static str, usize);

fn answer(request: &Value, log: &Mutex<Vec<Asked>>) -> Option<Answer> {
    let messages = request["messages"].as_array()?;
    let system = messages.first()?["content"].to_string();
    let agent = ["assistant", "worker", "helper"]
        .into_iter()
        .find(|name| system.contains(&format!("You are {name}.")))?;
    let turn = 1 + messages.iter().filter(|message| message["role"] == "assistant").count();
    log.lock().unwrap().push((agent, turn));
    let call = |tool: &'static str, id: &str, arguments: Value| (tool, id.to_owned(), arguments);
    let frame = match (agent, turn) {
        ("assistant", 1) => wire::calls(&[
            call("call_agent", "call_1", json!({ "specialist": "worker", "mission": "write it down" })),
            call("call_agent", "call_2", json!({ "specialist": "helper", "mission": "help" })),
        ]),
        ("worker", 1) => {
            wire::calls(&[call("write_file", "call_1", json!({ "path": "out.txt", "content": "once\n" }))])
        }
        _ => wire::text(&format!("{agent} is done.")),
    };
    let finish = if turn == 1 && agent != "helper" { "tool_calls" } else { "stop" };
    Some(Answer { frames: vec![frame], finish })
}

fn project(base_url: &str) -> tempfile::TempDir {
    let dir = super::project(base_url, "sqlite://baton.db");
    std::fs::remove_file(dir.path().join("agents/a.md")).unwrap();
    let agents = [
        ("assistant", "agents: [worker, helper]\n"),
        ("worker", "tools: [write_file]\napprovals: {ask: [write_file]}\n"),
        ("helper", ""),
    ];
    for (name, keys) in agents {
        let file = format!("---\ndescription: Helps.\n{keys}---\nYou are {name}.\n");
        std::fs::write(dir.path().join(format!("agents/{name}.md")), file).unwrap();
    }
    let config = std::fs::read_to_string(dir.path().join("baton.toml")).unwrap();
    std::fs::write(dir.path().join("baton.toml"), config.replace("main = \"a\"", "main = \"assistant\""))
        .unwrap();
    dir
}

fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "it should have happened long ago");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// F21, F26, F34: the approval is visible at the root with its path. The server is killed while the run waits; after the restart a
/// decision over HTTP continues it. The file is written once, and no model is asked again.
#[test]
fn f21_approval_survives_a_kill() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let dir = project(&wire::serve(move |request| answer(request, &log)));
    let thread = Uuid::new_v4().to_string();
    let mut served = Served::start(dir.path());
    let body = json!({ "content": "Go" }).to_string();
    let path = format!("/api/v1/threads/{thread}/messages");
    let stream = served.read("POST", &path, "text/event-stream", &body);
    assert!(stream.contains("baton.approval") && stream.contains(r#""type":"interrupt""#), "{stream}");
    served.child.kill().unwrap();
    served.child.wait().unwrap();

    let served = Served::start(dir.path());
    let open = served.get("/api/v1/approvals?status=pending");
    let [approval] = &open["data"].as_array().unwrap()[..] else { panic!("{open}") };
    assert_eq!(approval["path"], "assistant/turn:1/tool:1/call:worker/turn:1/tool:1");
    assert_eq!((&approval["agent"], &approval["tool"]), (&json!("worker"), &json!("write_file")));
    let run = approval["run_id"].as_str().unwrap().to_owned();
    assert_eq!(served.get(&format!("/api/v1/runs/{run}"))["status"], "waiting");
    assert!(!dir.path().join("out.txt").exists());
    assert_eq!(asked.lock().unwrap().len(), 3);

    let decide = format!("/api/v1/approvals/{}", approval["approval_id"].as_str().unwrap());
    let yes = json!({ "decision": "approve", "digest": approval["digest"] }).to_string();
    let decided = served.read("POST", &decide, "application/json", &yes);
    assert!(decided.contains(r#""status":"approved""#), "{decided}");
    until(|| (served.get(&format!("/api/v1/runs/{run}"))["status"] == "completed").then_some(()));
    assert_eq!(std::fs::read_to_string(dir.path().join("out.txt")).unwrap(), "once\n");
    let mut asked = asked.lock().unwrap().clone();
    asked.sort_unstable();
    assert_eq!(asked, [("assistant", 1), ("assistant", 2), ("helper", 1), ("worker", 1), ("worker", 2)]);
    let again = served.read("POST", &decide, "application/json", &yes);
    assert!(again.contains("approval_decided"), "{again}");
}
