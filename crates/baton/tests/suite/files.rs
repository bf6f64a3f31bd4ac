//! Images that a tool returns, as the commands show them.

use serde_json::Value;

use crate::baton;
use crate::provider::{Provider, Reply};
use crate::run::{piped, project};
use crate::store_commands::newest;

/// 1,008 bytes that begin as a PNG does.
fn png() -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.extend((0..=255).cycle().take(1_000));
    bytes
}

const READS_CHART: Reply = Reply::Call { tool: "read_file", arguments: r#"{"path": "chart.png"}"# };

/// A project whose agent reads `chart.png`.
fn with_chart(replies: usize) -> (Provider, tempfile::TempDir) {
    let turns = (0..replies).flat_map(|_| [READS_CHART, Reply::Text(&["Here is the chart."])]);
    let provider = Provider::start(turns.collect());
    let dir = project(&provider.base_url, "display_name: Helper\ntools: [read_file]");
    std::fs::write(dir.path().join("chart.png"), png()).unwrap();
    (provider, dir)
}

/// The address in the line of a file: `file: chart.png (image/png, 1008 bytes) /api/v1/artifacts/…`.
fn announced(stderr: &str) -> String {
    let line = stderr.lines().find(|line| line.starts_with("file: ")).expect(stderr);
    let address = line.strip_prefix("file: chart.png (image/png, 1008 bytes) ").expect(line);
    assert!(address.starts_with("/api/v1/artifacts/"), "{line}");
    address.to_owned()
}

/// D8: `baton run` prints the answer on stdout and a line per file on stderr; `runs events` names the file as well.
#[test]
fn d8_run_and_runs_events_show_the_files_of_an_answer() {
    let (provider, dir) = with_chart(1);
    let ran = piped(dir.path(), &["run", "Show me the chart"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Here is the chart.\n"), "{}", ran.stderr);
    provider.finish();
    announced(&ran.stderr);
    assert_eq!(ran.stderr.matches("file: ").count(), 1, "{}", ran.stderr);
    let events = baton(dir.path(), &["runs", "events", &newest(dir.path())]);
    assert!(
        events.stdout.contains("the answer has [image chart.png: image/png, 1008 bytes]"),
        "{}",
        events.stdout
    );
}

/// D8: with `--json` the files are an activity of AG-UI whose parts have the addresses.
#[test]
fn d8_run_with_json_has_the_files_as_an_activity() {
    let (provider, dir) = with_chart(1);
    let ran = piped(dir.path(), &["run", "--json", "Show me the chart"], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    provider.finish();
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let files = events.iter().find(|event| event["activityType"] == "baton.files").expect(&ran.stdout);
    let parts = files["content"]["parts"].as_array().unwrap();
    let [part] = &parts[..] else { panic!("one part was expected: {files}") };
    assert_eq!((&part["type"], &part["name"]), (&"image".into(), &"chart.png".into()));
    assert!(part["uri"].as_str().unwrap().starts_with("/api/v1/artifacts/"), "{part}");
}

/// D8: the chat prints a line per file after the answer, and each answer has files of its own.
#[test]
fn d8_chat_shows_the_files_of_each_answer() {
    let (provider, dir) = with_chart(2);
    let ran = piped(dir.path(), &["chat"], "Show me the chart\nOnce more\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout.matches("Here is the chart.").count(), 2, "{}", ran.stdout);
    let asked = provider.finish();
    assert!(asked[1].to_string().contains("[image chart.png: image/png, 1008 bytes]"), "{}", asked[1]);
    let addresses: Vec<String> =
        ran.stderr.lines().filter(|line| line.starts_with("file: ")).map(announced).collect();
    assert_eq!(addresses.len(), 2, "{}", ran.stderr);
    assert_ne!(addresses[0], addresses[1]);
}

/// D8: a file that a program of `python` leaves in `attachments`, in its sandbox, is a part of the answer.
#[test]
fn d8_files_that_python_attaches_are_parts_of_the_answer() {
    let draw = r#"{"code": "import os; os.mkdir('attachments'); open('attachments/chart.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + bytes(range(256)))"}"#;
    let provider = Provider::start(vec![
        Reply::Call { tool: "python", arguments: draw },
        Reply::Text(&["Here is the chart."]),
    ]);
    let dir = project(&provider.base_url, "tools: [python]");
    let config = dir.path().join("baton.toml");
    let python = "[approvals]\nask_at = \"never\"\n[tools.python]\nenabled = true\ninterpreter = \"/usr/bin/python3\"\n";
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap() + python).unwrap();
    let ran = piped(dir.path(), &["run", "Draw a chart"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Here is the chart.\n"), "{}", ran.stderr);
    let asked = provider.finish();
    assert!(ran.stderr.contains("file: chart.png (image/png, 264 bytes) "), "{}", ran.stderr);
    let told = asked[1]["messages"].to_string();
    assert!(told.contains("[image chart.png: image/png, 264 bytes] It is shown to the user"), "{told}");
}
