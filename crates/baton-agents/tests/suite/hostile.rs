//! No input makes the reader panic, hang or grow without limit.

use baton_agents::{Graph, KnownNames, RosterDraft, SourceFile};
use proptest::prelude::*;

/// Reads a text as two files that refer to each other, and draws the result in every form.
fn survive(text: &str) {
    let sources = [
        SourceFile::new("a.md", text),
        SourceFile::new("b.md", "---\ndescription: B.\nagents: [a]\n---\nB.\n"),
    ];
    let draft = RosterDraft::parse(&sources, &KnownNames::default(), Vec::new());
    for problem in draft.problems() {
        let (start, end) = (problem.location.start(), problem.location.end());
        assert!(start.line >= 1 && start.column >= 1 && end.line >= start.line, "{problem}");
        assert!(problem.location.source.text.get(problem.location.span.range()).is_some(), "{problem}");
        assert!(!problem.help.is_empty() && !problem.message.is_empty());
    }
    let graph = Graph::of(&draft, None);
    let _ = (graph.to_text(None), graph.to_mermaid(), graph.to_dot());
}

/// Pieces that agent files are made of, so that random texts get past the first line.
fn fragment() -> impl Strategy<Value = String> {
    let pieces = vec![
        "---\n",
        "name: ",
        "description: x\n",
        "agents: [a, b]\n",
        "router: true\n",
        "router: {destinations: [b]}\n",
        "team:\n",
        "  members: [a, b]\n",
        "handoff: b\n",
        "handoff: [{to: b, when: \"x\"}]\n",
        "advisors: {agents: [b], min_success: 1}\n",
        "workflow:\n  states:\n    - name: x\n      next: y\n",
        "tools: Read, Bash(git:*)\n",
        "history: last: 3\n",
        "limits: {max_turns: 1}\n",
        "output_schema: {type: object}\n",
        "kind: remote\n",
        "auth: {type: bearer, token: x}\n",
        "{{ user }}",
        "{% if x %}",
        "{% raw %}",
        "**Collaborations**: B (x, y), C\n",
        "&a ",
        "*a ",
        "<<: *a\n",
        "- ",
        ": ",
        "'",
        "\"",
        "[",
        "]",
        "{",
        "}",
        "|\n",
        ">\n",
        "#",
        "\t",
        "\r\n",
        "\u{feff}",
        "é",
        "🎷",
        "\u{0}",
        "true",
        "~",
        "1e999",
        "-0",
        "!!str ",
        "? ",
        "%YAML 1.2\n",
        "...\n",
        "  ",
        "\n",
    ];
    prop_oneof![3 => prop::sample::select(pieces).prop_map(str::to_owned), 1 => any::<String>()]
}

proptest! {
    // `PROPTEST_CASES` asks for more, for a long soak by hand.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        survive(&text);
        survive(&format!("---\n{text}\n---\n{text}"));
    }

    #[test]
    fn anything_that_looks_like_an_agent(pieces in prop::collection::vec(fragment(), 0..40)) {
        let text = pieces.concat();
        survive(&text);
        survive(&format!("---\ndescription: x\n{text}\n---\nBody. {text}"));
    }

    /// A key with any value, and any key of the contract with it.
    #[test]
    fn any_value_of_any_key(key in prop::sample::select(baton_agents::keys::own().collect::<Vec<_>>()), value in fragment(), more in fragment()) {
        survive(&format!("---\ndescription: x\n{key}: {value}{more}\n---\nBody.\n"));
        survive(&format!("---\ndescription: x\n{key}:\n  - {value}\n  - {more}: {value}\n---\nBody.\n"));
        survive(&format!("---\ndescription: x\n{key}:\n  states: {value}\n  agents: {more}\n  to: {value}\n---\nBody.\n"));
    }
}

#[test]
fn deep_templates_do_not_overflow() {
    survive(&format!("---\ndescription: x\n---\n{}", "{% if x %}".repeat(100_000)));
    survive(&format!("---\ndescription: x\n---\n{{{{ {} }}}}", "(".repeat(100_000)));
    survive(&format!("---\ndescription: x\nhandoff: [{{to: b, when: \"{}\"}}]\n---\nx", "(".repeat(20_000)));
}

#[test]
fn deep_schemas_do_not_overflow() {
    let deep = format!("{}{}", "{items: ".repeat(40), "{}".to_owned() + &"}".repeat(40));
    survive(&format!("---\ndescription: x\noutput_schema: {deep}\n---\nx"));
    survive("---\ndescription: x\noutput_schema: {$ref: \"#\"}\n---\nx");
    survive("---\ndescription: x\noutput_schema: {$ref: \"http://127.0.0.1:1/x.json\"}\n---\nx");
    survive("---\ndescription: x\noutput_schema: {pattern: \"(((((a*)*)*)*)*)*b\"}\n---\nx");
    survive("---\ndescription: x\noutput_schema: {$schema: \"nonsense\"}\n---\nx");
}
