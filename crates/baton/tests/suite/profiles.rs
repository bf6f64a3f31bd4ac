//! Profiles of the configuration, and what they mean for sub-agents.

use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use crate::baton;
use crate::provider::{Provider, Reply, frame, next_call, play};
use crate::run::project;
use crate::terminal::Terminal;

/// What the profiles of a test add to the configuration of [`project`].
const PROFILES: &str = r#"
[profiles.orchestrator.orchestration]
sub_agent_profile = "dev"
sub_agent_work_dir = "sub-agents"
[profiles.dev.models]
default = "local/small"
[profiles.dev.orchestration]
sub_agent_tool_allowlist = ["write_file"]
sub_agent_max_steps = 1
"#;

fn with_profiles(base_url: &str) -> tempfile::TempDir {
    let dir = project(base_url, "display_name: Orchestrator\nagents: [b]");
    let worker = "---\ndescription: Researches.\ndisplay_name: Researcher\ntools: [write_file, read_file]\n---\nYou research.\n";
    std::fs::write(dir.path().join("agents/b.md"), worker).unwrap();
    let file = dir.path().join("baton.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(file, text + PROFILES).unwrap();
    dir
}

fn offers(request: &Value, tool: &str) -> bool {
    let tools = request["tools"].as_array();
    tools.is_some_and(|tools| tools.iter().any(|one| one["function"]["name"] == tool))
}

/// F12: sub-agents have the model, the tools and the turns of `sub_agent_profile`, and write below `sub_agent_work_dir`.
#[test]
fn f_12_sub_agents_have_the_profile_and_the_folder_of_the_configuration() {
    let mission =
        Reply::Call { tool: "call_agent", arguments: r#"{"mission": "Write it", "specialist": "b"}"# };
    let write = Reply::Call { tool: "write_file", arguments: r#"{"path": "notes/a.txt", "content": "one"}"# };
    let (written, done) = (Reply::Text(&["Written."]), Reply::Text(&["All done."]));
    let provider = Provider::start(vec![mission, write, written, done]);
    let dir = with_profiles(&provider.base_url);
    let ran = baton(dir.path(), &["run", "Write it", "--profile", "orchestrator"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "All done.\n"), "{}", ran.stderr);
    let asked = provider.finish();
    let models: Vec<&str> = asked.iter().map(|request| request["model"].as_str().unwrap()).collect();
    assert_eq!(models, ["m", "small", "small", "m"]);
    assert!(offers(&asked[1], "write_file") && !offers(&asked[1], "read_file"), "{}", asked[1]);
    assert!(asked[3].to_string().contains(r#"\"limit\":\"turns\""#), "{}", asked[3]);
    let file = |path: &str| std::fs::read_to_string(dir.path().join(path)).ok();
    assert_eq!((file("sub-agents/notes/a.txt").as_deref(), file("notes/a.txt")), (Some("one"), None));
}

/// Replaces the profiles of the project and the tools of its sub-agent.
fn rewrite(dir: &Path, tools: &str, profiles: &str) {
    let worker = format!("---\ndescription: Researches.\ntools: [{tools}]\n---\nYou research.\n");
    std::fs::write(dir.join("agents/b.md"), worker).unwrap();
    let file = dir.join("baton.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace(PROFILES, profiles);
    std::fs::write(file, text).unwrap();
}

/// F12: commands of sub-agents start in `sub_agent_work_dir`, which is created for them; those of the calling agent start in the folder of the
/// project.
#[test]
fn f_12_commands_of_sub_agents_start_in_their_folder() {
    let own = Reply::Call { tool: "shell", arguments: r#"{"command": "pwd > main.txt"}"# };
    let mission =
        Reply::Call { tool: "call_agent", arguments: r#"{"mission": "Look around", "specialist": "b"}"# };
    let command = Reply::Call { tool: "shell", arguments: r#"{"command": "pwd > where.txt"}"# };
    let (looked, done) = (Reply::Text(&["Looked."]), Reply::Text(&["All done."]));
    let provider = Provider::start(vec![own, mission, command, looked, done]);
    let dir = with_profiles(&provider.base_url);
    let main = "---\ndescription: Helps.\nagents: [b]\ntools: [shell]\n---\nYou help.\n";
    std::fs::write(dir.path().join("agents/a.md"), main).unwrap();
    let profiles =
        "\n[tools.shell]\nenabled = true\n[orchestration]\nsub_agent_work_dir = \"sub-agents/b\"\n";
    rewrite(dir.path(), "shell", profiles);
    let ran = baton(dir.path(), &["run", "Look around", "--approve", "all"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "All done.\n"), "{}", ran.stderr);
    provider.finish();
    let folder = dir.path().canonicalize().unwrap();
    let said = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap_or_default();
    assert_eq!(said("main.txt"), format!("{}\n", folder.display()));
    assert_eq!(said("sub-agents/b/where.txt"), format!("{}\n", folder.join("sub-agents/b").display()));
}

/// F12: `budgets.run` of the profile is the limit of each sub-agent: it gets one closing turn and reports the limit. The calling agent,
/// which has spent more by then, has no limit.
#[test]
fn f_12_sub_agents_have_the_budget_of_their_profile() {
    let mission =
        || Reply::Call { tool: "call_agent", arguments: r#"{"mission": "Write it", "specialist": "b"}"# };
    let write = |arguments| Reply::Call { tool: "write_file", arguments };
    // Each reply has 15 tokens.
    let provider = Provider::start(vec![
        mission(),
        write(r#"{"path": "a.txt", "content": "one"}"#),
        write(r#"{"path": "b.txt", "content": "two"}"#),
        Reply::Text(&["Half of it."]),
        mission(),
        Reply::Text(&["The rest."]),
        Reply::Text(&["All done."]),
    ]);
    let dir = with_profiles(&provider.base_url);
    let profiles =
        "\n[orchestration]\nsub_agent_profile = \"dev\"\n[profiles.dev.budgets.run]\nmax_tokens = 30\n";
    rewrite(dir.path(), "write_file", profiles);
    let ran = baton(dir.path(), &["run", "Write it"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "All done.\n"), "{}", ran.stderr);
    let asked = provider.finish();
    assert_eq!(asked.len(), 7);
    assert_eq!(asked[3]["tool_choice"], "none", "the closing turn: {}", asked[3]);
    assert!(asked[4].to_string().contains(r#"\"limit\":\"tokens\""#), "{}", asked[4]);
    let last = asked[6]["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(
        last.contains("The rest.") && !last.contains("limit"),
        "the second one has a budget of its own: {last}"
    );
}

/// F12: without the profile the same agents work as their files say.
#[test]
fn f_12_without_a_profile_sub_agents_work_as_before() {
    let mission =
        Reply::Call { tool: "call_agent", arguments: r#"{"mission": "Write it", "specialist": "b"}"# };
    let write = Reply::Call { tool: "write_file", arguments: r#"{"path": "a.txt", "content": "one"}"# };
    let (written, done) = (Reply::Text(&["Written."]), Reply::Text(&["All done."]));
    let provider = Provider::start(vec![mission, write, written, done]);
    let dir = with_profiles(&provider.base_url);
    assert_eq!(baton(dir.path(), &["run", "Write it"]).code, 0);
    let asked = provider.finish();
    assert!(asked.iter().all(|request| request["model"] == "m") && offers(&asked[1], "read_file"));
    assert_eq!(std::fs::read_to_string(dir.path().join("a.txt")).unwrap(), "one");
}

/// K4: every command that reads the configuration knows the profile; the variable is the flag's default, and a misspelt name gets a
/// suggestion.
#[test]
fn k_4_commands_take_a_profile_by_flag_or_variable() {
    let dir = with_profiles("http://127.0.0.1:1/v1");
    for command in [
        &["doctor"][..],
        &["agents", "list"],
        &["validate"],
        &["graph"],
        &["threads", "list"],
        &["usage"],
        &["skills", "list"],
    ] {
        let ran = baton(dir.path(), &[command, &["--profile", "orchestrtor"]].concat());
        assert_eq!(ran.code, 3, "{command:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("no profile `orchestrtor` in baton.toml: did you mean `orchestrator`?"),
            "{}",
            ran.stderr
        );
        assert_eq!(
            baton(dir.path(), &[command, &["--profile", "orchestrator"]].concat()).code,
            0,
            "{command:?}"
        );
    }
    let doctor = |profile: &str| {
        let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_baton"));
        let ran =
            command.current_dir(dir.path()).env("BATON_PROFILE", profile).arg("doctor").output().unwrap();
        String::from_utf8(ran.stdout).unwrap()
    };
    let shown = doctor("orchestrator");
    assert!(
        shown.contains("✓ profile   orchestrator (of dev, orchestrator); of sub-agents: dev\n"),
        "{shown}"
    );
    assert!(shown.contains("✓ agents    2 agents\n") && shown.contains("✓ provider  local\n"), "{shown}");
    assert!(doctor("").contains("✓ profile   none (of dev, orchestrator)\n"));
}

/// `baton doctor` says what does not work, with exit code 3.
#[test]
fn cli_doctor_reports_broken_agents_and_missing_keys() {
    let dir = with_profiles("http://127.0.0.1:1/v1");
    let broken = "---\ndescription: Helps.\nmodel: anthropic/claude\n---\nYou help.\n";
    std::fs::write(dir.path().join("agents/c.md"), broken).unwrap();
    let ran = crate::run::piped(dir.path(), &["doctor"], "");
    assert_eq!(ran.code, 3, "{}", ran.stdout);
    assert!(ran.stdout.contains("✗ provider  anthropic: set ANTHROPIC_API_KEY"), "{}", ran.stdout);
    std::fs::write(dir.path().join("agents/d.md"), "---\ndescription: Helps.\ntols: []\n---\nYou help.\n")
        .unwrap();
    let ran = baton(dir.path(), &["doctor"]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.stdout.contains("✗ agents    1 error: `baton validate` explains what is wrong"),
        "{}",
        ran.stdout
    );
}

/// Two calls of `call_agent` in one reply.
fn two_missions() -> Reply {
    let call = |index: u32, topic: &str| {
        let arguments = json!({"specialist": "b", "mission": format!("Research {topic}")}).to_string();
        let function = json!({"name": "call_agent", "arguments": arguments});
        json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": function})
    };
    let calls = json!({"tool_calls": [call(0, "Python FastAPI"), call(1, "React")]});
    let frames = [frame(&calls, &Value::Null), frame(&json!({}), &json!("tool_calls"))].concat();
    Reply::Recorded(frames + "data: [DONE]\n\n")
}

fn mission_on_a_terminal(dir: &Path) -> Terminal {
    let mission = "Research Python FastAPI and React simultaneously";
    Terminal::start(dir, &["run", "mission", mission, "--profile", "orchestrator"], 120)
}

/// F31: the seed's command on a terminal. The lines say that sub-agents were spawned, what each of them does, and that their results
/// are combined.
#[test]
fn f_31_a_mission_shows_spawning_progress_and_combining() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let dir = with_profiles(&format!("http://{}/v1", listener.local_addr().unwrap()));
    let (go, wait) = channel::<()>();
    let provider = std::thread::spawn(move || {
        let (mut orchestrator, _) = next_call(&listener);
        play(&mut orchestrator, &two_missions());
        let children = [next_call(&listener), next_call(&listener)];
        wait.recv().unwrap();
        for (mut child, _) in children {
            play(&mut child, &Reply::Text(&["Found."]));
        }
        let (mut orchestrator, request) = next_call(&listener);
        wait.recv().unwrap();
        play(&mut orchestrator, &Reply::Text(&["Both are popular."]));
        request
    });
    let mut terminal = mission_on_a_terminal(dir.path());
    terminal.expect("Orchestrator waits for 2 agents…");
    terminal.expect("└ Researcher thinks… (Research Python FastAPI)");
    terminal.expect("└ Researcher thinks… (Research React)");
    go.send(()).unwrap();
    terminal.expect("✓ Researcher · ");
    terminal.expect("✓ Researcher · ");
    terminal.expect("Orchestrator puts 2 results together…");
    go.send(()).unwrap();
    terminal.expect("Both are popular.");
    let (shown, code) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert!(provider.join().unwrap().to_string().contains("Found."));
}

/// F31: `mission` is a word before the prompt, and a prompt of its own if nothing follows it.
#[test]
fn f_31_the_word_mission_is_optional() {
    let provider = Provider::start(vec![Reply::Text(&["One."]), Reply::Text(&["Two."])]);
    let dir = with_profiles(&provider.base_url);
    assert_eq!(baton(dir.path(), &["run", "mission", "Research it"]).stdout, "One.\n");
    assert_eq!(baton(dir.path(), &["run", "mission"]).stdout, "Two.\n");
    let wrong = baton(dir.path(), &["run", "Research", "it"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("put quotes around it"), "{}", wrong.stderr);
    let asked = provider.finish();
    let last =
        |request: &Value| request["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(last(&asked[0]).contains("Research it") && !last(&asked[0]).contains("mission"));
    assert!(last(&asked[1]).contains("mission"));
}
