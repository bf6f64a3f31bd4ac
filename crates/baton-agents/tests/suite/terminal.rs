//! Who owns the answer (E8, E9, E14), and cycles (E12, E13).

use std::collections::BTreeSet;

use baton_agents::Graph;

use crate::{answers, draft, errors, name};

/// E8, E14: whose words are the answer follows from the file alone: plain, advised and coordinating agents are terminal, an agent
/// that hands on, a router and (by its role) an advisor or a member are not.
#[test]
fn e8_e14_the_terminal_table() {
    let draft = draft(&[
        ("plain", ""),
        ("chained", "handoff: plain"),
        ("router", "router: true\nagents: [plain, other]"),
        ("advised", "advisors: [plain]"),
        ("coordinator", "team: {members: [plain, other]}"),
        ("other", ""),
    ]);
    assert_eq!(errors(&draft), [""; 0]);
    assert_eq!(answers(&draft, "plain"), ["plain"]);
    assert_eq!(answers(&draft, "chained"), ["plain"]);
    assert_eq!(answers(&draft, "router"), ["other", "plain"]);
    assert_eq!(answers(&draft, "advised"), ["advised"]);
    assert_eq!(answers(&draft, "coordinator"), ["coordinator"]);
    let graph = Graph::of(&draft, None);
    let terminal: BTreeSet<&str> =
        graph.agents.iter().filter(|node| node.terminal).map(|node| node.id.as_str()).collect();
    assert_eq!(terminal, BTreeSet::from(["advised", "coordinator", "other", "plain"]));
}

#[test]
fn e4_e9_a_chain_of_any_length_ends_with_its_last() {
    let draft = draft(&[("a", "handoff: b"), ("b", "handoff: c"), ("c", "handoff: d"), ("d", "")]);
    for agent in ["a", "b", "c", "d"] {
        assert_eq!(answers(&draft, agent), ["d"]);
    }
}

#[test]
fn conditions_leave_several_possible_owners() {
    let draft = draft(&[
        ("a", "handoff: [{to: b, when: \"'x' in output\"}]"),
        ("b", ""),
        ("c", "handoff: [{to: b, when: \"true\"}, {to: d}]"),
        ("d", ""),
        ("r", "router: {destinations: [a], fallback: d, may_answer: true}"),
    ]);
    assert_eq!(errors(&draft), [""; 0]);
    assert_eq!(answers(&draft, "a"), ["a", "b"]);
    assert_eq!(answers(&draft, "c"), ["b", "d"]);
    assert_eq!(answers(&draft, "r"), ["a", "b", "d", "r"]);
}

#[test]
fn x6b_a_routers_own_handoff_speaks_last() {
    let draft = draft(&[("r", "router: true\nagents: [a, b]\nhandoff: c"), ("a", ""), ("b", ""), ("c", "")]);
    assert_eq!(errors(&draft), [""; 0]);
    assert_eq!(answers(&draft, "r"), ["c"]);
}

#[test]
fn e12_e13_cycles_are_found_over_all_fixed_edges() {
    for head in ["handoff: a", "router: {destinations: [a]}", "advisors: [a]", "team: {members: [a, c]}"] {
        let draft = draft(&[("a", "handoff: b"), ("b", head), ("c", "")]);
        let found = errors(&draft);
        assert_eq!(found.len(), 1, "{head}: {found:?}");
        assert!(found[0].contains("a → b → a"), "{head}: {found:?}");
    }
}

/// K11: a loop of one agent, over each pattern.
#[test]
fn k11_an_agent_that_leads_to_itself_is_refused() {
    for head in ["handoff: a", "router: {destinations: [a]}", "advisors: [a]", "team: {members: [a, c]}"] {
        let draft = draft(&[("a", head), ("c", "")]);
        let found = errors(&draft);
        assert_eq!(found.len(), 1, "{head}: {found:?}");
        assert!(found[0].contains("a → a"), "{head}: {found:?}");
        assert!(draft.finish().is_err(), "{head}");
    }
}

/// K11: a long cycle is found whole, wherever the search begins, and an agent that only leads into it is not part of it.
#[test]
fn k11_a_long_cycle_is_named_whole() {
    const LENGTH: usize = 1000;
    let mut heads: Vec<(String, String)> =
        (0..LENGTH).map(|at| (format!("n{at}"), format!("handoff: n{}", (at + 1) % LENGTH))).collect();
    heads.insert(0, ("before".to_owned(), "handoff: n500".to_owned()));
    let heads: Vec<(&str, &str)> = heads.iter().map(|(name, head)| (name.as_str(), head.as_str())).collect();
    let found = errors(&draft(&heads));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(!found[0].contains("before →"), "{found:?}");
}

/// K11: a cycle whose edges are of different patterns: a chain, a router, an advisor and a team.
#[test]
fn k11_a_cycle_through_different_patterns_is_refused() {
    let mixed = [
        ("a", "handoff: b"),
        ("b", "router: {destinations: [c, x]}"),
        ("c", "advisors: [d]"),
        ("d", "team: {members: [x, a]}"),
        ("x", ""),
    ];
    let found = errors(&draft(&mixed));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("a → b → c → d → a"), "{found:?}");
    // Without its last edge there is none.
    let mut open = mixed;
    open[3].1 = "team: {members: [x, y]}";
    let open: Vec<(&str, &str)> = open.into_iter().chain([("y", "")]).collect();
    assert_eq!(errors(&draft(&open)), [""; 0]);
}

/// K11: two ways to the same agent are no cycle, also when they are of different patterns and one is longer.
#[test]
fn k11_a_diamond_is_no_cycle() {
    let diamond = draft(&[
        ("top", "router: {destinations: [left, right]}\nadvisors: [bottom]"),
        ("left", "handoff: bottom"),
        ("right", "handoff: further"),
        ("further", "advisors: [bottom]\nhandoff: bottom"),
        ("bottom", ""),
    ]);
    assert_eq!(errors(&diamond), [""; 0]);
    assert_eq!(answers(&diamond, "top"), ["bottom"]);
    // Two diamonds in a row: the number of ways doubles, the work does not.
    let mut rows: Vec<(String, String)> = Vec::new();
    for at in 0..200 {
        rows.push((format!("t{at}"), format!("router: {{destinations: [l{at}, r{at}]}}")));
        for side in ["l", "r"] {
            rows.push((format!("{side}{at}"), format!("handoff: t{}", at + 1)));
        }
    }
    rows.push(("t200".to_owned(), String::new()));
    let rows: Vec<(&str, &str)> = rows.iter().map(|(name, head)| (name.as_str(), head.as_str())).collect();
    let many = draft(&rows);
    assert_eq!(errors(&many), [""; 0]);
    assert_eq!(answers(&many, "t0"), ["t200"]);
}

#[test]
fn x23_collaborations_and_calls_may_be_mutual() {
    let draft =
        draft(&[("a", "collaborations: [b]\nagents: [b]"), ("b", "collaborations: [a]\nagents: [a]")]);
    assert_eq!(errors(&draft), [""; 0]);
}

#[test]
fn every_cycle_is_reported_at_once() {
    let draft = draft(&[
        ("a", "handoff: b"),
        ("b", "handoff: a"),
        ("c", "advisors: [d]"),
        ("d", "advisors: [c]"),
        ("e", "handoff: e"),
    ]);
    let found = errors(&draft);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found.iter().any(|error| error.contains("own-ancestor") && error.contains("c → d → c")),
        "{found:?}"
    );
}

#[test]
fn a_chain_of_ten_thousand_needs_no_stack() {
    let heads: Vec<(String, String)> = (0..10_000)
        .map(|at| {
            (format!("n{at}"), if at + 1 < 10_000 { format!("handoff: n{}", at + 1) } else { String::new() })
        })
        .collect();
    let heads: Vec<(&str, &str)> = heads.iter().map(|(name, head)| (name.as_str(), head.as_str())).collect();
    let draft = draft(&heads);
    assert_eq!(errors(&draft), [""; 0]);
    assert_eq!(answers(&draft, "n0"), ["n9999"]);
    assert_eq!(draft.agent(&name("n0")).unwrap().agent.handoff[0].to, name("n1"));
}

/// Each of thousands may answer, and the list of them is not kept for each of them.
#[test]
fn a_long_conditional_chain_names_the_first_owners() {
    const AGENTS: usize = 5_000;
    let head = |at: usize| {
        if at + 1 < AGENTS {
            format!("handoff: [{{to: n{:04}, when: \"'x' in output\"}}]", at + 1)
        } else {
            String::new()
        }
    };
    let heads: Vec<(String, String)> = (0..AGENTS).map(|at| (format!("n{at:04}"), head(at))).collect();
    let heads: Vec<(&str, &str)> = heads.iter().map(|(name, head)| (name.as_str(), head.as_str())).collect();
    let graph = Graph::of(&draft(&heads), None);
    assert!(graph.agents.iter().all(|node| node.answers.len() <= 16));
    let first = &graph.agents[0];
    assert!(first.other_answers && !first.terminal);
    assert!(first.answered_by().starts_with("n0000, n0001, ") && first.answered_by().ends_with(" or others"));
    let last = &graph.agents[AGENTS - 2];
    assert_eq!((last.other_answers, last.answered_by().as_str()), (false, "n4998 or n4999"));
}
