//! Files of other programs: their bodies are text, what has no counterpart is a note, and a broken one disables no other.

use std::sync::Arc;

use baton_agents::{KnownNames, OnError, RosterDraft, Rule, Severity, SourceFile};
use baton_core::agent::{Agent, AgentPattern};

use super::name;

fn draft(files: &[(&str, &str)], on_error: OnError) -> RosterDraft {
    let sources: Vec<_> =
        files.iter().map(|(path, text)| SourceFile::new(*path, (*text).to_owned())).collect();
    RosterDraft::parse(&sources, &KnownNames { on_error, ..KnownNames::default() }, Vec::new())
}

/// The agent of one file that has no errors, and what is said about it as `severity rule`.
fn only(path: &str, text: &str) -> (Arc<Agent>, Vec<String>) {
    let draft = draft(&[(path, text)], OnError::Refuse);
    let problems = draft.problems().iter().map(|problem| format!("{} {}", problem.severity, problem.rule));
    let problems: Vec<String> = problems.collect();
    let agent = draft.agents().next().map(|entry| Arc::clone(&entry.agent));
    (agent.unwrap_or_else(|| panic!("no agent: {problems:?}")), problems)
}

const FOREIGN: &str = "---\nname: helper\ndescription: Helps.\ntools: Read, Grep\nmodel: sonnet\n---\n";

#[test]
fn the_body_of_a_foreign_file_is_literal_text() {
    for body in [
        "Write {{title}} and {{#if x}}{{/if}}.",
        "const a = <div style={{ color: 'red' }} />;",
        "{% extends 'base.html' %} {% block x %}",
        "{# never closed, {{ user }} and {{ agent.name }}",
        "${{ secrets.KEY }} {%- raw",
    ] {
        let (agent, problems) = only("helper.md", &format!("{FOREIGN}{body}\n"));
        assert_eq!((agent.prompt.as_str(), agent.literal_prompt), (body, true));
        assert!(problems.iter().all(|problem| !problem.starts_with("error")), "{problems:?}");
    }
}

/// A file with a key of Baton: variables of Baton are replaced, everything else stays.
#[test]
fn unknown_variables_of_native_files_stay() {
    let prompt = |body: &str| {
        let (agent, problems) =
            only("a.md", &format!("---\ndescription: x\nlimits: {{max_turns: 2}}\n---\n{body}\n"));
        assert!(!agent.literal_prompt);
        assert!(problems.iter().all(|problem| problem == "note unknown-variable"), "{body}: {problems:?}");
        agent.prompt.replace("{{ \"{{\" }}", "<<")
    };
    for (body, expected) in [
        ("{{ user }} writes {{title}}", "{{ user }} writes <<title}}"),
        ("{{- tenant -}} {{- title -}}", "{{- tenant -}} <<- title -}}"),
        ("<p style={{ color: 'red' }}>{{ now }}", "<p style=<< color: 'red' }}>{{ now }}"),
        ("{{{ raw }}} {{#each x}} {{ it's }} {{ user }}", "<<{ raw }}} <<#each x}} << it's }} {{ user }}"),
        ("{{ user.name }} {{ agent.name }}", "<< user.name }} {{ agent.name }}"),
        (
            "{% for a in agents %}{{ a.name }} {{ b.name }}{% endfor %}",
            "{% for a in agents %}{{ a.name }} << b.name }}{% endfor %}",
        ),
        (
            "{% set x = 1 %}{{ x }}{% if user %}{{ y }}{% endif %}",
            "{% set x = 1 %}{{ x }}{% if user %}<< y }}{% endif %}",
        ),
        ("{% raw %}{{ z }}{% endraw %}{# {{ z }} #}", "{% raw %}{{ z }}{% endraw %}{# {{ z }} #}"),
    ] {
        assert_eq!(prompt(body), expected, "{body}");
    }
}

/// `name` and `description` tell nothing of the program: a body without Baton's variables need not be a template.
#[test]
fn a_common_file_is_a_template_only_with_the_variables_of_baton() {
    let common = |body: &str| only("a.md", &format!("---\nname: a\ndescription: x\n---\n{body}\n"));
    let (agent, problems) = common("{% extends 'base.html' %}{{ x }}");
    assert!(agent.literal_prompt && agent.prompt.starts_with("{% extends"));
    assert_eq!(problems, ["note literal-body"]);
    let (agent, _) = common("{% block x %");
    assert!(agent.literal_prompt);
    let (agent, problems) = common("{{ user }} and {{ x }}");
    assert!(!agent.literal_prompt);
    assert_eq!(problems, ["note unknown-variable"]);
    assert_eq!(common("{{ user }}{% if workflow %}").1, ["error invalid-template"]);
}

#[test]
fn foreign_names_and_tools_are_accepted() {
    let text = "---\nname: speckit.plan\ndescription: Plans.\ntools: ['search/codebase', 'com.figma.mcp/*', 'Azure MCP', 'no_such_tool', 'a b/c']\n---\nPlan.\n";
    let (agent, problems) = only("speckit.plan.agent.md", text);
    assert_eq!((agent.name.as_str(), agent.display_name.as_str()), ("speckit-plan", "speckit.plan"));
    assert!(problems.iter().all(|problem| problem.starts_with("note")), "{problems:?}");
    // Another agent reaches it by either name.
    let caller = "---\ndescription: Calls.\nhandoff: speckit.plan\n---\nCall.\n";
    let draft = draft(&[("speckit.plan.agent.md", text), ("a.md", caller)], OnError::Refuse);
    assert_eq!(draft.agent(&name("a")).unwrap().agent.handoff[0].to, name("speckit-plan"));
    // What a file forbids is never a note.
    let denied = "---\ndescription: x\ntools: Read\ndisallowedTools: 'a b'\n---\nx\n";
    assert_eq!(only("a.md", denied).1, ["error invalid-glob"]);
}

#[test]
fn a_list_may_end_at_the_column_of_its_key() {
    let text = "---\ndescription: x\ntools: [\n  'Read',\n  'Write'\n]\nmodel: opus\n---\nx\n";
    let (agent, problems) = only("a.md", text);
    let tools: Vec<_> = agent.tools.allow.iter().map(ToString::to_string).collect();
    assert_eq!(tools, ["read_file", "write_file"]);
    assert_eq!(problems, ["warning unknown-model"]);
}

#[test]
fn a_foreign_file_without_a_description_uses_its_first_line() {
    let (agent, problems) = only("a.chatmode.md", "---\ntools: []\n---\n# Planner\n\nPlan.\n");
    assert_eq!(agent.description, "Planner");
    assert_eq!(problems, ["warning missing-key"]);
    let (agent, _) = only("a.agent.md", "---\nmetadata:\n  description: Plans.\n---\nx\n");
    assert_eq!(agent.description, "Plans.");
}

const GOOD: &str = "---\ndescription: x\nlimits: {}\n---\nx\n";
const BROKEN: &str = "---\nname: b\ndescription: x\ntools: Read\ntemperature: hot\n---\nx\n";

#[test]
fn a_broken_foreign_file_is_left_out() {
    let unreadable = "---\nmodel: sonnet\ndescription: [\n---\nx\n";
    let files = [
        ("x/a.md", GOOD),
        ("y/b.md", BROKEN),
        ("y/c.md", unreadable),
        ("y/notes.md", "# Notes\n"),
        ("y/d.md", FOREIGN),
    ];
    assert!(draft(&files, OnError::Refuse).finish().is_err());
    let draft = draft(&files, OnError::Skip);
    let said = |file: &str| {
        let of_file = |problem: &&baton_agents::Diagnostic| problem.location.path().ends_with(file);
        let all = draft.problems().iter().filter(of_file);
        all.map(|problem| (problem.severity, problem.rule)).collect::<Vec<_>>()
    };
    let skipped = (Severity::Warning, Rule::SkippedFile);
    assert_eq!(said("b.md"), [skipped, (Severity::Warning, Rule::WrongType)]);
    assert_eq!(said("c.md"), [skipped, (Severity::Warning, Rule::YamlSyntax)]);
    assert_eq!(said("notes.md"), [(Severity::Warning, Rule::NoFrontmatter), skipped]);
    assert_eq!(draft.files(), 5);
    let roster = draft.finish().unwrap();
    let names: Vec<_> = roster.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["a"], "d.md has no prompt");
}

/// A key of another program may resemble one of ours; one that restricts an agent must not go unnoticed.
#[test]
fn keys_that_resemble_ours() {
    let with = |key: &str| only("a.agent.md", &format!("---\ndescription: x\n{key}: x\n---\nx\n")).1;
    assert_eq!(with("tema"), ["warning unknown-key"]);
    assert_eq!(with("disalowedTools"), ["error unknown-key"]);
}

/// Skipping is for files of other programs; what depends on a skipped one is refused where it is Baton's.
#[test]
fn errors_of_native_files_still_refuse() {
    let native = "---\ndescription: x\nlimits: {max_turns: many}\n---\nx\n";
    assert!(draft(&[("a.md", native), ("b.md", GOOD)], OnError::Skip).finish().is_err());
    assert!(draft(&[("a.md", "# Notes\n"), ("b.md", GOOD)], OnError::Skip).finish().is_err());
    let user = "---\ndescription: x\nhandoff: b\n---\nx\n";
    let draft = draft(&[("a.md", user), ("b.md", BROKEN)], OnError::Skip);
    let errors: Vec<_> =
        draft.problems().iter().filter(|problem| problem.is_error()).map(|p| p.rule).collect();
    assert_eq!(errors, [Rule::UnknownAgent]);
}

#[test]
fn of_two_agents_with_one_name_the_native_one_is_used() {
    let native = "---\nname: helper\ndescription: Native.\nlimits: {}\n---\nx\n";
    let foreign = format!("{FOREIGN}x\n");
    let draft = draft(&[("a.md", &foreign), ("b.md", native), ("c.md", &foreign)], OnError::Skip);
    let skipped = draft.problems().iter().filter(|problem| problem.rule == Rule::SkippedFile).count();
    let roster = draft.finish().unwrap();
    assert_eq!((roster.len(), skipped), (1, 2));
    assert_eq!(roster.get(&name("helper")).unwrap().description, "Native.");
}

/// H2: masking is switched off only where the operator allows it.
#[test]
fn h2_sanitize_false_needs_permission() {
    let text = "---\ndescription: x\nsanitize: false\n---\nx\n";
    let read = |allow_unmasked: Option<Vec<AgentPattern>>| {
        let known = KnownNames { allow_unmasked, ..KnownNames::default() };
        let draft = RosterDraft::parse(&[SourceFile::new("mailer.md", text.to_owned())], &known, Vec::new());
        let rules: Vec<_> = draft.problems().iter().map(|problem| problem.rule).collect();
        (draft.agent(&name("mailer")).unwrap().agent.sanitize, rules)
    };
    let pattern = |text: &str| Some(vec![AgentPattern::parse(text).unwrap()]);
    assert_eq!(read(None), (false, vec![]));
    assert_eq!(read(pattern("mail*")), (false, vec![]));
    assert_eq!(read(pattern("other")), (true, vec![Rule::UnmaskedRefused]));
    assert_eq!(read(Some(vec![])), (true, vec![Rule::UnmaskedRefused]));
}
