//! Files made to hurt: a clear error, within one second of processor time and bounded memory. Both limits are set by
//! the kernel (`ulimit`), so the test does not depend on how busy the machine is.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Validates one file under limits of 1 s processor time and 256 MiB address space, and returns what was printed.
fn validate_under_limits(dir: &Path, file: &str) -> String {
    let script = "ulimit -t 1 && ulimit -v 262144 && exec \"$0\" validate \"$1\"";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_baton"), file])
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .output()
        .expect("sh runs");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(3), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    stdout
}

fn explained(content: &[u8], expected: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.md"), content).unwrap();
    let printed = validate_under_limits(dir.path(), "agent.md");
    for expected in expected.iter().chain(&["agent.md", "help"]) {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
    assert!(printed.len() < 5_000, "the report itself is short");
}

#[test]
fn a_yaml_bomb() {
    let mut bomb = String::from("---\ndescription: x\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let _ = writeln!(bomb, "a{level}: &a{level} [{}]", format!("*a{}, ", level - 1).repeat(10));
    }
    explained((bomb + "---\nBoom.\n").as_bytes(), &["yaml-too-complex", ":6:"]);
}

#[test]
fn ten_megabytes() {
    let long = format!("---\ndescription: x\n---\n{}", "word ".repeat(2 * 1024 * 1024));
    explained(long.as_bytes(), &["too-large", "10485783 bytes"]);
    let head = format!("---\ndescription: x\nnote: {}\n---\nHello.\n", "x".repeat(100_000));
    explained(head.as_bytes(), &["too-large", "frontmatter"]);
}

#[test]
fn one_long_line() {
    let line = format!("---\ndescription: x\nhandoff: {}\n---\nHello.\n", "x".repeat(50_000));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.md"), line).unwrap();
    assert!(validate_under_limits(dir.path(), "agent.md").contains("unknown-agent"));
}

#[test]
fn invalid_utf8() {
    explained(b"---\ndescription: caf\xe9\n---\nHello.\n", &["not-utf8", ":2:17"]);
    explained(&[0xff; 4096], &["not-utf8"]);
}

#[test]
fn ten_thousand_levels() {
    let flow = format!("---\ndescription: x\ndeep: {}\n---\nHello.\n", "[".repeat(10_000));
    explained(flow.as_bytes(), &["yaml-too-complex", ":3:"]);
    let block: String = (0..300).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    explained(format!("---\n{block}---\nHello.\n").as_bytes(), &["yaml-too-complex"]);
    let lists = format!("---\nx: {}x\n---\nHello.\n", "- ".repeat(10_000));
    explained(lists.as_bytes(), &["yaml"]);
}

#[test]
fn many_problems_in_one_file() {
    let keys: String = (0..2_000).map(|at| format!("k{at}: [a, b]\n")).collect();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.md"), format!("---\n{keys}---\nHello.\n")).unwrap();
    let printed = validate_under_limits(dir.path(), "agent.md");
    assert!(
        printed.contains("too-many-problems") || printed.contains("more problems, not shown"),
        "{printed}"
    );
    // 1,000 of them, one for the rest, and the description that is missing.
    assert!(printed.ends_with("1 file checked: 1 error, 1000 warnings\n"), "{printed}");
    assert!(printed.contains("agent.md: 901 more problems, not shown"), "{printed}");
}

/// Few nodes and few bytes, copied often.
#[test]
fn a_bomb_of_long_texts_and_nested_anchors() {
    let anchors: String = (0..45).map(|level| format!("&b{level} [")).collect();
    let aliases = "*a,".repeat(4_800);
    let head = format!("a: &a \"{}\"\nb: {anchors}{aliases}{}\n", "x".repeat(45_000), "]".repeat(45));
    explained(format!("---\ndescription: x\n{head}---\nBoom.\n").as_bytes(), &["yaml-too-complex", ":4:"]);
}

#[test]
fn a_megabyte_before_an_unknown_variable() {
    let body = format!("---\nx: 1\n---\n{}{{{{ a }}}}\n", "a ".repeat(500_000));
    explained(body.as_bytes(), &["unknown-variable", ":4:1000004"]);
}

#[test]
fn twenty_thousand_unknown_variables() {
    let body: String = (0..20_000).map(|at| format!("{{{{ v{at} }}}}")).collect();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.md"), format!("---\nx: 1\n---\n{body}\n")).unwrap();
    let printed = validate_under_limits(dir.path(), "agent.md");
    // The first 2,000 tags stay as they are, and of these 20 are shown, as of the rest.
    assert_eq!(printed.matches("is not a variable of Baton").count(), 20, "{printed}");
    assert!(printed.contains("the template uses 17980 more names that do not exist"), "{printed}");
    assert!(printed.len() < 50_000, "the report itself is short");
}

#[test]
fn many_problems_on_one_line() {
    let tools: Vec<String> = (0..6_000).map(|at| format!("t{at}")).collect();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.md"), format!("---\ntools: [{}]\n---\nHello.\n", tools.join(", ")))
        .unwrap();
    let printed = validate_under_limits(dir.path(), "agent.md");
    // The column is that of the file, not that of the part which is shown.
    assert!(printed.contains("agent.md:2:414\n") && printed.contains("…t67, t68"), "{printed}");
    assert!(printed.len() < 100_000);
}

#[test]
fn a_workflow_of_states_that_lead_nowhere() {
    let states: String = (0..1_700).map(|at| format!("  - {{name: s{at}, next: t{at}}}\n")).collect();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.md"), format!("---\nworkflow:\n  states:\n{states}---\nHello.\n"))
        .unwrap();
    assert!(validate_under_limits(dir.path(), "agent.md").contains("unknown-state"));
}

/// What a file says never reaches the terminal as a command to it.
#[test]
fn control_characters_are_shown_and_not_sent() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    let text = "---\nname: \"A\\e[31m\\x9b\"\ndescription: \"x\\e]0;owned\\a\"\nhandoff: \"n\\e[2J\"\nskills: [\"a\\e\"]\n---\nHi \u{1b}[31m\u{9b} {{ x\u{1b} }}\n";
    std::fs::write(dir.path().join("agents/a.md"), text).unwrap();
    let all: [&[&str]; 6] = [
        &["validate"],
        &["graph"],
        &["graph", "--format", "dot"],
        &["graph", "--format", "mermaid"],
        &["agents", "list"],
        &["agents", "show", "a"],
    ];
    for args in all {
        let ran = crate::baton(dir.path(), args);
        let printed = ran.stdout + &ran.stderr;
        assert!(!printed.contains(['\u{1b}', '\u{9b}', '\u{7}']), "{args:?}: {printed:?}");
    }
}
