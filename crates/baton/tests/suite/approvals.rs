//! Approvals and questions on the command line: asked on a terminal, decided by a command, and what a program gets.

use std::path::Path;

use serde_json::Value;

use crate::provider::{Provider, Reply};
use crate::run::{piped, project};
use crate::served::Served;
use crate::terminal::Terminal;
use crate::{Ran, baton};

const THREAD: &str = "6f9619ff-8b86-4d01-b42d-00c04fc964ff";
const ASKING: &str = "display_name: Helper\ntools: [write_file, ask_user]\napprovals: { ask: [write_file] }";
const WRITE: Reply = Reply::Call { tool: "write_file", arguments: r#"{"path": "a.txt", "content": "one"}"# };
const ASK: Reply = Reply::Call {
    tool: "ask_user",
    arguments: r#"{"question": "Which day?", "choices": ["Monday", "Tuesday"]}"#,
};

fn asking(replies: Vec<Reply>) -> (Provider, tempfile::TempDir) {
    let provider = Provider::start(replies);
    let dir = project(&provider.base_url, ASKING);
    (provider, dir)
}

fn file(dir: &Path) -> Option<String> {
    std::fs::read_to_string(dir.join("a.txt")).ok()
}

fn listed(dir: &Path, status: &str) -> Vec<Value> {
    let ran = baton(dir, &["approvals", "list", "--status", status, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let page: Value = serde_json::from_str(&ran.stdout).unwrap();
    page["data"].as_array().unwrap().clone()
}

fn id_of(approval: &Value) -> &str {
    approval["approval_id"].as_str().unwrap()
}

/// A run without a terminal waits with exit code 5, and says which command decides.
#[test]
fn cli_a_run_without_a_terminal_waits_and_a_command_decides() {
    let (provider, dir) = asking(vec![WRITE, Reply::Text(&["Written."])]);
    let ran = baton(dir.path(), &["run", "--thread", THREAD, "Write it"]);
    assert_eq!(ran.code, 5, "{}{}", ran.stdout, ran.stderr);
    let open = listed(dir.path(), "pending");
    let id = id_of(&open[0]);
    assert!(ran.stderr.contains(&format!("`baton approvals approve {id}`")), "{}", ran.stderr);
    assert_eq!((open[0]["tool"].as_str(), file(dir.path())), (Some("write_file"), None));
    let table = baton(dir.path(), &["approvals", "list"]).stdout;
    assert!(table.contains("write_file {\"path\":\"a.txt\"") && table.contains("Helper"), "{table}");
    let shown = baton(dir.path(), &["approvals", "show", &id[..8]]).stdout;
    assert!(shown.contains("content  one") && shown.contains("medium"), "{shown}");
    // The run goes on in the process that decides.
    let ran = baton(dir.path(), &["approvals", "approve", &id[..8]]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Written.\n"), "{}", ran.stderr);
    assert_eq!(file(dir.path()).as_deref(), Some("one"));
    assert_eq!(provider.finish().len(), 2);
    let second = baton(dir.path(), &["approvals", "approve", id]);
    assert_eq!(second.code, 1, "{}", second.stderr);
    assert!(second.stderr.contains("decided before: it is approved"), "{}", second.stderr);
    assert!(listed(dir.path(), "pending").is_empty());
}

#[test]
fn cli_a_call_is_approved_with_other_arguments_or_denied_with_a_reason() {
    let (provider, dir) =
        asking(vec![WRITE, Reply::Text(&["Written."]), WRITE, Reply::Text(&["Not written."])]);
    assert_eq!(baton(dir.path(), &["run", "Write it"]).code, 5);
    let id = id_of(&listed(dir.path(), "pending")[0]).to_owned();
    let wrong = baton(dir.path(), &["approvals", "approve", &id, "--arguments", r#"{"path": 7}"#]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("/arguments"), "{}", wrong.stderr);
    let edited = r#"{"path": "a.txt", "content": "two"}"#;
    let ran = baton(dir.path(), &["approvals", "approve", &id, "--arguments", edited]);
    assert_eq!((ran.code, file(dir.path()).as_deref()), (0, Some("two")), "{}", ran.stderr);
    assert_eq!(baton(dir.path(), &["run", "Write it"]).code, 5);
    let id = id_of(&listed(dir.path(), "pending")[0]).to_owned();
    let ran = baton(dir.path(), &["approvals", "deny", &id, "--reason", "not today"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Not written.\n"), "{}", ran.stderr);
    let asked = provider.finish();
    assert!(asked[3].to_string().contains("not today"), "the model reads the reason");
    assert_eq!(file(dir.path()).as_deref(), Some("two"));
}

#[test]
fn cli_a_question_is_answered_by_a_command() {
    let (provider, dir) = asking(vec![ASK, Reply::Text(&["On Tuesday."])]);
    let ran = baton(dir.path(), &["run", "Plan it"]);
    assert_eq!(ran.code, 5);
    let id = id_of(&listed(dir.path(), "pending")[0]).to_owned();
    assert!(
        ran.stderr.contains(&format!("\"Which day?\": `baton approvals answer {id} TEXT`")),
        "{}",
        ran.stderr
    );
    let wrong = baton(dir.path(), &["approvals", "approve", &id]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    let ran = baton(dir.path(), &["approvals", "answer", &id, "Tuesday"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "On Tuesday.\n"), "{}", ran.stderr);
    assert!(provider.finish()[1].to_string().contains("Tuesday"));
}

/// `--approve` decides in advance.
#[test]
fn cli_pre_approval_of_a_run() {
    let (provider, dir) = asking(vec![WRITE, Reply::Text(&["Written."]), WRITE]);
    let ran = baton(dir.path(), &["run", "--approve", "all", "Write it"]);
    assert_eq!((ran.code, file(dir.path()).as_deref()), (0, Some("one")), "{}", ran.stderr);
    assert_eq!(
        baton(dir.path(), &["run", "--approve", "read", "Write it"]).code,
        5,
        "writing is not reading"
    );
    provider.finish();
}

#[test]
fn cli_a_program_gets_the_interrupt_as_events() {
    let (provider, dir) = asking(vec![WRITE, Reply::Text(&["Written."])]);
    let ran = baton(dir.path(), &["run", "--json", "Write it"]);
    assert_eq!(ran.code, 5);
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["outcome"]["type"]), (&"RUN_FINISHED".into(), &"interrupt".into()));
    let asked = events.iter().find(|event| event["name"] == "baton.approval").unwrap();
    let id = id_of(&asked["value"]);
    assert_eq!(last["outcome"]["interrupts"][0]["id"], id);
    let ran = baton(dir.path(), &["approvals", "approve", id, "--json"]);
    let first: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((ran.code, &first["type"]), (0, &"RUN_STARTED".into()), "{}", ran.stdout);
    provider.finish();
}

#[test]
fn cli_a_person_is_asked_on_the_terminal() {
    let (provider, dir) = asking(vec![WRITE, WRITE, WRITE, Reply::Text(&["All done."])]);
    let mut terminal = Terminal::start(dir.path(), &["run", "Write it"], 100);
    terminal.expect("Helper wants to use write_file (medium risk, expires in ");
    terminal.expect("content  one");
    terminal.expect("[l]ater > ");
    terminal.enter("what\r");
    terminal.expect("answer with a, e, d, r or l");
    terminal.enter("d\r");
    terminal.expect("reason (may be empty) > ");
    terminal.enter("not yet\r");
    terminal.expect("write_file was denied: not yet");
    terminal.expect("[l]ater > ");
    terminal.enter("e\r");
    terminal.expect("arguments > ");
    // Ctrl-U takes back the arguments that the line begins with.
    terminal.enter("\u{15}{\"path\": \"a.txt\", \"content\": \"edited\"}\r");
    terminal.expect("write_file was approved with changes");
    terminal.expect("[l]ater > ");
    assert_eq!(file(dir.path()).as_deref(), Some("edited"));
    terminal.enter("a\r");
    terminal.expect("All done.");
    let (_, code) = terminal.end();
    assert_eq!((code, file(dir.path()).as_deref()), (0, Some("one")));
    assert!(provider.finish()[1].to_string().contains("not yet"));
}

#[test]
fn cli_a_person_decides_later() {
    let (provider, dir) = asking(vec![WRITE]);
    let mut terminal = Terminal::start(dir.path(), &["run", "Write it"], 100);
    terminal.expect("[l]ater > ");
    terminal.enter("l\r");
    let (shown, code) = terminal.end();
    assert_eq!(code, 5, "{shown}");
    assert!(shown.contains("baton approvals approve"), "{shown}");
    assert_eq!(listed(dir.path(), "pending").len(), 1);
    provider.finish();
}

/// Asked, remembered and answered in one conversation, and after it was left.
#[test]
fn cli_a_chat_asks_remembers_and_goes_on_after_it_was_left() {
    let (provider, dir) = asking(vec![
        WRITE,
        Reply::Text(&["First."]),
        WRITE,
        Reply::Text(&["Second, not asked."]),
        ASK,
        Reply::Text(&["On Tuesday."]),
    ]);
    let mut terminal = Terminal::start(dir.path(), &["chat"], 100);
    terminal.expect("> ");
    terminal.enter("Write it\r");
    terminal.expect("wants to use write_file");
    terminal.expect("[l]ater > ");
    terminal.enter("r\r");
    terminal.expect("approved for this conversation");
    terminal.expect("First.");
    terminal.enter("Again\r");
    terminal.expect("Second, not asked.");
    terminal.enter("Plan it\r");
    terminal.expect("Helper asks: Which day?");
    terminal.expect("2. Tuesday");
    terminal.enter("/later\r");
    terminal.expect("/approvals asks again");
    terminal.enter("/quit\r");
    assert_eq!(terminal.end().1, 0);
    let mut terminal = Terminal::start(dir.path(), &["chat", "-c"], 100);
    terminal.expect("Helper asks: Which day?");
    terminal.expect("> ");
    terminal.enter("2\r");
    terminal.expect("On Tuesday.");
    terminal.enter("/quit\r");
    assert_eq!(terminal.end().1, 0);
    assert!(provider.finish()[5].to_string().contains("Tuesday"));
}

#[test]
fn cli_a_chat_in_a_pipe_answers_questions_and_leaves_calls() {
    let (provider, dir) = asking(vec![ASK, Reply::Text(&["On Monday."]), WRITE]);
    let ran: Ran = piped(dir.path(), &["chat"], "Plan it\nMonday\nWrite it\nnever said\n");
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stdout.contains("On Monday."), "{}", ran.stdout);
    assert!(ran.stderr.contains("`baton approvals approve "), "{}", ran.stderr);
    provider.finish();
}

/// The same by a server, with the key of the environment.
#[test]
fn cli_decisions_by_a_server() {
    let (provider, dir) = asking(vec![WRITE, Reply::Text(&["Written."])]);
    let served = Served::start(dir.path());
    let url = format!("http://{}", served.address);
    let path = format!("/api/v1/threads/{THREAD}/messages");
    let mut answer = String::new();
    std::io::Read::read_to_string(
        &mut served.ask("POST", &path, "application/json", r#"{"content": "Write it"}"#),
        &mut answer,
    )
    .unwrap();
    assert!(answer.contains("\"status\":\"waiting\""), "{answer}");
    let list = baton(dir.path(), &["approvals", "list", "--server", &url]);
    assert!(list.stdout.contains("write_file"), "{}{}", list.stdout, list.stderr);
    let open = served.get("/api/v1/approvals?status=pending");
    let id = id_of(&open["data"][0]).to_owned();
    let ran = baton(dir.path(), &["approvals", "approve", &id, "--server", &url, "--remember"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("write_file is approved"), "{}", ran.stdout);
    crate::run::eventually("the file", || file(dir.path()));
    provider.finish();
    let again = baton(dir.path(), &["approvals", "deny", &id, "--server", &url]);
    assert_eq!(again.code, 1, "{}", again.stderr);
    drop(served);
    let gone = baton(dir.path(), &["approvals", "list", "--server", &url]);
    assert_eq!(gone.code, 7, "{}", gone.stderr);
    let bad = baton(dir.path(), &["approvals", "list", "--server", "here"]);
    assert_eq!(bad.code, 2, "{}", bad.stderr);
}

/// A value that is cut on the terminal has to be shown whole before the call can be approved.
#[test]
fn cli_a_person_approves_nothing_that_was_not_shown() {
    let content = format!("{}THE END", "x".repeat(5000));
    let arguments = format!(r#"{{"path": "a.txt", "content": "{content}"}}"#);
    let write = Reply::Call { tool: "write_file", arguments: arguments.leak() };
    let (provider, dir) = asking(vec![write, Reply::Text(&["Written."])]);
    let mut terminal = Terminal::start(dir.path(), &["run", "Write it"], 100);
    terminal.expect("more characters)");
    terminal.expect("[s]how all, [d]eny, [l]ater > ");
    terminal.enter("a\r");
    terminal.expect("not all of the arguments are shown");
    assert_eq!(file(dir.path()), None);
    terminal.enter("s\r");
    terminal.expect("THE END");
    terminal.expect("[a]pprove");
    terminal.enter("a\r");
    terminal.expect("Written.");
    assert_eq!(terminal.end().1, 0);
    assert_eq!(file(dir.path()), Some(content));
    provider.finish();
}

/// After `forget` the tool waits again; there is nothing to revoke twice.
#[test]
fn cli_a_remembered_decision_is_revoked() {
    let (provider, dir) = asking(vec![WRITE, Reply::Text(&["One."]), WRITE, Reply::Text(&["Two."]), WRITE]);
    let run = || baton(dir.path(), &["run", "--thread", THREAD, "Write it"]);
    assert_eq!(run().code, 5);
    let id = id_of(&listed(dir.path(), "pending")[0]).to_owned();
    let edited =
        ["approvals", "approve", &id, "--remember", "--arguments", r#"{"path": "b", "content": ""}"#];
    assert_eq!(baton(dir.path(), &edited).code, 2, "other arguments are for one call");
    assert_eq!(baton(dir.path(), &["approvals", "approve", &id, "--remember"]).code, 0);
    assert_eq!(run().code, 0, "it is remembered");
    let forgot = baton(dir.path(), &["approvals", "forget", &id[..8]]);
    assert_eq!(forgot.code, 0, "{}", forgot.stderr);
    assert!(forgot.stdout.contains("write_file waits for a decision again"), "{}", forgot.stdout);
    assert_eq!(baton(dir.path(), &["approvals", "forget", &id]).code, 1);
    assert_eq!(run().code, 5, "it waits again");
    provider.finish();
}

/// What a workflow asks is listed, and an answer by the command goes on with the conversation. The chat does not ask it twice.
#[test]
fn cli_a_workflows_question_is_answered_by_a_command() {
    let dir = tempfile::tempdir().unwrap();
    crate::examples::copy(&crate::root().join("examples/workflow"), dir.path());
    let ran = piped(dir.path(), &["chat"], "I want to return a kettle\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout.matches("What is the order number?").count(), 1, "{}", ran.stdout);
    let open = listed(dir.path(), "pending");
    assert_eq!(open.len(), 1);
    let asked = open[0]["preview"]["heading"].as_str().unwrap();
    assert!(asked.starts_with("What is the order number?"), "{asked}");
    let ran = baton(dir.path(), &["approvals", "answer", id_of(&open[0]), "R-1024"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let again = listed(dir.path(), "pending");
    assert_ne!((ran.stdout.is_empty(), again[0]["preview"]["heading"].as_str()), (true, Some(asked)));
    let first = &listed(dir.path(), "answered")[0];
    assert_eq!(first["answer"], "R-1024");
    assert_eq!(baton(dir.path(), &["approvals", "answer", id_of(first), "R-1"]).code, 1);
}
