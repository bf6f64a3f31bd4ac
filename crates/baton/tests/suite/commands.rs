//! The commands, their formats and their exit codes.

use std::path::Path;

use serde_json::Value;

use crate::{baton, fixtures, root};

#[test]
fn the_bundled_agents_and_all_examples_are_valid() {
    let ran = baton(&root(), &["validate", "agents", "examples", "--strict"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.ends_with("files checked: no problems\n"), "{}", ran.stdout);
}

#[test]
fn sarif_satisfies_its_schema() {
    // The official schema travels with a crate that is only used here.
    let metadata = crate::architecture::metadata(&[]);
    let packages = metadata["packages"].as_array().unwrap();
    let sarif = packages.iter().find(|package| package["name"] == "serde-sarif").unwrap();
    let manifest = Path::new(sarif["manifest_path"].as_str().unwrap());
    let schema = std::fs::read_to_string(manifest.parent().unwrap().join("src/schema.json")).unwrap();
    let mut schema: Value = serde_json::from_str(&schema).unwrap();
    // One pattern in it has a bracket too many and is no regular expression; it is about a field that is not used here.
    for definition in ["run", "toolComponent"] {
        schema["definitions"][definition]["properties"]["language"]
            .as_object_mut()
            .unwrap()
            .remove("pattern")
            .unwrap();
    }
    let validator = jsonschema::validator_for(&schema).unwrap();

    for paths in [&["broken"][..], &["foreign/vscode", "foreign/claude-code"], &["broken/good.md"]] {
        let ran = baton(&fixtures(), &[&["validate", "--format", "sarif"], paths].concat());
        let log: Value = serde_json::from_str(&ran.stdout).unwrap();
        let errors: Vec<String> = validator.iter_errors(&log).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    let ran = baton(&fixtures(), &["validate", "--format", "sarif", "broken/unknown-agent.md"]);
    let log: Value = serde_json::from_str(&ran.stdout).unwrap();
    insta::assert_json_snapshot!("sarif", log["runs"][0]["results"]);
}

#[test]
fn strict_turns_warnings_into_exit_3() {
    assert_eq!(baton(&fixtures(), &["validate", "foreign/cursor"]).code, 0);
    assert_eq!(baton(&fixtures(), &["validate", "foreign/cursor", "--strict"]).code, 3);
}

#[test]
fn graphs_of_all_examples() {
    let mut examples: Vec<_> =
        std::fs::read_dir(root().join("examples")).unwrap().map(|e| e.unwrap().path()).collect();
    examples.sort();
    assert_eq!(examples.len(), 10);
    let mut all = String::new();
    for example in examples {
        let ran = baton(&example, &["graph"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        all += &format!("# {}\n{}\n", example.file_name().unwrap().to_string_lossy(), ran.stdout);
    }
    insta::assert_snapshot!("graphs", all);
}

#[test]
fn one_agent_shows_the_order_of_a_run() {
    let ran = baton(&root().join("examples/handoff-chain"), &["graph", "change-request"]);
    insta::assert_snapshot!("order", ran.stdout);
}

#[test]
fn e41_graphs_in_every_format_mark_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, head: &str| {
        let text = format!("---\ndescription: Helps.\n{head}\n---\nHelp.\n");
        std::fs::write(dir.path().join(name), text).unwrap();
    };
    write(
        "desk.md",
        "name: Front \"Desk\"\nagents: [books, nobody]\ncollaborations: [{agent: books, when: money}]",
    );
    write("books.md", "handoff: end\nadvisors: [law]");
    write("end.md", "handoff: books");
    write("law.md", "kind: remote\nagent_card_url: https://law.example/card.json");
    let mut all = String::new();
    for format in ["text", "mermaid", "dot", "json"] {
        let ran = baton(dir.path(), &["graph", "--agents", ".", "--format", format]);
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        assert!(ran.stderr.contains("baton validate"), "{}", ran.stderr);
        all += &format!("# {format}\n{}\n", ran.stdout);
    }
    insta::assert_snapshot!("broken-graph", all);
}

#[test]
fn agents_are_listed_and_shown() {
    let list = baton(&root(), &["agents", "list"]);
    insta::assert_snapshot!("agents-list", list.stdout);
    let show = baton(&fixtures(), &["agents", "show", "Release Planner", "--agents", "foreign/vscode"]);
    assert_eq!(show.code, 0, "{}", show.stderr);
    insta::assert_snapshot!("agents-show", show.stdout);
    let unknown = baton(&root(), &["agents", "show", "assistent"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("did you mean `assistant`?"), "{}", unknown.stderr);
}

/// A tenant has the shared agents that its section permits, and those of its own folders.
#[test]
fn agents_of_a_tenant_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let path = dir.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("baton.toml", "[tenants.acme]\nagents = ['desk', 'own-*']\nagent_dirs = ['of-acme']\n");
    for (folder, agent) in [("agents", "desk"), ("agents", "secret"), ("of-acme", "own-one")] {
        write(&format!("{folder}/{agent}.md"), "---\ndescription: Helps.\n---\nHelp.\n");
    }
    let ids = |args: &[&str]| -> Vec<String> {
        let ran = baton(dir.path(), &[&["agents", "list"], args].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    };
    assert_eq!(ids(&[]), ["desk", "secret"]);
    assert_eq!(ids(&["--tenant", "acme"]), ["desk", "own-one"]);
    assert_eq!(ids(&["--tenant", "other"]), ["desk", "secret"]);
    assert_eq!(baton(dir.path(), &["agents", "show", "own-one", "--tenant", "acme"]).code, 0);
    let hidden = baton(dir.path(), &["agents", "show", "secret", "--tenant", "acme"]);
    assert!(hidden.code == 1 && hidden.stderr.contains("has no agent `secret`"), "{}", hidden.stderr);
}

/// What `agents show` prints is itself close to an agent file: its keys can be read again.
#[test]
fn a_shown_definition_is_readable_yaml() {
    for agent in ["assistant", "knowledge", "skill-creator", "debugger"] {
        let shown = baton(&root(), &["agents", "show", agent]).stdout;
        let head = shown.split("---\n").nth(1).unwrap();
        let node = baton_agents::yaml::parse(head, 0).unwrap().unwrap();
        let json: Value =
            serde_json::from_str(&baton(&root(), &["agents", "show", agent, "--format", "json"]).stdout)
                .unwrap();
        for (key, value) in node.to_json().as_object().unwrap() {
            assert_eq!(*value, json[key], "{agent}.{key}");
        }
    }
}

#[test]
fn init_makes_a_valid_project_and_never_overwrites() {
    let dir = tempfile::tempdir().unwrap();
    let ran = baton(dir.path(), &["init", "my project"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("wrote my project/baton.toml"), "{}", ran.stderr);
    let project = dir.path().join("my project");
    let check = baton(&project, &["validate", "--strict"]);
    assert_eq!((check.code, check.stdout.as_str()), (0, "6 files checked: no problems\n"));
    assert!(
        baton(&project.join("docs"), &["graph"]).stdout.starts_with("assistant  (main)"),
        "found from below"
    );
    std::fs::write(project.join("agents/assistant.md"), "mine").unwrap();
    let again = baton(&project, &["init"]);
    assert!(again.stderr.contains("kept  ./agents/assistant.md"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(project.join("agents/assistant.md")).unwrap(), "mine");
}

#[test]
fn a_folder_without_agents_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    for command in [&["validate"][..], &["graph"], &["agents", "list"]] {
        let ran = baton(dir.path(), command);
        assert_eq!(ran.code, 3, "{command:?}");
    }
    assert!(baton(dir.path(), &["validate"]).stdout.contains("unreadable"));
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    assert!(baton(dir.path(), &["validate"]).stdout.contains("baton init"));
}

#[test]
fn mistakes_in_the_configuration_exit_with_3() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("baton.toml"), "[agents]\nmian = \"x\"\n").unwrap();
    let ran = baton(dir.path(), &["validate"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("baton.toml") && ran.stderr.contains("line 2"), "{}", ran.stderr);
    baton(dir.path(), &["init"]);
    std::fs::write(dir.path().join("baton.toml"), "[agents]\nmain = \"asistant\"\n").unwrap();
    let ran = baton(dir.path(), &["validate"]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.stdout.contains("unknown-main") && ran.stdout.contains("did you mean `assistant`?"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("baton.toml:2:8"), "{}", ran.stdout);
}

#[test]
fn mcp_servers_are_known_from_both_files() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    let agent = "---\ndescription: x\ntools: [\"mcp:one/*\", \"mcp:two/*\", \"mcp:three/*\"]\n---\nx\n";
    std::fs::write(dir.path().join("agents/assistant.md"), agent).unwrap();
    std::fs::write(dir.path().join(".mcp.json"), r#"{"mcpServers": {"one": {"command": "x"}}}"#).unwrap();
    std::fs::write(dir.path().join("baton.toml"), "[mcp.servers.two]\nurl = \"http://127.0.0.1:1/mcp\"\n")
        .unwrap();
    let ran = baton(dir.path(), &["validate"]);
    assert!(
        ran.stdout.contains("`three`") && ran.stdout.ends_with("1 file checked: 1 warning\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_broken_mcp_json_is_a_problem_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    let agent = "---\ndescription: x\ntools: [\"mcp:one/*\"]\n---\nx\n";
    std::fs::write(dir.path().join("agents/assistant.md"), agent).unwrap();
    let mcp = |text: &str| std::fs::write(dir.path().join(".mcp.json"), text).unwrap();
    for (text, place) in [
        (
            "{\"mcpServers\": {\n  \"one\": {\"command\": \"x\",, \"env\": {\"KEY\": \"hunter2\"}}\n",
            ".mcp.json:2:26",
        ),
        ("{\"mcpServers\": {\"one\": {\"command\": \"x\", \"env\": \"hunter2\"}}}", ".mcp.json:1:1"),
        ("{\"servers\": {}}", ".mcp.json:1:1"),
    ] {
        mcp(text);
        for args in [&["validate"][..], &["validate", "agents"], &["validate", "agents", "agents"]] {
            let ran = baton(dir.path(), args);
            assert_eq!(ran.code, 3, "{}", ran.stdout);
            assert_eq!(ran.stdout.matches("invalid-mcp").count(), 1, "{}", ran.stdout);
            assert!(ran.stdout.contains(place) && !ran.stdout.contains("hunter2"), "{place}: {}", ran.stdout);
        }
    }
    mcp("\u{feff}{\"mcpServers\": {\"one\": {\"command\": \"x\"}}}");
    for args in [&["validate"][..], &["validate", "agents"], &["validate", "agents/assistant.md"]] {
        assert_eq!(baton(dir.path(), args).stdout, "1 file checked: no problems\n", "{args:?}");
    }
}

/// Agents that refer to each other across folders of one project.
fn scattered(with_config: bool) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("agents/a.md", "---\ndescription: A.\nagents: [b]\n---\nA.\n");
    write("agents/deep/b.md", "---\ndescription: B.\nagents: [a, nobody]\n---\nB.\n");
    write("agents/deep/er/c.md", "---\ndescription: C.\nagents: [a, b]\n---\nC.\n");
    if with_config {
        write("baton.toml", "[agents]\nmain = \"a\"\n");
    }
    dir
}

#[test]
fn a_part_of_a_project_is_checked_within_it() {
    let project = scattered(true);
    let checked = |dir: &str, path: &str| baton(&project.path().join(dir), &["validate", path]).stdout;
    assert_eq!(checked("", "agents/a.md"), "1 file checked: no problems\n");
    assert_eq!(checked("", "agents/deep/er"), "1 file checked: no problems\n");
    assert_eq!(checked("agents/deep/er", "c.md"), "1 file checked: no problems\n");
    assert!(checked("", "agents/deep").ends_with("2 files checked: 1 error\n"));
    assert!(checked("", "agents").ends_with("3 files checked: 1 error\n"));
}

#[test]
fn without_a_configuration_a_file_belongs_to_the_agents_folder_around_it() {
    let folder = scattered(false);
    let checked = |dir: &str, path: &str| baton(&folder.path().join(dir), &["validate", path]).stdout;
    assert_eq!(checked("", "agents/deep/er/c.md"), "1 file checked: no problems\n");
    assert_eq!(checked("agents/deep/er", "c.md"), "1 file checked: no problems\n");
    assert!(checked("", "agents/deep/b.md").ends_with("1 file checked: 1 error\n"));
    // A folder that is given by name is the whole set.
    assert!(checked("", "agents/deep").ends_with("2 files checked: 3 errors\n"));
}

#[test]
fn the_main_agent_is_shown_where_it_is_set() {
    let dir = scattered(true);
    let text = "# \"nobody\"\n[models]\naliases = { x = \"nobody\" }\n[agents]\ndirs = [\"agents\"]\nmain = \"nobody\"\n";
    std::fs::write(dir.path().join("baton.toml"), text).unwrap();
    let ran = baton(dir.path(), &["validate"]);
    assert!(ran.stdout.contains("baton.toml:6:8"), "{}", ran.stdout);
}

/// A full disk behind stderr does not stop a command that has printed its result.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_said_is_left_out() {
    let binary = env!("CARGO_BIN_EXE_baton");
    let dir = scattered(true);
    for command in ["graph", "agents list"] {
        let script = format!("{binary} {command} 2>/dev/full");
        let output =
            std::process::Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{command}");
        assert!(!output.stdout.is_empty(), "{command}");
    }
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("{binary} init new 2>/dev/full")])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn shown_lists_can_be_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let triggers = r#"["a, b", "[c]", "{d: e}", "f # g", "h'i", " j ", "~", "\e"]"#;
    let text = format!("---\ndescription: x\naccepts_handoff: {{triggers: {triggers}}}\n---\nx\n");
    std::fs::write(dir.path().join("a.md"), text).unwrap();
    let shown = baton(dir.path(), &["agents", "show", "a", "--agents", "."]).stdout;
    let head = shown.split("---\n").nth(1).unwrap();
    let node = baton_agents::yaml::parse(head, 0).unwrap().unwrap();
    let expected = serde_json::json!(["a, b", "[c]", "{d: e}", "f # g", "h'i", " j", "~", "\u{1b}"]);
    assert_eq!(node.to_json()["accepts_handoff"]["triggers"], expected, "{shown}");
}

#[test]
fn usage_mistakes_exit_with_2() {
    for args in [&[][..], &["validat"], &["validate", "--format", "xml"], &["graph", "--nope"]] {
        let ran = baton(&root(), args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(!ran.stderr.is_empty() && ran.stdout.is_empty(), "{args:?}");
    }
    assert!(baton(&root(), &["validat"]).stderr.contains("validate"));
    let version = baton(&root(), &["--version"]);
    assert_eq!((version.code, version.stdout), (0, format!("baton {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = baton(&root(), &["completions", shell]);
        assert_eq!(ran.code, 0);
        assert!(ran.stdout.contains("baton") && ran.stdout.contains("validate"), "{shell}");
    }
}

#[test]
fn the_description_of_the_api_needs_no_project_and_no_server() {
    let nowhere = tempfile::tempdir().unwrap();
    let ran = baton(nowhere.path(), &["openapi"]);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &document["openapi"]), (0, &serde_json::json!("3.1.0")));
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(document["paths"].get("/api/v1/threads/{thread_id}/messages").is_some());
}

#[test]
fn colours_only_when_asked() {
    let plain = baton(&fixtures(), &["validate", "broken/unknown-agent.md"]).stdout;
    assert!(!plain.contains('\u{1b}'));
    let coloured = baton(&fixtures(), &["validate", "broken/unknown-agent.md", "--color", "always"]).stdout;
    assert!(coloured.contains('\u{1b}'));
}

/// `baton graph | head` ends quietly.
#[test]
fn a_closed_pipe_is_no_error() {
    let script =
        format!("{} agents list --format json --agents broken | head -c 1", env!("CARGO_BIN_EXE_baton"));
    let output = std::process::Command::new("bash")
        .args(["-o", "pipefail", "-c", &script])
        .current_dir(fixtures())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("panicked") && !stderr.contains("Broken pipe"), "{stderr}");
}
