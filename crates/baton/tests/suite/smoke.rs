//! The smoke suite with a scripted model: what it reports when cases pass, fail and hang.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use baton_smoke::cases::{self, Case};
use baton_smoke::options::Variant;
use baton_smoke::project::{self, ModelChoice};
use baton_smoke::{Options, Report, table};
use clap::Parser as _;
use serde_json::{Value, json};

use crate::crash::wire;

const CASES: &str = r#"
[[case]]
name = "routed"
example = "router"
agent = "reception"
say = "The wireless is slow."
expect.answered_by = "it-help"

[[case]]
name = "routed-elsewhere"
example = "router"
agent = "reception"
say = "How much holiday is left?"
expect.answered_by = "people"

[[case]]
name = "grounded"
agent = "knowledge"
say = "How high may the pressure be?"
docs = { "press.md" = "The pressure is at most 47.3 bar." }
expect.grounded = ["47.3"]

[[case]]
name = "handed-over"
say = ["I want to create a skill.", { text = "It writes letters.", while_held = 2 }]
expect.holder = "skill-creator"
"#;

const SLOW_CASES: &str = r#"
[[case]]
name = "hangs"
agent = "knowledge"
say = "Please hang."
expect.calls = ["search_docs"]
"#;

/// A reply of the scripted model.
enum Reply {
    Text(&'static str),
    Call(&'static str, Value),
    Hang,
}

/// Replies by the prompt and the last message. Only the changed prompt makes it use what it has found.
fn reply(request: &Value) -> Reply {
    assert_eq!(request["temperature"], 0.0, "every agent has the temperature of the suite: {request}");
    let messages = request["messages"].as_array().unwrap();
    let system = messages[0]["content"].to_string();
    let last = messages.last().unwrap();
    let is_result = last["role"] == "tool";
    match () {
        () if last["content"].to_string().contains("hang") => Reply::Hang,
        () if system.contains("receptionist") => {
            Reply::Call("route_to", json!({ "agent": "it-help", "reason": "it fits" }))
        }
        () if system.contains("documentation specialist") && !is_result => {
            Reply::Call("search_docs", json!({ "query": "pressure" }))
        }
        () if system.contains("VARIANT B") => Reply::Text("At most 47.3 bar."),
        () if system.contains("main assistant") => {
            Reply::Call("transfer_to_skill_creator", json!({ "reason": "a skill is wanted" }))
        }
        () => Reply::Text("I cannot say."),
    }
}

fn converse(request: &Value, stream: &mut TcpStream) -> Option<()> {
    let (frame, finish) = match reply(request) {
        Reply::Text(text) => (wire::text(text), "stop"),
        Reply::Call(tool, arguments) => {
            (wire::calls(&[(tool, "call_1".to_owned(), arguments)]), "tool_calls")
        }
        Reply::Hang => {
            stream.write_all((wire::HEAD.to_owned() + &wire::text("I was about")).as_bytes()).ok()?;
            return stream.read_to_end(&mut Vec::new()).ok().map(drop);
        }
    };
    let usage = r#""prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":40}"#;
    let end = wire::end(finish).replace(r#""prompt_tokens":12"#, usage);
    stream.write_all((wire::HEAD.to_owned() + &frame + &end).as_bytes()).ok()
}

fn run(options: &Options) -> Vec<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(baton_smoke::run(options)).unwrap()
}

/// The options of a suite with the cases of this file, whose `--results` folder is `dir`.
fn options(dir: &Path, more: &[&str]) -> Options {
    let cases = dir.join("cases");
    std::fs::create_dir_all(&cases).unwrap();
    std::fs::write(cases.join("demo.toml"), CASES).unwrap();
    std::fs::write(cases.join("slow.toml"), SLOW_CASES).unwrap();
    let (root, cases) = (crate::root(), cases.to_string_lossy().into_owned());
    let (root, results) = (root.to_string_lossy(), dir.to_string_lossy());
    let url = wire::listen(converse);
    let args = [
        "baton-smoke",
        "--model-url",
        &url,
        "--model",
        "scripted/m",
        "--root",
        &root,
        "--cases",
        &cases,
        "--results",
        &results,
        "--baton",
        env!("CARGO_BIN_EXE_baton"),
    ];
    Options::try_parse_from(args.iter().chain(more)).unwrap()
}

/// `passed` or the reasons, by the name of the case.
fn outcome(report: &Report, name: &str) -> String {
    let case = report.cases.iter().find(|case| case.name == name).unwrap();
    assert_eq!(case.passed, case.failures.is_empty());
    if case.passed { "passed".to_owned() } else { case.failures.join("; ") }
}

/// I6: smoke suite reports passes and failures of two variants.
#[test]
fn smoke_suite_reports_passes_and_failures_of_two_variants() {
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let knowledge = std::fs::read_to_string(crate::root().join("agents/knowledge.md")).unwrap();
    std::fs::write(other.join("knowledge.md"), knowledge + "\nVARIANT B\n").unwrap();
    let bundled = crate::root().join("agents");
    let (bundled, other) = (bundled.to_string_lossy(), other.to_string_lossy());
    let more = ["--only", "demo", "--variant", &bundled, "--variant", &other];
    let reports = run(&options(dir.path(), &more));

    let [before, after] = reports.as_slice() else { panic!("{} reports", reports.len()) };
    assert_eq!(outcome(before, "routed"), "passed");
    assert_eq!(outcome(before, "routed-elsewhere"), "`it-help` answered, not `people`");
    assert_eq!(outcome(before, "grounded"), "the answer lacks “47.3”, which a tool returned");
    assert_eq!(outcome(before, "handed-over"), "passed");
    assert_eq!(outcome(after, "grounded"), "passed");
    assert_eq!((before.total.score.passed, after.total.score.passed, after.total.score.of), (2, 3, 4));

    let handed = before.cases.iter().find(|case| case.name == "handed-over").unwrap();
    assert_eq!(handed.seen.messages.len(), 3, "the last line is repeated while the thread is held");
    let calls: Vec<_> = handed.seen.model_calls().collect();
    assert!(calls.len() >= 4, "the assistant, then the holder for each message");
    assert!(calls.iter().all(|call| call.cached_tokens == 40 && call.input_tokens == 100));
    assert!(handed.seen.messages.iter().all(|message| message.first_token_ms.is_some()));

    let shown = table::render(&reports);
    let demo = shown.lines().find(|line| line.starts_with("demo")).unwrap();
    assert!(demo.contains(" 2/4 ") && demo.contains(" 3/4 ") && demo.contains(" 40 % "), "{shown}");
    let failed =
        "demo/routed-elsewhere (1)\n    `it-help` answered, not `people`\n    answer: I cannot say.\n";
    assert!(shown.contains(failed), "{shown}");
    for report in &reports {
        let file = format!("scripted-m-{}.json", report.variant);
        let stored = Report::load(&dir.path().join(file)).unwrap();
        assert_eq!((stored.total, stored.cases.len()), (report.total.clone(), 4));
    }
}

#[test]
fn smoke_suite_goes_on_after_a_timeout() {
    let dir = tempfile::tempdir().unwrap();
    let reports = run(&options(dir.path(), &["--only", "slow", "--timeout", "2", "--repeat", "2"]));
    assert_eq!(reports[0].cases.len(), 2, "the second repetition runs");
    assert_eq!(outcome(&reports[0], "hangs"), "timed out after 2 s");
    assert_eq!(reports[0].cases[0].seen.messages[0].text, "Please hang.", "what was seen is kept");
    let shown = table::render(&reports);
    assert!(shown.contains("slow/hangs (2)\n    timed out after 2 s"), "{shown}");
}

#[test]
fn stored_results_of_smoke_are_compared_with_a_repeated_case() {
    let dir = tempfile::tempdir().unwrap();
    let first = run(&options(dir.path(), &["--only", "demo/routed"]));
    assert_eq!(first[0].total.score.of, 1);
    let stored = dir.path().join("scripted-m-agents.json");
    let more = ["--only", "demo/routed", "--repeat", "2", "--compare", &stored.to_string_lossy()];
    let reports = run(&options(dir.path(), &more));
    let passed = reports.iter().map(|report| report.total.score.passed);
    assert_eq!(passed.collect::<Vec<_>>(), [1, 2], "what is stored, and two repetitions");
}

#[test]
fn projects_of_the_smoke_suite_are_valid() {
    let root = crate::root();
    let model =
        ModelChoice { base_url: "http://127.0.0.1:1/v1".to_owned(), name: "m".to_owned(), temperature: 0.0 };
    let variant = Variant { label: "agents".to_owned(), dir: root.join("agents") };
    let mut cases: Vec<Case> = cases::load(&root.join("smoke/cases"), &[]).unwrap();
    cases.sort_by(|a, b| a.example.cmp(&b.example));
    cases.dedup_by(|a, b| a.example == b.example);
    for case in cases {
        let dir = project::create(&root, &variant, &case, &model).unwrap();
        let checked = crate::baton(dir.path(), &["validate"]);
        assert_eq!(checked.code, 0, "{:?}: {}{}", case.example, checked.stdout, checked.stderr);
    }
}
