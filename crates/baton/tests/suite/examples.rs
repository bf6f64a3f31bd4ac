//! The folders of `examples/`: each command line of a README is run, without a key, and prints what the README says.

use std::path::Path;

use crate::run::piped;
use crate::{baton, root};

/// How commands begin in a README; the rest is Baton's own command line.
const PREFIX: &str = "cargo run -q -p baton -- ";
/// Where the README leaves out the end of an answer.
const NOTICE: &str = "(No language model is configured;";

/// What has to be there, whatever the README says: something of the answer to each question, and who worked on it.
struct Expected {
    folder: &'static str,
    answers: &'static [&'static str],
    agents: &'static [&'static str],
}

const EXPECTED: &[Expected] = &[
    Expected {
        folder: "advisors",
        answers: &["**legal**: Check term and renewal", "\"verdict\""],
        agents: &["contract-review", "legal", "operations", "security", "quick-check"],
    },
    Expected {
        folder: "agents-as-tools",
        answers: &[
            "From code-reviewer:",
            "Solar power became 80 percent cheaper",
            "From doc-writer:",
            "divided by 119",
        ],
        agents: &["orchestrator", "code-reviewer", "doc-writer", "researcher", "vat-clerk"],
    },
    Expected {
        folder: "delegation",
        answers: &["From regulation:", "No permit is needed"],
        agents: &["lead-researcher", "market", "technology", "regulation", "quick-answer"],
    },
    Expected {
        folder: "everything-on",
        answers: &["kept for 30 days", "From offer-desk:"],
        agents: &["assistant", "tone", "handbook", "pricing", "offer-desk", "offer-check", "sales"],
    },
    Expected {
        folder: "handoff-chain",
        answers: &["DECISION: REJECTED", "RISK: LOW"],
        agents: &["change-request", "risk-review", "security-approval", "change-record"],
    },
    Expected {
        folder: "remote",
        answers: &["I'm working with limited resources right now"],
        agents: &["service-desk", "handbook"],
    },
    Expected {
        folder: "router",
        answers: &["forget the network", "ten days can be taken into the next year"],
        agents: &["reception", "it-help", "people"],
    },
    Expected {
        folder: "team",
        answers: &["**customer-voice**: Six of ten", "**finance**: The quarter pays"],
        agents: &["planning-committee", "review-panel", "engineering", "customer-voice", "finance"],
    },
    Expected {
        folder: "transfers",
        answers: &["A refund of a double charge takes five working days.", "reload it without the cache"],
        agents: &["support", "billing", "technical"],
    },
    Expected {
        folder: "workflow",
        answers: &["return a kettle that you bought last week"],
        agents: &["shop-assistant", "returns"],
    },
];

/// A command of a README and the block below it.
struct Shown {
    arguments: Vec<String>,
    output: String,
}

fn shown(readme: &str) -> Vec<Shown> {
    let commands = readme.split("```sh\n").skip(1);
    let shown = commands.map(|rest| {
        let (command, below) = rest.split_once("\n```").expect("the end of a block");
        let line =
            command.strip_prefix(PREFIX).unwrap_or_else(|| panic!("`{command}` is not run by this test"));
        let output =
            below.split_once("\n\n```").and_then(|(_, rest)| rest.split_once('\n')).expect("its output").1;
        Shown { arguments: words(line), output: output.split("\n```").next().unwrap_or_default().to_owned() }
    });
    shown.collect()
}

/// A command line as a shell reads it; only double quotes are used.
fn words(line: &str) -> Vec<String> {
    let pieces = line.split('"').enumerate();
    let words = pieces.flat_map(|(at, piece)| match at % 2 {
        1 => vec![piece.to_owned()],
        _ => piece.split_whitespace().map(str::to_owned).collect(),
    });
    words.collect()
}

/// The words of an answer, without line breaks and marks of quotation, up to the notice.
fn said(answer: &str) -> Vec<&str> {
    let answer = answer.split(NOTICE).next().unwrap_or_default();
    answer.split_whitespace().filter(|word| *word != ">").collect()
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.path().extension().is_some_and(|extension| extension == "md" || extension == "toml") {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn folders() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("examples")).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let mut names: Vec<String> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs a README from its first command to its last.
fn follow(expected: &Expected) {
    let Expected { folder, answers, agents } = expected;
    let dir = tempfile::tempdir().unwrap();
    let project = format!("examples/{folder}");
    copy(&root().join(&project), &dir.path().join(&project));
    let readme = std::fs::read_to_string(root().join(&project).join("README.md")).unwrap();
    assert!(!readme.contains("later release: baton run"), "{folder} still says that it cannot run");
    let mut answers = answers.iter();
    for Shown { arguments, output } in shown(&readme) {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ran = baton(dir.path(), &arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        match arguments[0] {
            "run" => {
                let answer = answers.next().unwrap_or_else(|| panic!("{folder}: no answer is expected"));
                let unwrapped = said(&ran.stdout).join(" ");
                assert!(unwrapped.contains(answer), "{folder}: {answer:?} is not in {}", ran.stdout);
                assert_eq!(said(&output), said(&ran.stdout), "{folder}: the README shows something else");
            }
            "sessions" => {
                let worked: Vec<&str> = ran.stdout.split_whitespace().collect();
                assert!(agents.iter().all(|agent| worked.contains(agent)), "{folder}: {}", ran.stdout);
                let named = output.lines().map(|line| line.trim_start_matches(['├', '└', '│', '─', ' ']));
                assert!(named.into_iter().all(|agent| agents.contains(&agent)), "{folder}: {output}");
            }
            "graph" => assert_eq!(output.trim(), ran.stdout.trim(), "{folder}"),
            other => panic!("{folder}: `{other}` is not checked"),
        }
    }
    assert_eq!(answers.next(), None, "{folder}: a question is missing in the README");
}

/// B17, E42, F30, X18: every pattern can be seen at work without a key.
#[test]
fn every_example_does_what_its_readme_says() {
    let expected: Vec<&str> = EXPECTED.iter().map(|expected| expected.folder).collect();
    assert_eq!(folders(), expected, "a folder came or went: update EXPECTED");
    std::thread::scope(|scope| {
        for expected in EXPECTED {
            scope.spawn(|| follow(expected));
        }
    });
}

/// C-24: the workflow is walked from the request to the return, by rules alone.
#[test]
fn c_24_the_workflow_example_goes_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    copy(&root().join("examples/workflow"), dir.path());
    let words = [
        "I want to return a kettle that I bought last week.",
        "R-1001",
        "the kettle",
        "it arrived damaged",
        "no",
        "describing damage",
        "the lid is cracked",
        "skip",
        "refund",
        "pickup",
        "change the order number to R-2002",
        "yes",
    ];
    let ran = piped(dir.path(), &["chat"], &words.join("\n"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let guide = std::fs::read_to_string(root().join("examples/workflow/README.md")).unwrap();
    let end =
        guide.split("```text\n● Returns Desk").nth(1).and_then(|rest| rest.split("\n```").next()).unwrap();
    for line in end.lines().filter(|line| !line.starts_with(['>', '↪']) && !line.is_empty()) {
        assert!(ran.stdout.contains(line), "the README says {line:?}, and this was said: {}", ran.stdout);
    }
    assert!(ran.stdout.contains("order number R-2002, article the kettle"), "{}", ran.stdout);
}

/// I9: what the guide shows is part of an example.
#[test]
fn snippets_in_the_guide_come_from_the_examples() {
    let guide = std::fs::read_to_string(root().join("docs/patterns.md")).unwrap();
    let mut examples = String::new();
    for folder in folders() {
        let project = root().join("examples").join(folder);
        examples += &std::fs::read_to_string(project.join("README.md")).unwrap();
        for agent in std::fs::read_dir(project.join("agents")).unwrap() {
            examples += &std::fs::read_to_string(agent.unwrap().path()).unwrap();
        }
    }
    let snippets: Vec<&str> =
        ["```yaml\n", "```sh\n"].iter().flat_map(|fence| guide.split(fence).skip(1)).collect();
    assert!(snippets.len() > 10, "{}", snippets.len());
    for snippet in snippets.into_iter().filter_map(|rest| rest.split("```").next()) {
        assert!(examples.contains(snippet), "no example has\n{snippet}");
    }
}

#[test]
fn every_example_is_in_the_list_of_patterns() {
    for document in ["README.md", "docs/patterns.md"] {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        for folder in folders() {
            assert!(
                text.contains(&format!("examples/{folder}/README.md")),
                "{document} does not name {folder}"
            );
        }
    }
}

/// F32: what the engine says between turns is not taken for the question, whatever the strategy.
#[test]
fn every_planning_strategy_works_without_a_model() {
    for strategy in ["native_react", "plan_and_execute", "plan_and_react", "spar"] {
        let dir = tempfile::tempdir().unwrap();
        let agent = format!(
            "---\ndescription: Looks up.\nplanning_strategy: {strategy}\ntools: [search_docs]\n---\nYou look things up.\n"
        );
        for (path, text) in [
            ("agents/a.md", agent.as_str()),
            ("docs/backups.md", "# Backups\n\nBackups are kept for 30 days.\n"),
            ("baton.toml", "[agents]\nmain = \"a\"\n[tools.search_docs]\ndirs = [\"docs\"]\n"),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let ran = baton(dir.path(), &["run", "How long are backups kept?"]);
        assert_eq!(ran.code, 0, "{strategy}: {}", ran.stderr);
        assert!(ran.stdout.contains("Backups are kept for 30 days. [1]"), "{strategy}: {}", ran.stdout);
        assert_eq!(ran.stdout.matches(NOTICE).count(), 1, "{strategy}: {}", ran.stdout);
    }
}

/// F12, F13: the profile of an orchestrator, with the bounds that the seed names.
#[test]
fn f13_the_orchestrators_profile() {
    let folder = root().join("examples/agents-as-tools");
    let config = std::fs::read_to_string(folder.join("baton.toml")).unwrap();
    assert!(config.contains("sub_agent_max_steps = 30") && config.contains("agent_tool = true"), "{config}");
    let ran = baton(&folder, &["agents", "show", "orchestrator"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for setting in ["max_turns: 50", "web_fetch", "read_file", "write_file"] {
        assert!(ran.stdout.contains(setting), "{setting}\n{}", ran.stdout);
    }
}
