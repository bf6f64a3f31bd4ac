//! `baton chat`, through a pipe and on a terminal.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::provider::{Provider, Reply};
use crate::run::{Running, exit_code, piped, project, send};
use crate::terminal::Terminal;

/// A project whose agent `a` can hand the conversation to `b`, the Form Helper, who asks for two things.
fn with_helper(provider: &Provider) -> tempfile::TempDir {
    let dir = project(&provider.base_url, "display_name: Main\ncollaborations: [b]");
    let helper = "---\ndescription: Fills in forms.\ndisplay_name: Form Helper\naccepts_handoff:\n  triggers: [fill in a form]\n  \
                  resume: true\nworkflow:\n  states:\n    - name: asking_name\n      collect:\n        - { key: name, ask: \"Which name?\" }\n    \
                  - name: asking_town\n      collect:\n        - { key: town, ask: \"Which town?\" }\n---\nYou fill in forms.\n";
    std::fs::write(dir.path().join("agents/b.md"), helper).unwrap();
    dir
}

const TRANSFER: Reply = Reply::Call { tool: "transfer_to_b", arguments: r#"{"reason": "a form"}"# };

#[test]
fn cli_a_conversation_in_a_pipe() {
    let provider = Provider::start(vec![Reply::Text(&["Hello, ", "you."]), Reply::Text(&["Blue."])]);
    let dir = project(&provider.base_url, "display_name: Helper");
    let ran = piped(dir.path(), &["chat"], "Hi\n\n   \nWhich colour?");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(ran.stdout, "● Helper\nHello, you.\n\n● Helper\nBlue.\n");
    let asked = provider.finish();
    let said: Vec<&str> = asked[1]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert_eq!(said, ["You help.", "Hi", "Hello, you.", "Which colour?"]);
}

#[test]
fn cli_commands_of_the_chat() {
    let provider = Provider::start(vec![Reply::Text(&["Hello."])]);
    let dir = project(&provider.base_url, "display_name: Helper");
    let lines = "/usage\n/help\n/agents\n/exit-handoff\n/resume\n/agnets\nHi\n/usage\n/quit\nnever said\n";
    let ran = piped(dir.path(), &["chat"], lines);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    provider.finish();
    for told in [
        "nothing was asked yet",
        "there is no handoff to leave",
        "there is nothing to go on with",
        "there is no command /agnets; did you mean /agents? /help lists them all",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
    for result in ["/exit-handoff  leave", "●  a      Helper  Helps.", "● Helper\nHello.", "1 run      15"]
    {
        assert!(ran.stdout.contains(result), "{result}: {}", ran.stdout);
    }
}

#[test]
fn cli_a_run_that_fails_says_why_and_the_conversation_goes_on() {
    let provider = Provider::start(vec![
        Reply::Status { status: 400, body: r#"{"error": {"message": "too blue"}}"# },
        Reply::Text(&["Better."]),
    ]);
    let dir = project(&provider.base_url, "");
    let ran = piped(dir.path(), &["chat"], "Hi\nAnd now?\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "● A\nBetter.\n"));
    assert!(ran.stderr.contains("error: local: invalid_request: too blue"), "{}", ran.stderr);
    provider.finish();
}

/// C-8, C-10, C-12: the person sees who takes over, talks with them, and always gets out again.
#[test]
fn c_8_a_handoff_is_seen_held_and_left() {
    let provider = Provider::start(vec![
        TRANSFER,
        Reply::Text(&["Which name?"]),
        Reply::Text(&["And which town?"]),
        Reply::Text(&["I am back."]),
    ]);
    let dir = with_helper(&provider);
    let lines = "I want to fill in a form\nMy name is Ada\n/agents\n/exit-handoff\nAre you there?\n";
    let ran = piped(dir.path(), &["chat"], lines);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (before, after) = ran.stderr.split_once("↪ No problem! Returning you to Main.").expect(&ran.stderr);
    assert!(before.starts_with("↪ Connecting you with Form Helper..."), "{}", ran.stderr);
    assert!(before.contains("Step 1 of 2 · Asking name") && !after.contains("Step"), "{}", ran.stderr);
    let mode = before.find("[Form Mode]").expect(before);
    assert!(
        mode > before.find("Connecting").unwrap() && mode < before.find("Step 1").unwrap(),
        "K7: {before}"
    );
    let texts = [
        "● Main\nI'll connect you with our Form Helper.",
        "● Form Helper\nWhich name?",
        "● Form Helper\nAnd which town?",
        "●  b",
        "● Main\nLet me know",
        "● Main\nI am back.",
    ];
    let mut rest = ran.stdout.as_str();
    for text in texts {
        let (_, after) = rest.split_once(text).unwrap_or_else(|| panic!("{text}: {}", ran.stdout));
        rest = after;
    }
    let asked = provider.finish();
    let systems: Vec<bool> =
        asked.iter().map(|one| one["messages"][0]["content"].to_string().contains("You help.")).collect();
    assert_eq!(
        systems,
        [true, false, false, true],
        "the main agent is not asked while somebody else has the thread"
    );
}

/// C-15, C-16, X25: whoever comes back sees where they are, and goes on with a yes.
#[test]
fn c_15_whoever_comes_back_sees_where_they_are() {
    const PAST: &str = "> I want to fill in a form\n\n● Main\nI'll connect you with our Form Helper.\n\n● Form Helper\nWhich name?\n";
    let provider = Provider::start(vec![
        TRANSFER,
        Reply::Text(&["Which name?"]),
        Reply::Text(&["Welcome. Which name?"]),
    ]);
    let dir = with_helper(&provider);
    piped(dir.path(), &["chat"], "I want to fill in a form\n");
    let held = piped(dir.path(), &["chat", "-c"], "/exit-handoff\n");
    assert!(held.stdout.starts_with(PAST), "{}", held.stdout);
    let sentence = "Form Helper has this conversation · Step 1 of 2 · Asking name · /exit-handoff to leave\n";
    assert!(held.stderr.starts_with(sentence), "{}", held.stderr);
    let left = piped(dir.path(), &["chat", "-c"], "yes\n");
    assert!(left.stderr.starts_with("Welcome back! Would you like to continue "), "{}", left.stderr);
    assert!(
        left.stdout.contains("● Main\nLet me know") && left.stdout.contains("● Form Helper\n"),
        "{}",
        left.stdout
    );
    let again = piped(dir.path(), &["chat", "-c"], "");
    assert!(again.stderr.contains("Form Helper has this conversation"), "{}", again.stderr);
}

/// K10: a new conversation offers what was left in another one. It is offered once, a no leaves it there, and a yes takes it up.
#[test]
fn k_10_a_new_conversation_goes_on_with_other_work_after_a_yes() {
    const OFFER: &str = "Welcome back! Would you like to continue ";
    let provider = Provider::start(vec![
        TRANSFER,
        Reply::Text(&["Which name?"]),
        Reply::Text(&["Hello to you."]),
        Reply::Text(&["Welcome. Which name?"]),
    ]);
    let dir = with_helper(&provider);
    let chat = |lines: &[&str]| {
        let mut terminal = Terminal::start(dir.path(), &["chat"], 120);
        terminal.expect(OFFER);
        terminal.expect("(yes, or say something else)");
        for (line, answer) in lines.iter().zip(lines.iter().skip(1)).step_by(2) {
            terminal.expect("> ");
            terminal.enter(&format!("{line}\r"));
            terminal.expect(answer);
        }
        terminal.expect("> ");
        terminal.enter("\u{4}");
        let (shown, code) = terminal.end();
        assert_eq!((code, shown.matches(OFFER).count()), (0, 1), "it is asked once: {shown}");
        shown
    };
    let left = piped(dir.path(), &["chat"], "I want to fill in a form\n/exit-handoff\n");
    assert_eq!(left.code, 0, "{}", left.stderr);
    chat(&["Hello", "Hello to you."]);
    let declined = chat(&["/help", "/exit-handoff  leave", "no", "Let me know if you'd like to continue"]);
    assert!(!declined.contains("Form Helper"), "{declined}");
    let resumed = chat(&["yes", "Welcome. Which name?"]);
    assert!(resumed.contains("● Form Helper"), "{resumed}");
    assert!(
        resumed.contains("[Form Helper · step 1 of 2, 0/2 answers · /exit-handoff to leave]"),
        "{resumed}"
    );
    let asked = provider.finish();
    let last = asked.last().unwrap()["messages"][0]["content"].to_string();
    assert!(asked.len() == 4 && last.contains("You fill in forms."), "{last}");
}

/// K10: `/resume` takes the offered work up as well.
#[test]
fn k_10_resume_takes_up_the_work_of_another_conversation() {
    let provider = Provider::start(vec![
        TRANSFER,
        Reply::Text(&["Which name?"]),
        Reply::Text(&["Welcome. Which name?"]),
    ]);
    let dir = with_helper(&provider);
    piped(dir.path(), &["chat"], "I want to fill in a form\n/exit-handoff\n");
    let resumed = piped(dir.path(), &["chat"], "/resume\n");
    assert!(resumed.stdout.contains("● Form Helper\nWelcome. Which name?"), "{}", resumed.stdout);
    provider.finish();
}

#[test]
fn cli_a_conversation_is_named_or_it_is_the_last_one() {
    let provider =
        Provider::start(vec![Reply::Text(&["One."]), Reply::Text(&["Two."]), Reply::Text(&["Three."])]);
    let dir = project(&provider.base_url, "");
    let new = piped(dir.path(), &["chat", "-c"], "First\n");
    assert_eq!(new.stderr, "there is no conversation to continue; this is a new one\n");
    piped(dir.path(), &["chat"], "Second\n");
    let last = piped(dir.path(), &["chat", "-c"], "Third\n");
    assert_eq!(last.stdout, "> Second\n\n● A\nTwo.\n\n● A\nThree.\n");
    provider.finish();
    let threads = piped(dir.path(), &["threads", "list", "--json"], "").stdout;
    let threads: serde_json::Value = serde_json::from_str(&threads).unwrap();
    let first = threads["data"][1]["thread_id"].as_str().unwrap();
    assert_eq!(piped(dir.path(), &["chat", "-r", &first[..8]], "").stdout, "> First\n\n● A\nOne.\n");
    let unknown = piped(dir.path(), &["chat", "-r", "550e8400-e29b-41d4-a716-446655440000"], "Hi\n");
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("thread not found"), "{}", unknown.stderr);
    assert_eq!(piped(dir.path(), &["chat", "-c", "-r", first], "").code, 2);
}

/// A chat that is still going on, with lines to come.
fn started(dir: &Path, args: &[&str]) -> Running {
    let child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(args)
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Running(child)
}

fn enter(chat: &mut Running, line: &str) {
    chat.0.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[test]
fn cli_ctrl_c_ends_the_run_and_not_the_conversation() {
    let provider = Provider::start(vec![Reply::Hang("I was about to"), Reply::Text(&["Here."])]);
    let dir = project(&provider.base_url, "");
    let mut chat = started(dir.path(), &["chat"]);
    enter(&mut chat, "Hi");
    provider.heard.recv().unwrap();
    send("INT", &chat);
    let mut stderr = BufReader::new(chat.0.stderr.take().unwrap());
    let mut told = String::new();
    stderr.read_line(&mut told).unwrap();
    assert_eq!(told, "(cancelled)\n");
    enter(&mut chat, "Still there?");
    drop(chat.0.stdin.take());
    assert_eq!(exit_code(&mut chat), Some(0));
    let mut said = String::new();
    chat.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.ends_with("● A\nHere.\n"), "{said}");
    provider.finish();
}

#[test]
fn cli_ctrl_c_without_a_run_leaves() {
    let dir = project("http://127.0.0.1:1", "");
    for (signal, code) in crate::run::signals() {
        let mut chat = started(dir.path(), &["chat", "-c"]);
        let mut told = String::new();
        BufReader::new(chat.0.stderr.as_mut().unwrap()).read_line(&mut told).unwrap();
        send(signal, &chat);
        assert_eq!(exit_code(&mut chat), Some(code), "{told}");
    }
}

/// The process dies in the middle of an answer: whoever comes back gets it.
#[test]
fn f_a_run_that_was_killed_is_finished_for_whoever_comes_back() {
    let provider = Provider::start(vec![
        Reply::Hang("I was"),
        Reply::Text(&["I was about to ", "say yes."]),
        Reply::Text(&["And no."]),
    ]);
    let dir = project(&provider.base_url, "");
    let mut chat = started(dir.path(), &["chat"]);
    enter(&mut chat, "Yes or no?");
    provider.heard.recv().unwrap();
    chat.0.kill().unwrap();
    chat.0.wait().unwrap();
    let ran = piped(dir.path(), &["chat", "-c"], "Really?\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        ran.stdout, "> Yes or no?\n\n● A\nI was about to say yes.\n\n● A\nAnd no.\n",
        "{}",
        ran.stderr
    );
    provider.finish();
}

#[test]
fn cli_a_reader_that_has_gone_ends_the_chat() {
    let provider = Provider::start(vec![Reply::Text(&["Hello."])]);
    let dir = project(&provider.base_url, "");
    let mut chat = started(dir.path(), &["chat"]);
    drop(chat.0.stdout.take());
    enter(&mut chat, "Hi");
    assert_eq!(exit_code(&mut chat), Some(141));
    provider.finish();
}

#[test]
fn cli_a_person_at_a_terminal() {
    let provider = Provider::start(vec![TRANSFER, Reply::Text(&["Which ", "name?"]), Reply::Hang("And")]);
    let dir = with_helper(&provider);
    let mut terminal = Terminal::start(dir.path(), &["chat"], 120);
    terminal.expect("/help lists the commands");
    terminal.expect("> ");
    terminal.enter("I want to fill in a fotm\u{7f}\u{7f}rm\r");
    // K7: who announces whom, then the mode, then the first question, with the progress.
    terminal.expect("● Main");
    terminal.expect("I'll connect you with our Form Helper.");
    terminal.expect("Connecting you with Form Helper...");
    terminal.expect("[Form Mode]");
    terminal.expect("● Form Helper");
    terminal.expect("Which name?");
    terminal.expect("[Form Helper · step 1 of 2, 0/2 answers · /exit-handoff to leave] > ");
    terminal.enter("Ada\r");
    terminal.expect("And");
    send("INT", &terminal.child);
    terminal.expect("(cancelled)");
    terminal.expect("leave] > ");
    // With something typed it is taken back, with nothing it leaves.
    terminal.enter("something\u{3}");
    terminal.enter("/quti\r");
    terminal.expect("did you mean /quit?");
    terminal.expect("leave] > ");
    terminal.enter("\u{3}");
    let (shown, code) = terminal.end();
    assert_eq!(code, 130, "{shown}");
    assert!(shown.contains("continue with: baton chat -r "), "{shown}");
    let asked = provider.finish();
    assert!(asked[0]["messages"].to_string().contains("I want to fill in a form"), "{asked:?}");
}

#[test]
fn cli_ctrl_d_leaves_and_a_narrow_terminal_has_room_to_type() {
    let provider = Provider::start(vec![TRANSFER, Reply::Text(&["Which name?"])]);
    let dir = with_helper(&provider);
    let mut terminal = Terminal::start(dir.path(), &["chat"], 50);
    terminal.expect("> ");
    terminal.enter("I want to fill in a form\r");
    terminal.expect("Which name?");
    terminal.expect("[Form Helper · step 1 of 2, 0/2 answers · /exit-handoff to leave]\r\n");
    terminal.expect("> ");
    terminal.enter("\u{4}");
    assert_eq!(terminal.end().1, 0);
    provider.finish();
}

/// `baton run` tells the same beside its answer, and goes on with whoever has the thread.
#[test]
fn c_8_a_run_tells_of_its_handoff_and_the_next_one_goes_to_the_holder() {
    let provider =
        Provider::start(vec![TRANSFER, Reply::Text(&["Which name?"]), Reply::Text(&["And which town?"])]);
    let dir = with_helper(&provider);
    let thread = "550e8400-e29b-41d4-a716-446655440000";
    let first = piped(dir.path(), &["run", "--thread", thread, "I want to fill in a form"], "");
    assert_eq!(
        (first.code, first.stdout.as_str()),
        (0, "I'll connect you with our Form Helper.\nWhich name?\n"),
        "{}",
        first.stderr
    );
    assert!(first.stderr.starts_with("↪ Connecting you with Form Helper..."), "{}", first.stderr);
    assert!(first.stderr.contains("Step 1 of 2 · Asking name\n"), "{}", first.stderr);
    let second = piped(dir.path(), &["run", "--thread", thread, "Ada"], "");
    assert_eq!((second.code, second.stdout.as_str()), (0, "And which town?\n"), "{}", second.stderr);
    let asked = provider.finish();
    assert!(asked[2]["messages"][0]["content"].to_string().contains("You fill in forms."));
}
