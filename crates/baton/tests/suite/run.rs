//! `baton run`, as a person and as a script uses it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::provider::{Provider, Reply};
use crate::{Ran, baton, root};

/// A project whose agent `a` asks the given provider.
pub(super) fn project(base_url: &str, head: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    let agent = format!("---\ndescription: Helps.\n{head}\n---\nYou help.\n");
    std::fs::write(dir.path().join("agents/a.md"), agent).unwrap();
    let config = format!(
        "[agents]\nmain = \"a\"\n[models]\ndefault = \"local/m\"\n[models.providers.local]\nbase_url = \"{base_url}\"\n\
         [models.providers.local.models.m]\nassists = {{ workflow_values = false, workflow_evidence = false, agent_tools = false, search_first = false }}\n"
    );
    std::fs::write(dir.path().join("baton.toml"), config).unwrap();
    dir
}

/// Runs with `input` piped in.
pub(super) fn piped(dir: &Path, args: &[&str], input: &str) -> Ran {
    let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_baton"));
    let output =
        command.current_dir(dir).env("NO_COLOR", "1").args(args).write_stdin(input).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Ends with its test, also when that fails.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `baton run --json Hello`, still running.
fn started(dir: &Path) -> Running {
    let child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["run", "--json", "Hello"])
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Running(child)
}

pub(super) fn send(signal: &str, Running(child): &Running) {
    let kill = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
}

/// Those that ask a command to end, each with its exit code. Under `nohup` the last one is ignored, as it should be.
pub(super) fn signals() -> impl Iterator<Item = (&'static str, i32)> {
    let is_nohup = signal_mask("self", "SigIgn:") & 1 == 1;
    let signals = [("INT", 130), ("TERM", 143), ("HUP", 129)];
    signals.into_iter().filter(move |(signal, _)| *signal != "HUP" || !is_nohup)
}

/// Which signals a process ignores or catches.
pub(super) fn signal_mask(process: &str, which: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix(which)).unwrap_or("0").trim();
    u64::from_str_radix(mask, 16).unwrap()
}

/// Asks until there is an answer.
pub(super) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(super) fn exit_code(Running(child): &mut Running) -> Option<i32> {
    eventually("the command ends", || child.try_wait().unwrap()).code()
}

/// Describes an MCP server `s` that is this script and writes its process id into the file `pid`.
fn with_server(dir: &Path, script: &str) {
    let script = format!("echo $$ > '{0}/pid.new'; mv '{0}/pid.new' '{0}/pid'; {script}", dir.display());
    let servers = serde_json::json!({"mcpServers": {"s": {"command": "sh", "args": ["-c", script]}}});
    std::fs::write(dir.join(".mcp.json"), servers.to_string()).unwrap();
}

fn server_pid(dir: &Path) -> String {
    let text = eventually("the server starts", || std::fs::read_to_string(dir.join("pid")).ok());
    text.trim().to_owned()
}

/// A process that is only waiting to be reaped has ended.
fn assert_ends(pid: &str) {
    eventually("the server ends", || {
        let ps = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
        let state = String::from_utf8(ps.stdout).unwrap();
        (state.trim().is_empty() || state.starts_with('Z')).then_some(())
    });
}

#[test]
fn i8_without_a_key_an_answer_comes_from_the_documents_with_sources() {
    // A copy, because the store is created in the project's folder.
    let project = tempfile::tempdir().unwrap();
    for folder in ["agents", "docs"] {
        let copied = Command::new("cp").arg("-r").arg(root().join(folder)).arg(project.path()).status();
        assert!(copied.unwrap().success());
    }
    let ran = piped(project.path(), &["run", "-a", "knowledge", "How do I configure rate limiting?"], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("requests_per_minute"), "{}", ran.stdout);
    assert!(ran.stdout.contains("Sources:\n[1] docs/configuration.md"), "{}", ran.stdout);
    assert!(ran.stdout.contains("No language model is configured"), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
    let again = piped(project.path(), &["run", "-a", "knowledge", "How do I configure rate limiting?"], "");
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

/// A project in which nobody is named, with three agents that each say who they are in their prompt.
fn unassigned(base_url: &str, settings: &str) -> tempfile::TempDir {
    let dir = project(base_url, "");
    let agents = [
        ("billing", "Explains invoices, refunds and payments.", ""),
        ("reception", "Welcomes people.", ""),
        ("travel", "Books flights.", "accepts_handoff:\n  triggers: [book a trip]\n"),
    ];
    for (name, description, more) in agents {
        let file = format!("---\ndescription: {description}\n{more}---\nYou are {name}.\n");
        std::fs::write(dir.path().join(format!("agents/{name}.md")), file).unwrap();
    }
    let config = std::fs::read_to_string(dir.path().join("baton.toml")).unwrap();
    std::fs::write(dir.path().join("baton.toml"), config.replace("main = \"a\"", settings)).unwrap();
    dir
}

#[test]
fn g10_auto_lets_the_message_decide_who_answers_first() {
    let provider = Provider::start((0..4).map(|_| Reply::Text(&["Yes."])).collect());
    let dir = unassigned(&provider.base_url, "main = \"auto\"\nfallback = \"reception\"");
    for args in [
        &["run", "Where is my refund?"][..],
        &["run", "I want to book a trip to Kyoto with all of my seventeen cousins"],
        &["run", "Good evening, what do you think of the weather?"],
        &["run", "-a", "travel", "Where is my refund?"],
    ] {
        let ran = piped(dir.path(), args, "");
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
    }
    let asked = provider.finish();
    let who: Vec<&str> = asked.iter().filter_map(|call| call["messages"][0]["content"].as_str()).collect();
    assert_eq!(who, ["You are billing.", "You are travel.", "You are reception.", "You are travel."]);
}

#[test]
fn g10_what_was_chosen_and_how_surely_is_logged() {
    let provider = Provider::start(vec![Reply::Text(&["Yes."])]);
    let dir = unassigned(&provider.base_url, "main = \"auto\"\nthreshold = 1.0");
    let output = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["run", "Where is the refund for my broken kettle?"])
        .current_dir(dir.path())
        .env("BATON_LOG", "info")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    // Nobody is called `assistant` here, so the first by name stands in.
    assert!(log.contains("entry chosen agent=a domain=billing confidence="), "{log}");
    assert_eq!(provider.finish()[0]["messages"][0]["content"], "You help.");
}

#[test]
fn g10_a_fallback_that_is_not_there_is_an_error_before_anything_is_asked() {
    let dir = unassigned("http://127.0.0.1:9", "main = \"auto\"\nfallback = \"recption\"");
    let ran = piped(dir.path(), &["run", "Hello"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
    assert!(
        ran.stderr.contains("`fallback`") && ran.stderr.contains("did you mean `reception`?"),
        "{}",
        ran.stderr
    );
    let checked = baton(dir.path(), &["validate"]);
    assert_eq!(checked.code, 3);
    let expected =
        ["unknown-main", "baton.toml:3:12", "the fallback agent `recption`", "did you mean `reception`?"];
    for text in expected {
        assert!(checked.stdout.contains(text), "{text}: {}", checked.stdout);
    }
}

/// G19: what a provider says may hold anything, and a warning about it reaches people.
#[test]
fn g19_a_warning_shows_neither_secrets_nor_addresses() {
    let body = r#"{"error": {"message": "jane@example.com may not use sk-0123456789abcdefghij now"}}"#;
    let provider = Provider::start(vec![Reply::Status { status: 503, body }, Reply::Text(&["Yes."])]);
    let dir = project(&provider.base_url, "");
    let ran = piped(dir.path(), &["run", "Hello"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Yes.\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("[EMAIL] may not use [REDACTED] now"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("jane") && !ran.stderr.contains("0123456789"), "{}", ran.stderr);
    provider.finish();
}

#[test]
fn a_log_level_that_does_not_exist_is_an_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    let output =
        command.args(["agents", "list"]).current_dir(root()).env("BATON_LOG", "loud").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), &b""[..]), "{error}");
    assert!(error.contains("BATON_LOG") && error.contains("`loud` is not a level"), "{error}");
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
            "STATE_SNAPSHOT",
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
    let usage = &events[9]["value"];
    assert_eq!(usage["usage"]["input_tokens"], 24);
    assert_eq!(usage["usage"]["cost"]["price"], "unknown");
    let by_agent = serde_json::json!([{"agent": "a", "usage": usage["usage"].clone()}]);
    assert_eq!(usage["by_agent"], by_agent);
    assert_eq!(events[1]["snapshot"]["activeAgent"]["id"], "a");
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
    assert!(provider.finish()[1]["messages"].to_string().contains("the limit of turns was met"));
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
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("schema.json is not JSON"), "{}", ran.stderr);
    for invalid in [r#"{"type": 5}"#, "42", "[]"] {
        std::fs::write(dir.path().join("schema.json"), invalid).unwrap();
        let ran = piped(dir.path(), &["run", "--output-schema", "schema.json", "How many?"], "");
        assert_eq!(ran.code, 2, "{invalid}: {}", ran.stderr);
        assert!(ran.stderr.contains("not a valid JSON Schema"), "{invalid}: {}", ran.stderr);
    }
}

/// Ctrl-C in the middle of a stream: the connection is closed, the run ends as cancelled, the exit code says so.
#[test]
fn ctrl_c_cancels_and_exits_with_130() {
    let provider = Provider::start(vec![Reply::Hang("I was about to")]);
    let dir = project(&provider.base_url, "");
    let mut child = started(dir.path());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.find(|line| line.contains("I was about to")).expect("the first text");
    provider.heard.recv_timeout(Duration::from_secs(30)).unwrap();
    send("INT", &child);
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
    assert_eq!(exit_code(&mut child), Some(130));
    provider.finish();
}

#[test]
fn a_signal_ends_servers_that_are_still_starting() {
    for (signal, code) in signals() {
        let dir = project("http://127.0.0.1:1", "mcp_servers: [s]");
        with_server(dir.path(), "trap '' TERM HUP INT; sleep 1000");
        let mut child = started(dir.path());
        let pid = server_pid(dir.path());
        send(signal, &child);
        assert_eq!(exit_code(&mut child), Some(code), "{signal}");
        assert_ends(&pid);
    }
}

#[test]
fn a_second_signal_kills_servers_that_do_not_want_to_end() {
    let provider = Provider::start(vec![Reply::Hang("I was about to")]);
    let dir = project(&provider.base_url, "mcp_servers: [s]");
    let hello = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
    let tools = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;
    let script = format!(
        "trap '' TERM; read a; echo '{hello}'; read a; read a; echo '{tools}'; while :; do sleep 1; done"
    );
    with_server(dir.path(), &script);
    let mut child = started(dir.path());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let before: Vec<String> = lines.by_ref().take_while(|line| !line.contains("I was about to")).collect();
    assert!(!before.iter().any(|line| line.contains("not available")), "{before:?}");
    let pid = server_pid(dir.path());
    send("INT", &child);
    lines.find(|line| line.contains("RUN_FINISHED")).expect("the end");
    send("TERM", &child);
    assert!(matches!(exit_code(&mut child), Some(130 | 143)));
    assert_ends(&pid);
    provider.finish();
}

#[test]
fn signals_are_heard_while_nobody_reads_the_output() {
    let provider = Provider::start(vec![Reply::Flood("and so on ")]);
    let dir = project(&provider.base_url, "");
    let mut child = started(dir.path());
    provider.heard.recv_timeout(Duration::from_secs(30)).unwrap();
    // Enough for the pipe to be full.
    std::thread::sleep(Duration::from_secs(1));
    send("INT", &child);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(child.0.try_wait().unwrap(), None, "what is written is not thrown away by one signal");
    send("INT", &child);
    assert_eq!(exit_code(&mut child), Some(130));
    provider.finish();
}

#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let provider = Provider::start(vec![Reply::Flood("and so on ")]);
    let dir = project(&provider.base_url, "");
    let mut child = started(dir.path());
    // The reader leaves while the provider sends, so the request has been read by then.
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("and so on")), "the first piece of the answer");
    drop(lines);
    assert_eq!(exit_code(&mut child), Some(141));
    assert_eq!(provider.finish().last(), Some(&Value::Null), "the connection is closed");
}

#[test]
fn mistakes_of_the_caller_exit_with_2() {
    let dir = project("http://127.0.0.1:1", "");
    let code = |args: &[&str], input: &[u8]| {
        let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_baton"));
        let output = command.current_dir(dir.path()).args(args).write_stdin(input).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let cases: [(&[&str], &[u8], &str); 4] = [
        (&["run", "-a", "nobody", "Hello"], b"", "no agent is called `nobody`"),
        (&["run", "--output-schema", "none.json", "Hello"], b"", "cannot read none.json"),
        (&["run"], b"\xff\xfe\x00", "not text"),
        (&["run"], &vec![b'x'; 1024 * 1024 + 1], "longer than 1048576 bytes"),
    ];
    for (args, input, message) in cases {
        let (code, stderr) = code(args, input);
        assert_eq!(code, 2, "{args:?}: {stderr}");
        assert!(stderr.contains(message), "{args:?}: {stderr}");
    }
}

#[test]
fn broken_configuration_exits_with_3() {
    let dir = project("http://127.0.0.1:1", "");
    let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_baton"));
    // An empty key does not hide the file.
    let command = command.env("LOCAL_API_KEY", "").env("LOCAL_API_KEY_FILE", "no-such-key");
    let output = command.current_dir(dir.path()).args(["run", "Hello"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("cannot read LOCAL_API_KEY from no-such-key"), "{stderr}");
    std::fs::write(dir.path().join(".mcp.json"), "{").unwrap();
    let ran = piped(dir.path(), &["run", "Hello"], "");
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains(".mcp.json"), "{}", ran.stderr);
}

#[test]
fn an_answer_cannot_control_the_terminal() {
    let provider = Provider::start(vec![Reply::Text(&["a\u{7}b\r\u{9b}c\u{7f}", "\td 🎉é\u{1b}\ne"])]);
    let dir = project(&provider.base_url, "");
    let ran = piped(dir.path(), &["run", "--color", "always", "Hello"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "abc\td 🎉é\ne\n"), "{}", ran.stderr);
    provider.finish();
}

#[test]
fn an_open_silent_stdin_is_explained() {
    let provider = Provider::start(vec![Reply::Text(&["Hi."])]);
    let dir = project(&provider.base_url, "");
    let child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["run", "Hello"])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = Running(child);
    let mut line = String::new();
    BufReader::new(child.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "reading more from stdin; close it or use </dev/null\n");
    drop(child.0.stdin.take());
    assert_eq!(exit_code(&mut child), Some(0));
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
