//! Loading: every key, every alias, names and references.

use std::path::PathBuf;

use baton_agents::{Known, Roster, Severity, Strictness};
use baton_core::agent::{Agent, History, ModelName, Quorum, RoutingMode, Skills, Strategy, TerminationMode};
use baton_core::{HumanDuration, Usd};

use crate::{draft, errors, name};

/// The one agent called `a` of a head, with `b` and `c` to refer to.
fn agent(head: &str) -> Agent {
    let draft = draft(&[("a", head), ("b", ""), ("c", "")]);
    assert_eq!(errors(&draft), [""; 0], "{head}");
    draft.agent(&name("a")).expect("the agent").agent.as_ref().clone()
}

#[test]
fn defaults_are_those_of_the_contract() {
    let agent = agent("");
    assert_eq!(agent.display_name, "A");
    assert_eq!(agent.version.to_string(), "1.0.0");
    assert_eq!(agent.limits.max_turns, 10);
    assert_eq!(agent.limits.max_depth, 3);
    assert_eq!(agent.limits.max_transfers, 5);
    assert_eq!(agent.limits.timeout, HumanDuration::from_mins(5));
    assert_eq!(agent.limits.max_parallel_tools, 4);
    assert_eq!(agent.history, History::Conversation);
    assert_eq!(agent.skills, Skills::default());
    assert_eq!(agent.delegation.strategy, Strategy::Parallel);
    assert_eq!(agent.delegation.timeout, HumanDuration::from_secs(30));
    assert_eq!(agent.advisors.deadline, HumanDuration::from_secs(60));
    assert!(agent.can_be_orchestrated && agent.sanitize);
    assert!(agent.tools.allow.is_empty() && agent.model.is_empty() && agent.accepts_handoff.is_none());
}

#[test]
fn e11_the_patterns_of_the_seeds_in_both_spellings() {
    let agent =
        agent("team:\n  members: [b, c]\n  terminationMode: maxRounds\n  maxRounds: 3\n  quorum: majority");
    let team = agent.team.expect("a team");
    assert_eq!(
        (team.termination_mode, team.max_rounds, team.quorum),
        (TerminationMode::MaxRounds, 3, Quorum::Majority)
    );
}

#[test]
fn every_key_has_a_typed_value() {
    let agent = agent(
        "model: [openai/gpt-5-mini, fast]\ntemperature: 0.5\ntop_p: 1\nmax_output_tokens: 100\neffort: high\n\
         tools: [search_docs, \"mcp:x/*\"]\ndisallowed_tools: shell\nmcp_servers: {x: {command: run, args: [a]}}\nskills: [one-skill]\n\
         agents: [b]\ndelegation: {strategy: first_success, synthesis: concat, cache: 10m, max_concurrent: 2}\n\
         advisors: {agents: [{agent: b, required: true, timeout: 5s}, c], min_success: 1, deadline: 9s, on_quorum_fail: refuse}\n\
         handoff: [{to: b, when: \"'x' in output\"}, c]\ncollaborations: [{agent: b, when: it is about b}]\n\
         history: {last: 4}\nsanitize: false\napprovals: {ask: [\"write_*\"], deny: [shell]}\n\
         limits: {max_turns: 3, timeout: 1m, max_cost_usd: 0.25, max_tokens: 1000}\noutput_schema: {type: object}\n\
         handoffs: [{label: Go, agent: b, prompt: Now, send: true}]\nversion: 2.0.1\ncolor: teal",
    );
    let model = ModelName::Provider { provider: "openai".into(), model: "gpt-5-mini".into() };
    assert_eq!(agent.model, [model, ModelName::Alias("fast".into())]);
    assert!(agent.tools.permits("mcp:x/anything") && !agent.tools.permits("shell"));
    assert_eq!(agent.advisors.min_success, 1);
    assert!(agent.advisors.agents[0].required && !agent.advisors.agents[1].required);
    assert_eq!(agent.handoff[0].when.as_deref(), Some("'x' in output"));
    assert_eq!(agent.collaborations[0].when.as_deref(), Some("it is about b"));
    assert_eq!(agent.history, History::Last(4));
    assert_eq!(agent.limits.max_cost_usd, Some("0.25".parse::<Usd>().unwrap()));
    assert_eq!(agent.handoffs[0].label, "Go");
    assert_eq!(agent.version.to_string(), "2.0.1");
}

#[test]
fn x5_with_router_true_agents_are_destinations_only() {
    let agent = agent("router: true\nagents: [b, c]");
    let router = agent.router.expect("a router");
    assert_eq!((router.mode, router.destinations), (RoutingMode::Pure, vec![name("b"), name("c")]));
    assert!(agent.agents.is_empty());
}

#[test]
fn baton_settings_may_stand_under_one_key() {
    let agent =
        agent("tools: [search_docs]\nbaton:\n  handoff: b\n  limits: {max_turns: 2}\n  display_name: Shown");
    assert_eq!(agent.display_name, "Shown");
    assert_eq!(agent.handoff[0].to, name("b"));
    assert_eq!(agent.limits.max_turns, 2);
}

#[test]
fn g1_collaborators_in_the_body_are_read_like_the_key() {
    let sources = [
        baton_agents::Source::new(
            "sre.md",
            "---\ndescription: Keeps things running.\n---\n**Collaborations**: Security Specialist (reviews, audits), dba\n\n```\n**Collaborations**: Nobody\n```\n",
        ),
        baton_agents::Source::new("security_specialist.md", "---\ndescription: Secures.\n---\nSecure.\n"),
        baton_agents::Source::new("dba.md", "---\ndescription: Stores.\n---\nStore.\n"),
    ];
    let draft = baton_agents::Draft::parse(&sources, &Known::default(), Vec::new());
    assert_eq!(errors(&draft), [""; 0]);
    let sre = &draft.agent(&name("sre")).unwrap().agent;
    let collaborators: Vec<_> =
        sre.collaborations.iter().map(|c| (c.agent.as_str(), c.when.as_deref())).collect();
    assert_eq!(collaborators, [("security_specialist", Some("reviews, audits")), ("dba", None)]);
    assert_eq!(sre.collaborations[0].agent.transfer_tool(), "transfer_to_security_specialist");
}

#[test]
fn g16_an_unknown_agent_names_file_line_and_a_way_out() {
    let draft = draft(&[("assistant", "agents: [reserch]"), ("research", "")]);
    let problem = &draft.problems()[0];
    assert_eq!(problem.location.to_string(), "assistant.md:3:10");
    assert_eq!(problem.message, "no agent is called `reserch`");
    assert_eq!(problem.help, "did you mean `research`?");
}

#[test]
fn e40_consult_points_to_advisors() {
    let draft = draft(&[("a", "consult: [b]"), ("b", "")]);
    assert_eq!(errors(&draft), ["a.md:3:1: renamed-key: `consult` is called `advisors`"]);
    assert_eq!(draft.problems()[0].help, "write `advisors:` instead");
}

#[test]
fn strict_mode_makes_warnings_errors_and_leaves_notes() {
    let head = "model: sonnet\nmemory: project";
    let severities =
        |draft: &baton_agents::Draft| draft.problems().iter().map(|p| p.severity).collect::<Vec<_>>();
    let lenient = draft(&[("a", head)]);
    assert_eq!(severities(&lenient), [Severity::Warning, Severity::Note]);
    assert!(lenient.finish().is_ok());
    let strict = draft(&[("a", head)]).with_strictness(Strictness::Strict);
    assert_eq!(severities(&strict), [Severity::Error, Severity::Note]);
    assert!(strict.finish().is_err());
}

#[test]
fn a_name_for_people_takes_its_id_from_the_file() {
    let draft = draft(&[("skill-creator", "name: Skill Creation Assistant")]);
    let agent = &draft.agent(&name("skill-creator")).unwrap().agent;
    assert_eq!(agent.display_name, "Skill Creation Assistant");
}

#[test]
fn e31_a_folder_is_loaded_recursively_and_all_problems_come_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("one.md", "---\ndescription: One.\nhandoff: nobody\n---\nOne.\n");
    write("deep/er/two.md", "---\ndescription: Two.\ntemperature: hot\n---\nTwo.\n");
    write("README.md", "# Not an agent\n");
    write("notes.txt", "not an agent");
    write("other/baton.toml", "");
    write("other/agents/three.md", "broken, but another project's");
    write(".hidden/four.md", "broken, but hidden");
    let load = || Roster::load(&[dir.path().to_owned()], &Known::default(), Strictness::Lenient);
    assert_eq!(load().unwrap_err().problems.len(), 2);
    write("one.md", "---\ndescription: One.\nhandoff: two\n---\nOne.\n");
    write("deep/er/two.md", "---\ndescription: Two.\n---\nTwo.\n");
    let roster = load().unwrap();
    assert_eq!(roster.len(), 2);
    assert_eq!(roster.nearest("tow"), [name("two")]);
    assert!(roster.graph().agents.iter().any(|node| node.id == name("two") && node.terminal));
}

#[test]
fn a_missing_or_empty_folder_says_so() {
    let missing = Roster::load(&[PathBuf::from("/nowhere/agents")], &Known::default(), Strictness::Lenient);
    let error = missing.unwrap_err().to_string();
    assert!(error.contains("/nowhere/agents") && error.contains("agents.dirs"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error = Roster::load(&[empty.path().to_owned()], &Known::default(), Strictness::Lenient).unwrap_err();
    assert!(error.to_string().contains("baton init"), "{error}");
}
