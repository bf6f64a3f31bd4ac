//! What the documentation says is true.

use std::collections::BTreeMap;
use std::path::Path;

use baton_agents::{Diagnostic, KnownNames, RosterDraft, Rule, SourceFile, keys};
use baton_core::choice::Choice as _;
use serde_json::Value;

use crate::served::Served;
use crate::{root, sources};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The contents of fenced blocks that open with ```` ```<language> ````.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let starts = text.match_indices(&fence).map(|(at, _)| &text[at + fence.len()..]);
    starts.map(|rest| rest.split("\n```").next().unwrap_or(rest).to_owned()).collect()
}

#[test]
fn every_rule_is_documented_with_its_sentence() {
    let text = read("docs/validation.md");
    for (word, rule) in Rule::ALL {
        let row = format!("| `{word}` | {} | {} |", rule.severity(), rule.summary());
        assert!(text.contains(&row), "docs/validation.md lacks the row {row}");
    }
}

/// I10: the guide to agent files has every key.
#[test]
fn every_key_is_documented() {
    let text = read("docs/agent-files.md");
    for key in keys::own() {
        assert!(text.contains(&format!("`{key}`")), "docs/agent-files.md lacks `{key}`");
    }
}

/// Each example that is a whole agent file loads; what it refers to is there as a stand-in.
#[test]
fn agent_files_in_the_documentation_are_valid() {
    let mut found = 0;
    for path in ["README.md", "docs/agent-files.md"] {
        for block in blocks(&read(path), "markdown").iter().filter(|block| block.starts_with("---\n")) {
            found += 1;
            let mut sources = vec![SourceFile::new("example.md", block.as_str())];
            loop {
                let draft = RosterDraft::parse(&sources, &KnownNames::default(), Vec::new());
                let missing = |problem: &&Diagnostic| problem.rule == Rule::UnknownAgent;
                let Some(problem) = draft.problems().iter().find(missing) else {
                    let problems: Vec<_> = draft.problems().iter().map(ToString::to_string).collect();
                    assert!(problems.is_empty(), "{path}: {problems:?}\n{block}");
                    break;
                };
                let name = problem.message.split('`').nth(1).expect("a name");
                sources.push(SourceFile::new(
                    format!("{name}.md"),
                    "---\ndescription: A stand-in.\n---\nHelp.\n",
                ));
            }
        }
    }
    assert!(found >= 5, "only {found} examples");
}

#[test]
fn the_configuration_in_the_documentation_is_valid() {
    for path in ["docs/budgets.md", "docs/configuration.md", "docs/identity.md", "docs/local-models.md"] {
        let blocks = blocks(&read(path), "toml");
        assert!(!blocks.is_empty(), "{path}");
        for block in blocks {
            let config = baton::config::Config::parse(&block, path.as_ref(), std::iter::empty());
            assert!(config.is_ok(), "{path}: {}\n{block}", config.unwrap_err());
        }
    }
}

/// What decides about agents among each other is listed in full, with its defaults.
#[test]
fn the_keys_of_the_patterns_are_documented_with_their_defaults() {
    let text = read("docs/configuration.md");
    let block = blocks(&text, "toml").into_iter().find(|block| block.contains("[orchestration]")).unwrap();
    let source = read("crates/baton/src/config/sections.rs");
    for section in ["Orchestration", "Handoff", "Features", "AgentsConfig"] {
        let fields = source.split(&format!("pub struct {section} {{")).nth(1).unwrap();
        for field in
            fields.split("\n}").next().unwrap().lines().filter_map(|line| line.trim().strip_prefix("pub "))
        {
            let key = format!("\n{} = ", field.split(':').next().unwrap());
            assert!(block.contains(&key), "docs/configuration.md lacks{key}in [{section}]");
        }
    }
    let config = baton::config::Config::parse(&block, "docs/configuration.md".as_ref(), std::iter::empty());
    let (config, default) = (config.unwrap(), baton::config::Config::default());
    // Keys without a default are there as examples.
    let orchestration = baton::config::Orchestration {
        sub_agent_profile: None,
        sub_agent_work_dir: None,
        ..config.orchestration
    };
    assert_eq!(orchestration, default.orchestration);
    assert_eq!((config.handoff, config.features), (default.handoff, default.features));
}

/// B17, E42, J0d, I11: the guide says what each pattern is for, in the words of the requirements, and what it saves.
#[test]
fn b17_e42_the_guide_says_what_each_pattern_is_for() {
    let guide = read("docs/patterns.md");
    let table = guide.split("## Which pattern when").nth(1).unwrap().split("\n## ").next().unwrap();
    let row = |pattern: &str| {
        let key = format!("| {pattern} |");
        table
            .lines()
            .find(|line| line.contains(&key))
            .unwrap_or_else(|| panic!("no row for {pattern}"))
            .to_owned()
    };
    for (pattern, purposes) in [
        ("delegation, agents as tools", &["one answer from several sources"][..]),
        ("advisors", &["legal and operational review"]),
        ("router", &["receptionist", "triage"]),
        ("chain", &["approval gates", "reviews"]),
        ("team", &["review panel", "planning committee"]),
        ("workflow", &["several messages"]),
    ] {
        let row = row(pattern);
        assert!(purposes.iter().all(|purpose| row.contains(purpose)), "{purposes:?} in {row}");
        assert_eq!(row.matches('|').count(), 7, "who decides, who answers and what it costs: {row}");
    }
    assert!(table.contains("costs less than what a model decides"), "savings over tool calls");
    for word in ["questions and answers", "research in several sources", "one answer in one voice"] {
        assert!(guide.contains(word), "B17: {word}");
    }
    // Each pattern has a section with its key, its failure behaviour and a runnable example.
    for (section, key) in [
        ("Agents as tools and delegation", "agents:"),
        ("Advisors", "advisors:"),
        ("Router", "router"),
        ("Chain", "handoff"),
        ("Transfers", "collaborations"),
        ("Team", "team:"),
    ] {
        let text = guide.split(&format!("\n## {section}\n")).nth(1).unwrap_or_else(|| panic!("{section}"));
        let text = text.split("\n## ").next().unwrap();
        assert!(
            text.contains(key) && text.contains("```sh\n") && text.contains("**On failure:**"),
            "{section}"
        );
    }
}

/// I11: each guarantee of SECURITY.md names code that exists, and tests that exist.
#[test]
fn i11_each_security_guarantee_has_code_and_tests() {
    let text = read("SECURITY.md");
    let table = text.split("## What is guaranteed, and where").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(1)
        .map(|row| row.split(" | ").collect())
        .collect();
    assert!(rows.len() >= 15, "the table is nearly empty");
    let sources = sources();
    for row in rows {
        let [guarantee, code, shown_by] = row[..] else { panic!("three columns were expected: {row:?}") };
        for name in in_backticks(code).filter(|name| name.starts_with("baton") && name.contains('/')) {
            for path in alternatives(name) {
                let (start, _) = path.split_once('*').unwrap_or((&path, ""));
                assert!(
                    sources.iter().any(|(file, _)| file.starts_with(&format!("crates/{start}"))),
                    "{guarantee}: no `{path}`"
                );
            }
        }
        for name in in_backticks(shown_by) {
            let is_path = name.ends_with('/') || Path::new(name).extension().is_some_and(|end| end == "rs");
            let is_there = if is_path {
                sources.iter().any(|(path, _)| path.contains(&format!("/{name}")))
            } else {
                // `a8_…` stands for several; words without `_` are crates and commands.
                !name.contains('_') || has_function(&sources, name.trim_end_matches('…'))
            };
            assert!(is_there, "{guarantee}: no `{name}`");
        }
        assert!(shown_by.contains('`') || shown_by.contains("tests in"), "{guarantee}: what shows it?");
    }
}

fn in_backticks(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// `a/{b,c}.rs` is `a/b.rs` and `a/c.rs`.
fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let (names, after) = rest.split_once('}').unwrap();
    names.split(',').map(|name| format!("{before}{name}{after}")).collect()
}

/// Whether there is a function whose name begins so.
fn has_function(sources: &[(String, String)], name: &str) -> bool {
    sources.iter().any(|(_, text)| text.contains(&format!("fn {name}")))
}

/// Links between documents lead somewhere.
#[test]
fn relative_links_exist() {
    let mut documents = vec![
        "README.md".to_owned(),
        "ARCHITECTURE.md".into(),
        "CONTRIBUTING.md".into(),
        "CHANGELOG.md".into(),
    ];
    let docs = std::fs::read_dir(root().join("docs")).expect("docs");
    documents
        .extend(docs.map(|entry| format!("docs/{}", entry.expect("a file").file_name().to_string_lossy())));
    for document in
        documents.iter().filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "md"))
    {
        let text = read(document);
        let folder = root().join(document).parent().expect("a folder").to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                assert!(folder.join(target).exists(), "{document} links to {target}");
            }
        }
    }
}

/// Every command of the guide to the API works as it stands, one after the other, against a server as the guide starts it.
#[test]
fn the_commands_in_the_guide_to_the_api_work() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start_with(dir.path(), &["--demo"], &[]);
    let mut ids = BTreeMap::from([("run_id", String::new())]);
    let commands = blocks(&read("docs/api.md"), "sh");
    assert!(commands.len() > 15, "only {} commands", commands.len());
    for written in commands {
        assert!(written.starts_with("curl ") && written.contains("http://127.0.0.1:8420/"), "{written}");
        let command = written
            .replacen("curl ", "curl -sS --max-time 60 --fail-with-body ", 1)
            .replace("127.0.0.1:8420", &served.address);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &command]).current_dir(dir.path());
        shell.envs(ids.iter().map(|(name, id)| (name.to_uppercase(), id)));
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{written}\n{said}{}", String::from_utf8_lossy(&output.stderr));
        let Ok(answer) = serde_json::from_str::<Value>(&said) else { continue };
        for (name, id) in [
            ("run_id", &answer["run_id"]),
            ("handoff_id", &answer["handoff_id"]),
            ("artifact_id", &answer["artifact_id"]),
            ("message_id", &answer["message"]["message_id"]),
        ] {
            ids.extend(id.as_str().map(|id| (name, id.to_owned())));
        }
    }
}
