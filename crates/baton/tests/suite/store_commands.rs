//! What was kept, as people and scripts look at it: `threads`, `runs`, `sessions` and `audit`.

mod changes;
mod explained;
mod handoffs;
mod keys;
mod processes;
mod spent;

use std::path::Path;

use baton_core::Event;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::provider::{Provider, Reply};
use crate::run::{piped, project};
use crate::terminal::on_terminal;
use crate::{Ran, baton};

const THREAD: &str = "550e8400-e29b-41d4-a716-446655440000";
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

fn ok(dir: &Path, args: &[&str]) -> String {
    let Ran { stdout, stderr, code } = baton(dir, args);
    assert_eq!(code, 0, "{args:?}: {stderr}");
    stdout
}

pub(super) fn json(dir: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&ok(dir, &[args, &["--json"]].concat())).unwrap()
}

fn say(dir: &Path, text: &str) -> Ran {
    piped(dir, &["run", "--thread", THREAD, text], "")
}

/// The newest run.
pub(super) fn newest(dir: &Path) -> String {
    json(dir, &["runs", "list"])["data"][0]["run_id"].as_str().unwrap().to_owned()
}

fn database(dir: &Path) -> Connection {
    Connection::open(dir.join("baton.db")).unwrap()
}

/// A project in which the model looked into a file and then answered.
fn with_a_tool_call() -> tempfile::TempDir {
    let provider = Provider::start(vec![
        Reply::Call { tool: "read_file", arguments: r#"{"path": "note.txt"}"# },
        Reply::Text(&["It says hello."]),
    ]);
    let dir = project(&provider.base_url, "tools: [read_file]");
    std::fs::write(dir.path().join("note.txt"), "hello from the file").unwrap();
    let ran = say(dir.path(), "What does it say?");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    provider.finish();
    dir
}

/// What differs from run to run is replaced, and columns are told apart by two spaces.
fn redacted(text: &str, ids: &[(&str, &str)]) -> String {
    let mut text = ids.iter().fold(text.to_owned(), |text, (id, name)| text.replace(id, name));
    while text.contains("   ") {
        text = text.replace("   ", "  ");
    }
    text.lines().map(|line| timeless(line).trim_end().to_owned() + "\n").collect()
}

fn timeless(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let shown = words.iter().enumerate().map(|(at, word)| {
        let next = words.get(at + 1).unwrap_or(&"").trim_end_matches(',');
        let before = at.checked_sub(1).map_or("", |at| words[at]);
        match *word {
            word if word.len() == 10 && word.bytes().filter(|byte| *byte == b'-').count() == 2 => "DATE",
            word if word.len() >= 5 && word.get(2..3) == Some(":") => "TIME",
            word if is_number(word) && matches!(next, "ms" | "s") => "N",
            "s" if is_number(before) => "ms",
            "s," if is_number(before) => "ms,",
            other => other,
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn a1_a2_a14_a_conversation_goes_on_and_is_listed_and_shown() {
    let provider = Provider::start(vec![Reply::Text(&["Lisbon."]), Reply::Text(&["It rains."])]);
    let dir = project(&provider.base_url, "");
    assert_eq!(say(dir.path(), "Where\nis it warm?").stdout, "Lisbon.\n");
    assert_eq!(say(dir.path(), "And today?").stdout, "It rains.\n");
    let heard = provider.finish();
    let told: Vec<&str> =
        heard[1]["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(told, ["You help.", "Where\nis it warm?", "Lisbon.", "And today?"]);

    insta::assert_snapshot!("threads-list", redacted(&ok(dir.path(), &["threads", "list"]), &[]));
    let shown = ok(dir.path(), &["threads", "show", "550e"]);
    insta::assert_snapshot!("threads-show", redacted(&shown, &[]));
    let context = json(dir.path(), &["threads", "show", THREAD, "--internal"]);
    let fields = [
        ("thread_id", json!(THREAD)),
        ("tenant_id", json!("default")),
        ("user_id", json!("local")),
        ("current_active_agent", json!("a")),
        ("is_handoff_active", json!(false)),
        ("total_messages", json!(4)),
    ];
    for (name, value) in fields {
        assert_eq!(context[name], value, "{name}");
    }
    assert!(context["created_at"].as_str().unwrap().ends_with('Z'), "{context}");
    assert_eq!(context["messages"][3]["parts"][0]["text"], "It rains.");
    assert_eq!(context["messages"][3]["agent"], "a");
    let list = json(dir.path(), &["threads", "list"]);
    assert_eq!((&list["data"][0]["title"], &list["next_cursor"]), (&context["title"], &Value::Null));
}

#[test]
fn a_thread_is_deleted_with_all_it_owns_and_that_is_remembered() {
    let provider = Provider::start(vec![Reply::Text(&["Hi."])]);
    let dir = project(&provider.base_url, "");
    say(dir.path(), "Hello");
    provider.finish();
    let run = newest(dir.path());
    let refused = piped(dir.path(), &["threads", "delete", THREAD], "y\n");
    assert_eq!(refused.code, 2, "{}", refused.stdout);
    assert!(refused.stderr.contains("--yes"), "{}", refused.stderr);
    let deleted = ok(dir.path(), &["threads", "delete", THREAD, "--yes"]);
    assert_eq!(deleted, format!("deleted thread {THREAD} (“Hello”: 2 messages, 1 run)\n"));
    for args in [["threads", "show", THREAD], ["threads", "delete", THREAD], ["runs", "show", &run]] {
        let args = if args[1] == "delete" { [&args[..], &["--yes"]].concat() } else { args.to_vec() };
        let gone = baton(dir.path(), &args);
        assert_eq!(gone.code, 1, "{args:?}: {}", gone.stdout);
    }
    let trail = json(dir.path(), &["audit", "--thread", THREAD, "--action", "thread.delete"]);
    assert_eq!((&trail["data"][0]["actor"], &trail["data"][1]), (&json!("local"), &Value::Null));
    assert!(ok(dir.path(), &["audit", "--verify"]).starts_with("intact: 4 entries, head "));
}

#[test]
fn h14_runs_are_listed_and_shown_with_what_each_step_took() {
    let dir = with_a_tool_call();
    let run = newest(dir.path());
    let ids = [(run.as_str(), "RUN"), (THREAD, "THREAD")];
    insta::assert_snapshot!("runs-list", redacted(&ok(dir.path(), &["runs", "list"]), &ids));
    insta::assert_snapshot!("runs-show", redacted(&ok(dir.path(), &["runs", "show", &run]), &ids));
    insta::assert_snapshot!("runs-events", redacted(&ok(dir.path(), &["runs", "events", &run]), &ids));
    let shown = json(dir.path(), &["runs", "show", &run]);
    assert_eq!((&shown["status"], &shown["usage"]["input_tokens"]), (&json!("completed"), &json!(24)));
    let root = &shown["steps"][0];
    assert_eq!((&root["own"]["input_tokens"], &root["total"]["input_tokens"]), (&json!(0), &json!(24)));
    assert_eq!(root["children"][0]["children"][0]["called"], "read_file");
}

#[test]
fn g15_events_are_lines_of_json() {
    let dir = with_a_tool_call();
    let lines = ok(dir.path(), &["runs", "events", &newest(dir.path()), "--json"]);
    let events: Vec<Event> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    assert!(events.last().unwrap().kind.is_end());
}

#[test]
fn runs_are_filtered_and_come_in_pages() {
    let refused = || Reply::Status { status: 400, body: r#"{"error": {"message": "no\u001b[2J"}}"# };
    let provider = Provider::start(vec![Reply::Text(&["One."]), Reply::Text(&["Two."]), refused()]);
    let dir = project(&provider.base_url, "");
    say(dir.path(), "First");
    assert_eq!(piped(dir.path(), &["run", "Second"], "").code, 0);
    assert_eq!(say(dir.path(), "Third").code, 1);
    provider.finish();
    let count = |args: &[&str]| {
        let list = json(dir.path(), &[&["runs", "list"], args].concat());
        list["data"].as_array().unwrap().len()
    };
    let cases: [(&[&str], usize); 8] = [
        (&[], 3),
        (&["--thread", "550e8400"], 2),
        (&["--status", "failed"], 1),
        (&["--agent", "a", "--status", "completed"], 2),
        (&["--agent", "b"], 0),
        (&["--since", "1h"], 3),
        (&["--since", "2126-01-01"], 0),
        (&["--limit", "2"], 2),
    ];
    for (args, expected) in cases {
        assert_eq!(count(args), expected, "{args:?}");
    }
    let first = json(dir.path(), &["runs", "list", "--limit", "2"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = json(dir.path(), &["runs", "list", "--cursor", cursor]);
    assert_eq!((rest["data"].as_array().unwrap().len(), &rest["next_cursor"]), (1, &Value::Null));
    let text = baton(dir.path(), &["runs", "list", "--limit", "2"]);
    assert!(text.stderr.contains("there are more runs: --cursor "), "{}", text.stderr);
    let failed = ok(dir.path(), &["runs", "show", &newest(dir.path()), "--color", "always"]);
    assert!(failed.contains("\nerror ") || failed.contains("error invalid"), "{failed}");
    assert!(!failed.contains("\u{1b}[2J"), "{failed:?}");
}

#[test]
fn f15_sessions_are_drawn_as_a_tree_and_shown() {
    let dir = with_a_tool_call();
    let run = newest(dir.path());
    let legal = format!("{run}:sub_legal_0000001f");
    let books = format!("{legal}:sub_law-books_00000020");
    let database = database(dir.path());
    let at: i64 = database.query_row("SELECT started_at FROM runs", [], |row| row.get(0)).unwrap();
    let sessions = json!([
        [[0, legal], "legal", [0, "a/legal"], "completed", at],
        [[0, books], "law-books", [0, "a/law-books"], "completed", at],
    ]);
    let input = json!({"input": [{"type": "text", "text": "Is it allowed?"}]});
    let steps = json!([[[0, "a/legal"], [0, legal], "session", "started", at, input]]);
    let insert = "INSERT INTO journal
        SELECT tenant, thread_number, last_seq, record + 100, run_id, ?1, NULL FROM journal ORDER BY last_seq LIMIT 1";
    // Not compressed, and without events.
    let content = format!("\0\n{steps}\n{sessions}");
    database.execute(insert, [content.as_bytes()]).unwrap();
    let ids = [(run.as_str(), "RUN"), (THREAD, "THREAD")];
    let tree = ok(dir.path(), &["sessions", "list", "--thread", THREAD, "--tree"]);
    insta::assert_snapshot!("sessions-tree", redacted(&tree, &ids));
    insta::assert_snapshot!("sessions-list", redacted(&ok(dir.path(), &["sessions", "list"]), &ids));
    insta::assert_snapshot!(
        "sessions-show",
        redacted(&ok(dir.path(), &["sessions", "show", &run[..13]]), &ids)
    );
    let child = json(dir.path(), &["sessions", "show", &legal]);
    assert_eq!((&child["level"], &child["parent"]), (&json!(2), &json!(run)));
    assert_eq!(child["messages"][0]["parts"][0]["text"], "Is it allowed?");
}

/// Whoever can write to the file can change it, but not unseen.
#[test]
fn h16_a_trail_that_was_tampered_with_is_found_out() {
    let provider = Provider::start(vec![Reply::Text(&["One."]), Reply::Text(&["Two."])]);
    let dir = project(&provider.base_url, "");
    say(dir.path(), "First");
    say(dir.path(), "Second");
    provider.finish();
    let runs = json(dir.path(), &["runs", "list"]);
    let ids: Vec<&str> = (0..2).map(|at| runs["data"][at]["run_id"].as_str().unwrap()).collect();
    let ids = [(ids[0], "RUN-2"), (ids[1], "RUN-1"), (THREAD, "THREAD")];
    insta::assert_snapshot!("audit", redacted(&ok(dir.path(), &["audit"]), &ids));
    assert_eq!(json(dir.path(), &["audit", "--actor", "local"])["data"].as_array().unwrap().len(), 4);
    let verdict = json(dir.path(), &["audit", "--verify"]);
    assert_eq!((&verdict["verdict"], &verdict["entries"]), (&json!("intact"), &json!(6)));
    assert_eq!(verdict["seal"]["entries"], 6, "each command leaves nothing unsealed");
    let said = ok(dir.path(), &["audit", "--verify"]);
    let seal = format!("hash {}\n", verdict["seal"]["hash"].as_str().unwrap());
    assert!(said.lines().count() == 2 && said.ends_with(&seal), "{said}");

    let database = database(dir.path());
    let broken = |sql: &str| {
        assert_eq!(database.execute(sql, []), Ok(1), "{sql}");
        let ran = baton(dir.path(), &["audit", "--verify"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{sql}");
        ran.stderr
    };
    let changed =
        broken("UPDATE audit SET entries = replace(entries, 'completed', 'cancelled') WHERE number = 3");
    assert!(changed.starts_with("broken at entry 0.3: "), "{changed}");
    let program = baton(dir.path(), &["audit", "--verify", "--json"]);
    assert_eq!(program.code, 1);
    let verdict = serde_json::from_str::<Value>(&program.stdout).unwrap();
    assert_eq!((&verdict["chain"], &verdict["number"]), (&json!(0), &json!(3)));
    let missing = broken("DELETE FROM audit WHERE number = 2");
    assert_eq!(missing, "broken at entry 0.1: the entry is missing\n");
}

#[test]
fn a9_what_belongs_to_others_is_as_unknown_as_what_does_not_exist() {
    let dir = with_a_tool_call();
    let run = newest(dir.path());
    let database = database(dir.path());
    // Everything of this thread now belongs to another tenant.
    database.pragma_update(None, "foreign_keys", false).unwrap();
    for table in ["threads", "thread_work", "messages", "runs", "journal", "ledger"] {
        database.execute(&format!("UPDATE {table} SET tenant = 'other'"), []).unwrap();
    }
    let run_unknown = format!("01890a5d{}", &run[8..]);
    let commands: [(&[&str], &str, &str); 7] = [
        (&["threads", "show"], THREAD, UNKNOWN),
        (&["threads", "delete", "--yes"], THREAD, UNKNOWN),
        (&["runs", "show"], &run, &run_unknown),
        (&["runs", "events"], &run, &run_unknown),
        (&["runs", "cancel"], &run, &run_unknown),
        (&["sessions", "show"], &run, &run_unknown),
        (&["runs", "list", "--thread"], THREAD, UNKNOWN),
    ];
    for (command, foreign, unknown) in commands {
        let foreign = baton(dir.path(), &[command, &[foreign]].concat());
        let unknown = baton(dir.path(), &[command, &[unknown]].concat());
        assert_eq!((foreign.code, unknown.code), (1, 1), "{command:?}");
        assert_eq!((foreign.stderr, foreign.stdout), (unknown.stderr, unknown.stdout), "{command:?}");
    }
    let hidden = baton(dir.path(), &["threads", "show", "550e8400"]);
    assert!(hidden.code == 1 && hidden.stderr.contains("thread not found for tenant"), "{}", hidden.stderr);
    assert_eq!(json(dir.path(), &["threads", "list"])["data"], json!([]));
}

#[test]
fn nothing_is_made_only_to_find_it_empty() {
    let dir = project("http://127.0.0.1:1", "handoff: nobody");
    for command in [&["threads", "list"][..], &["runs", "list"], &["sessions", "list", "--tree"], &["audit"]]
    {
        let ran = baton(dir.path(), command);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{command:?}");
        assert_eq!(ran.stderr, "nothing was kept yet\n", "{command:?}");
        assert_eq!(json(dir.path(), command), json!({"data": [], "next_cursor": null}), "{command:?}");
    }
    assert_eq!(baton(dir.path(), &["audit", "--verify"]).stderr, "nothing was kept yet\n");
    assert_eq!(baton(dir.path(), &["runs", "resume"]).code, 0);
    assert_eq!(baton(dir.path(), &["threads", "show", "abcd"]).code, 1);
    assert!(!dir.path().join("baton.db").exists());
}

#[test]
fn mistakes_in_ids_and_filters_exit_with_2() {
    let dir = project("http://127.0.0.1:1", "");
    let cases: [(&[&str], &str); 9] = [
        (&["threads", "show", "hello"], "is not a thread id"),
        (&["threads", "show", "55"], "is not a thread id"),
        (&["runs", "show", "550e8400-e29b-41d4-a716-44665544000x"], "is not a run id"),
        (&["sessions", "show", "550e:sub"], "is not a session id"),
        (&["runs", "list", "--status", "done"], "use queued, running"),
        (&["runs", "list", "--since", "yesterday"], "neither a duration"),
        (&["runs", "list", "--limit", "0"], "1..=200"),
        (&["runs", "list", "--agent", "Not A Name"], "is not an agent name"),
        (&["audit", "--verify", "--actor", "local"], "cannot be used with"),
    ];
    for (args, message) in cases {
        let ran = baton(dir.path(), args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_beginning_that_means_several_is_refused() {
    let provider = Provider::start(vec![Reply::Text(&["One."]), Reply::Text(&["Two."])]);
    let dir = project(&provider.base_url, "");
    let other = "550e8400-0000-4000-8000-000000000000";
    say(dir.path(), "First");
    assert_eq!(piped(dir.path(), &["run", "--thread", other, "Second"], "").code, 0);
    provider.finish();
    let both = baton(dir.path(), &["threads", "show", "550e8400"]);
    assert_eq!(both.code, 1);
    assert!(both.stderr.contains(THREAD) && both.stderr.contains(other), "{}", both.stderr);
    assert!(ok(dir.path(), &["threads", "show", "550E8400-0"]).contains("Two."));
}

#[test]
fn what_was_kept_cannot_control_the_terminal() {
    let provider = Provider::start(vec![Reply::Text(&["a\u{7}b\u{9b}31mc", "\u{1b}[2Jd"])]);
    let dir = project(&provider.base_url, "");
    say(dir.path(), "\u{1b}]0;title\u{7}Hello");
    provider.finish();
    let run = newest(dir.path());
    let commands: [&[&str]; 6] = [
        &["threads", "list"],
        &["threads", "show", THREAD],
        &["runs", "list"],
        &["runs", "show", &run],
        &["runs", "events", &run],
        &["sessions", "show", &run],
    ];
    for command in commands {
        let text = ok(dir.path(), command);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{command:?}: {text:?}");
        // The store makes titles harmless itself.
        assert!(text.contains("\\u{7}") || command[0] == "threads", "{command:?}: {text}");
    }
}

#[test]
fn on_a_terminal_lists_fit_and_a_run_says_how_to_go_on() {
    let provider = Provider::start(vec![Reply::Text(&["Well, ", "that is a long story."])]);
    let dir = project(&provider.base_url, "");
    let question = "Why is it that tables always become wider than the window that they are shown in?";
    let (shown, code) = on_terminal(dir.path(), &["run", "--thread", THREAD, question], 80, "");
    assert_eq!(code, 0, "{shown}");
    assert!(shown.ends_with(&format!("continue with: baton run --thread {THREAD}\n")), "{shown:?}");
    provider.finish();
    let run = newest(dir.path());
    for command in
        [&["threads", "list"][..], &["runs", "list"], &["runs", "show", &run], &["runs", "events", &run]]
    {
        let (shown, _) = on_terminal(dir.path(), command, 90, "");
        let widest = shown.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 90 && shown.contains('…'), "{widest}:\n{shown}");
    }
    let short = &run[..13];
    assert!(on_terminal(dir.path(), &["runs", "list"], 90, "").0.contains(&format!("\n{short}  ")));
}

#[test]
fn on_a_terminal_a_deletion_is_asked_for() {
    let provider = Provider::start(vec![Reply::Text(&["Hi."])]);
    let dir = project(&provider.base_url, "");
    say(dir.path(), "Hello");
    provider.finish();
    let (shown, code) = on_terminal(dir.path(), &["threads", "delete", "550e"], 80, "n\n");
    assert!(code == 0 && shown.contains("2 messages, 1 run)? [y/N]") && shown.ends_with("kept\n"), "{shown}");
    assert_eq!(baton(dir.path(), &["threads", "show", "550e"]).code, 0);
    let (shown, _) = on_terminal(dir.path(), &["threads", "delete", "550e"], 80, "y\n");
    assert!(shown.contains("deleted thread"), "{shown}");
    assert_eq!(baton(dir.path(), &["threads", "show", "550e"]).code, 1);
}
