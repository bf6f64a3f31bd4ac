//! Recorded replies of hosted models, with reasoning and parallel calls, give the same event log and the same next request each time.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::fixtures;
use crate::provider::{Provider, Reply};

/// Plays both replies of a provider to an agent that may read files. Returns its stream of events and the requests.
fn replay(provider: &str, model: &str) -> (String, Vec<Value>) {
    let recorded = |turn: u8| {
        let file = fixtures().join(format!("transcripts/{provider}-{turn}.txt"));
        Reply::Recorded(std::fs::read_to_string(file).unwrap())
    };
    let server = Provider::start(vec![recorded(1), recorded(2)]);
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    write("agents/a.md", "---\ndescription: Measures.\ntools: [read_file]\n---\nYou measure.\n");
    write("größe.txt", "3 m");
    write("weight.txt", "40 kg");
    let url = &server.base_url;
    write(
        "baton.toml",
        &format!(
            "[agents]\nmain = \"a\"\n[models]\ndefault = \"{provider}/{model}\"\n\
             [models.providers.{provider}]\nbase_url = \"{url}\"\n"
        ),
    );
    let ran = baton_with_key(dir.path());
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    (String::from_utf8(ran.stdout).unwrap(), server.finish())
}

fn baton_with_key(dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    for name in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
        command.env(name, "a-key-for-tests");
    }
    command.current_dir(dir).args(["run", "--json", "How large and how heavy is it?"]).output().unwrap()
}

/// The events of a stream, one line each, without what differs from run to run: ids, times, how a text was cut into pieces, and the
/// order of the events of parallel calls.
fn event_log(stream: &str) -> String {
    let mut log: Vec<Value> = Vec::new();
    for line in stream.lines() {
        let event = stable(serde_json::from_str(line).unwrap());
        match log.last_mut() {
            Some(last) if event["delta"].is_string() && last["type"] == event["type"] => {
                let joined = [last["delta"].as_str().unwrap(), event["delta"].as_str().unwrap()].concat();
                last["delta"] = joined.into();
            }
            _ => log.push(event),
        }
    }
    let is_call = |event: &Value| event["type"].as_str().is_some_and(|kind| kind.starts_with("TOOL_CALL"));
    for calls in log.chunk_by_mut(|one, next| is_call(one) && is_call(next)) {
        calls.sort_by_key(|event| event["toolCallId"].to_string());
    }
    log.iter().map(|event| format!("{event}\n")).collect()
}

/// Leaves out ids and times, which are new in each run.
fn stable(value: Value) -> Value {
    const CHANGING: [&str; 7] =
        ["timestamp", "seq", "runId", "threadId", "messageId", "parentMessageId", "metadata"];
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(name, _)| !CHANGING.contains(&name.as_str()));
            kept.map(|(name, field)| (name, stable(field))).collect()
        }
        Value::Array(items) => items.into_iter().map(stable).collect(),
        other => other,
    }
}

/// The conversation of a request. The marks around tool output are random.
fn conversation(request: &Value) -> Value {
    let messages = request.get("messages").or_else(|| request.get("contents")).unwrap();
    let text = messages.to_string();
    let parts: Vec<&str> =
        text.split(">>>").map(|part| part.trim_end_matches(|c: char| c.is_ascii_hexdigit())).collect();
    serde_json::from_str(&parts.join("MARK>>>")).unwrap()
}

fn check(provider: &str, model: &str) {
    let (stream, requests) = replay(provider, model);
    insta::assert_snapshot!(format!("{provider}-events"), event_log(&stream));
    insta::assert_json_snapshot!(format!("{provider}-next-request"), conversation(&requests[1]));
}

#[test]
fn parallel_calls_and_reasoning_of_openai_replay_to_the_same_log() {
    check("openai", "m");
}

#[test]
fn parallel_calls_and_reasoning_of_anthropic_replay_to_the_same_log() {
    check("anthropic", "claude-sonnet-4-5");
}

#[test]
fn parallel_calls_and_reasoning_of_gemini_replay_to_the_same_log() {
    check("gemini", "gemini-2.5-flash");
}
