use std::sync::Arc;

use baton_core::agent::{AcceptsHandoff, Agent};

use super::*;

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

fn agent(id: &str, display_name: &str, description: &str, triggers: &[&str]) -> Agent {
    let triggers: Vec<String> = triggers.iter().map(|trigger| (*trigger).to_owned()).collect();
    Agent {
        display_name: display_name.into(),
        accepts_handoff: (!triggers.is_empty())
            .then(|| AcceptsHandoff { triggers, ..AcceptsHandoff::default() }),
        ..Agent::plain(name(id), description, "")
    }
}

fn roster(agents: Vec<Agent>) -> Agents {
    agents.into_iter().map(|agent| (agent.name.clone(), Arc::new(agent))).collect()
}

/// The bundled agents as their files describe them.
fn bundled() -> Agents {
    roster(vec![
        agent(
            "assistant",
            "Assistant",
            "Answers questions, finds things out, and connects people with the right specialist.",
            &[],
        ),
        agent(
            "debugger",
            "Debugging Assistant",
            "Tracks down a fault step by step with the person: describes it, reproduces it, finds the cause and proves the fix.",
            &[
                "debug this",
                "help me debug",
                "troubleshoot",
                "find the bug",
                "fix this error",
                "it keeps crashing",
            ],
        ),
        agent(
            "knowledge",
            "Knowledge",
            "Answers questions about products, configuration, features and policies from the stored documents, and names its \
             sources.",
            &[],
        ),
        agent(
            "research",
            "Research",
            "Researches open questions on the web and in the stored documents: compares, verifies and reports with sources and \
             dates.",
            &[],
        ),
        agent(
            "skill-creator",
            "Skill Creation Assistant",
            "Builds a skill together with the person: asks what it should do and when, writes it, tests it, saves and activates \
             it.",
            &["create a skill", "build skill", "new skill"],
        ),
    ])
}

fn chosen(message: &str) -> String {
    choose(&bundled(), message, &name("assistant"), 0.25).agent.to_string()
}

#[test]
fn g10_message_is_classified_to_the_matching_agent() {
    for (message, agent) in [
        ("Please create a skill that writes release notes", "skill-creator"),
        ("I'd like to build new skills", "skill-creator"),
        ("Can you fix this error? The build stops.", "debugger"),
        ("My service: it keeps CRASHING!", "debugger"),
        ("Debugging the fault in my parser", "debugger"),
        ("How do I configure rate limiting?", "knowledge"),
        ("Which products and features do the policies name?", "knowledge"),
        ("Research the web and compare databases", "research"),
        ("Good morning", "assistant"),
        ("What is the weather in Kyoto tomorrow afternoon?", "assistant"),
        ("", "assistant"),
    ] {
        assert_eq!(chosen(message), agent, "{message}: {:?}", classify(&bundled(), message));
    }
}

#[test]
fn g10_confidence_reflects_the_margin() {
    let sure = classify(&bundled(), "Create a skill").unwrap();
    assert!(sure.confidence > 0.8 && sure.domain == "skill-creator", "{sure:?}");
    let half = classify(&bundled(), "Questions about documents").unwrap();
    assert!(half.confidence < 0.7, "two agents know documents: {half:?}");
    let long = "Create a summary of the quarterly numbers for our investors in three languages, with charts, before noon";
    let hardly = classify(&bundled(), long).unwrap();
    assert!(hardly.confidence < 0.25, "{hardly:?}");
    assert_eq!(classify(&bundled(), "Guten Morgen"), None);
}

#[test]
fn g10_below_the_threshold_the_fallback_answers_with_the_classification() {
    let found = classify(&bundled(), "Questions about documents").unwrap();
    let choice = choose(&bundled(), "Questions about documents", &name("debugger"), 0.99);
    assert_eq!(choice, Classification { agent: name("debugger"), ..found });
    let nothing = choose(&bundled(), "Guten Morgen", &name("assistant"), 0.25);
    let general = Classification { agent: name("assistant"), domain: "general".into(), confidence: 0.0 };
    assert_eq!(nothing, general);
}

#[test]
fn g10_hidden_agents_are_excluded_and_uncallable_ones_included() {
    let mut hidden = agent("a", "A", "Answers questions about invoices.", &["invoice"]);
    hidden.badge.hidden = true;
    let mut alone = agent("b", "B", "Explains invoices.", &[]);
    alone.can_be_orchestrated = false;
    let agents = roster(vec![hidden, alone]);
    assert_eq!(classify(&agents, "My invoice").unwrap().agent, name("b"));
    assert_eq!(classify(&Agents::new(), "My invoice"), None);
}

#[test]
fn g10_ties_go_to_the_first_name() {
    let agents = roster(vec![agent("z", "Z", "Sells cars.", &[]), agent("y", "Y", "Sells cars.", &[])]);
    let found = classify(&agents, "cars").unwrap();
    assert_eq!((found.agent, found.confidence), (name("y"), 0.5));
}

#[test]
fn g10_only_the_beginning_of_a_long_message_counts() {
    let long = "é x".repeat(400_000) + " create a skill";
    assert_eq!(classify(&bundled(), &long), None);
    let long = format!("create a skill {}", "word ".repeat(200_000));
    assert_eq!(classify(&bundled(), &long).unwrap().agent, name("skill-creator"));
}

/// The terms of the last roster are kept. A roster with the same names and other descriptions is another one.
#[test]
fn changed_agents_are_matched_by_their_new_words() {
    let before =
        roster(vec![agent("a", "A", "Paints houses.", &[]), agent("b", "B", "Repairs clocks.", &[])]);
    let after = roster(vec![agent("a", "A", "Repairs clocks.", &[]), agent("b", "B", "Paints houses.", &[])]);
    let smaller = roster(vec![agent("b", "B", "Paints houses.", &[])]);
    let chosen = |agents| classify(agents, "my clock is broken").map(|found| found.agent.to_string());
    for _ in 0..2 {
        assert_eq!(chosen(&before).as_deref(), Some("b"));
        assert_eq!(chosen(&before).as_deref(), Some("b"), "kept");
        assert_eq!(chosen(&after).as_deref(), Some("a"));
        assert_eq!(chosen(&smaller), None);
    }
}
