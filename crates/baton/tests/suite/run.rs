//! `baton run`, as a person and as a script uses it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::provider::{Provider, Reply};
use crate::{Ran, baton, root};

/// A project whose agent `a` asks the given provider.
fn project(base_url: &str, head: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    let agent = format!("---\ndescription: Helps.\n{head}\n---\nYou help.\n");
    std::fs::write(dir.path().join("agents/a.md"), agent).unwrap();
    let config = format!(
        "[agents]\nmain = \"a\"\n[models]\ndefault = \"local/m\"\n[models.providers.local]\nbase_url = \"{base_url}\"\n"
    );
    std::fs::write(dir.path().join("baton.toml"), config).unwrap();
    dir
}

/// Runs with `input` piped in.
fn piped(dir: &Path, args: &[&str], input: &str) -> Ran {
    let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_baton"));
    let output =
        command.current_dir(dir).env("NO_COLOR", "1").args(args).write_stdin(input).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn i8_without_a_key_an_answer_comes_from_the_documents_with_sources() {
    let ran = piped(&root(), &["run", "-a", "knowledge", "How do I configure rate limiting?"], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("requests_per_minute"), "{}", ran.stdout);
    assert!(ran.stdout.contains("Sources:\n[1] docs/configuration.md"), "{}", ran.stdout);
    assert!(ran.stdout.contains("No language model is configured"), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
    let again = piped(&root(), &["run", "-a", "knowledge", "How do I configure rate limiting?"], "");
    assert_eq!(again.stdout, ran.stdout, "deterministic");
}

#[test]
fn any_openai_compatible_server_works_by_its_address_alone() {
    let provider = Provider::start(vec![Reply::Text(&["All ", "is ", "well."])]);
    let dir = project(&provider.base_url, "");
    let ran = piped(dir.path(), &["run", "How are you?"], "More detail.\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "All is well.\n"), "{}", ran.stderr);
    let asked = provider.finish();
    assert_eq!(asked[0]["messages"][0]["content"], "You help.");
    assert_eq!(asked[0]["messages"][1]["content"], "How are you?\n\nMore detail.");
    assert_eq!(asked[0]["model"], "m");
}

#[test]
fn a_tool_is_called_and_its_result_goes_back() {
    let provider = Provider::start(vec![
        Reply::Call { tool: "read_file", arguments: r#"{"path": "note.txt"}"# },
        Reply::Text(&["It says hello."]),
    ]);
    let dir = project(&provider.base_url, "tools: [read_file]");
    std::fs::write(dir.path().join("note.txt"), "hello from the file").unwrap();
    let ran = piped(dir.path(), &["run", "--json", "What does it say?"], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let asked = provider.finish();
    assert!(asked[1]["messages"].to_string().contains("hello from the file"), "{}", asked[1]);
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        [
            "RUN_STARTED",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "CUSTOM",
            "RUN_FINISHED"
        ]
    );
    assert_eq!(events[8]["value"]["usage"]["input_tokens"], 24);
    assert_eq!(events[8]["value"]["usage"]["cost"]["price"], "unknown");
}

#[test]
fn a_refused_key_exits_with_4_and_says_so() {
    let body = r#"{"error": {"message": "Incorrect API key provided", "type": "invalid_request_error", "code": "invalid_api_key"}}"#;
    let provider = Provider::start(vec![Reply::Status { status: 401, body }]);
    let dir = project(&provider.base_url, "");
    let ran = piped(dir.path(), &["run", "Hello"], "");
    assert_eq!(ran.code, 4);
    assert!(ran.stderr.contains("Incorrect API key") && ran.stdout.is_empty(), "{}", ran.stderr);
    provider.finish();
}

#[test]
fn an_overloaded_server_is_asked_again() {
    let overloaded = Reply::Status { status: 503, body: r#"{"error": {"message": "overloaded"}}"# };
    let provider = Provider::start(vec![overloaded, Reply::Text(&["Back."])]);
    let dir = project(&provider.base_url, "");
    let ran = piped(dir.path(), &["run", "Hello"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Back.\n"), "{}", ran.stderr);
    provider.finish();
}

#[test]
fn a_limit_exits_with_6_and_still_answers() {
    let call = || Reply::Call { tool: "list_files", arguments: "{}" };
    let provider = Provider::start(vec![call(), Reply::Text(&["Only this much."])]);
    let dir = project(&provider.base_url, "tools: [list_files]");
    let ran = piped(dir.path(), &["run", "--max-turns", "1", "Look around"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (6, "Only this much.\n"), "{}", ran.stderr);
    assert!(provider.finish()[1]["messages"].to_string().contains("reached the limit of turns"));
}

#[test]
fn an_answer_can_be_json_of_a_schema() {
    let provider = Provider::start(vec![Reply::Text(&["three"]), Reply::Text(&["{\"n\": 3}"])]);
    let dir = project(&provider.base_url, "");
    let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
    std::fs::write(dir.path().join("schema.json"), schema).unwrap();
    let ran = piped(dir.path(), &["run", "--output-schema", "schema.json", "How many?"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "{\"n\":3}\n"), "{}", ran.stderr);
    provider.finish();
    std::fs::write(dir.path().join("schema.json"), "{").unwrap();
    let ran = piped(dir.path(), &["run", "--output-schema", "schema.json", "How many?"], "");
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("schema.json is not JSON"), "{}", ran.stderr);
}

/// Ctrl-C in the middle of a stream: the connection is closed, the run ends as cancelled, the exit code says so.
#[test]
fn ctrl_c_cancels_and_exits_with_130() {
    let provider = Provider::start(vec![Reply::Hang("I was about to")]);
    let dir = project(&provider.base_url, "");
    let mut child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["run", "--json", "Hello"])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.find(|line| line.contains("I was about to")).expect("the first text");
    provider.heard.recv_timeout(Duration::from_secs(30)).unwrap();
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(
        provider.heard.recv_timeout(Duration::from_secs(30)).unwrap(),
        Value::Null,
        "the connection is closed"
    );
    let rest: Vec<String> = lines.collect();
    assert!(rest.iter().any(|line| line.contains("TEXT_MESSAGE_END")), "{rest:?}");
    assert!(
        rest.last().unwrap().contains("RUN_FINISHED") && rest.last().unwrap().contains("cancelled"),
        "{rest:?}"
    );
    let usage: Value = serde_json::from_str(&rest[rest.len() - 2]).unwrap();
    assert!(
        usage["value"]["usage"]["output_tokens"].as_u64().unwrap() > 0,
        "what was used is counted: {usage}"
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
    provider.finish();
}

#[test]
fn nothing_to_ask_is_a_usage_mistake() {
    let ran = piped(&root(), &["run", "-a", "knowledge"], "");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("nothing to ask"), "{}", ran.stderr);
    assert_eq!(baton(&root(), &["run", "--timeout", "soon", "x"]).code, 2);
}

#[test]
fn broken_agents_do_not_run() {
    let dir = project("http://127.0.0.1:1", "handoff: nobody");
    let ran = piped(dir.path(), &["run", "Hello"], "");
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("unknown-agent") && ran.stdout.is_empty(), "{}", ran.stderr);
}
