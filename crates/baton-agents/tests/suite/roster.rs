//! Loading: every key, every alias, names and references.

use std::path::PathBuf;

use baton_agents::{KnownNames, Roster, Severity, Strictness};
use baton_core::agent::{
    Agent, HistoryAccess, ModelName, Quorum, RoutingMode, Skills, Strategy, TerminationMode,
};
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
    assert_eq!(agent.history, HistoryAccess::Conversation);
    assert_eq!(agent.skills, Skills::default());
    assert_eq!(agent.delegation.strategy, Strategy::Parallel);
    assert_eq!(agent.delegation.timeout, HumanDuration::from_secs(30));
    assert_eq!(agent.advisors.deadline, HumanDuration::from_secs(60));
    assert!(agent.can_be_orchestrated && agent.sanitize);
    assert!(agent.tools.allow.is_empty() && agent.model.is_empty() && agent.accepts_handoff.is_none());
}

/// E11: every pattern of the schema is optional, has its form and its defaults, and the words of both spellings.
#[test]
fn e11_the_patterns_of_the_seeds_in_both_spellings() {
    let plain = agent("");
    assert!(plain.handoff.is_empty() && plain.router.is_none() && plain.advisors.agents.is_empty());
    assert!(plain.team.is_none());
    assert_eq!(agent("handoff: b").handoff.iter().map(|one| one.to.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(
        agent("router: true\nagents: [b, c]").router.expect("a router").destinations,
        [name("b"), name("c")]
    );
    let advisors = agent("advisors: [b, c]").advisors.agents;
    assert_eq!(advisors.iter().map(|one| one.agent.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    let team = agent("team: {members: [b, c]}").team.expect("a team");
    assert_eq!(
        (team.members, team.termination_mode, team.max_rounds),
        (vec![name("b"), name("c")], TerminationMode::CoordinatorDecides, 10)
    );
    for (word, mode) in [
        ("consensus", TerminationMode::Consensus),
        ("maxRounds", TerminationMode::MaxRounds),
        ("max_rounds", TerminationMode::MaxRounds),
        ("coordinatorDecides", TerminationMode::CoordinatorDecides),
        ("coordinator_decides", TerminationMode::CoordinatorDecides),
    ] {
        for keys in [("terminationMode", "maxRounds"), ("termination_mode", "max_rounds")] {
            let text = format!("team: {{members: [b, c], {}: {word}, {}: 4}}", keys.0, keys.1);
            let team = agent(&text).team.expect("a team");
            assert_eq!((team.termination_mode, team.max_rounds), (mode, 4), "{text}");
        }
    }
    // A team without members, and a value of the wrong type, are errors of the file.
    for head in [
        "team: {maxRounds: 3}",
        "router: 5",
        "advisors: 5",
        "handoff: [[b]]",
        "team: {members: [b, c], maxRounds: 0}",
    ] {
        assert!(!errors(&draft(&[("a", head), ("b", ""), ("c", "")])).is_empty(), "{head}");
    }
    let agent =
        agent("team:\n  members: [b, c]\n  terminationMode: maxRounds\n  maxRounds: 3\n  quorum: majority");
    let team = agent.team.expect("a team");
    assert_eq!(
        (team.termination_mode, team.max_rounds, team.quorum),
        (TerminationMode::MaxRounds, 3, Quorum::Majority)
    );
}

/// X30: states are data of the agent, in their order; the agent that creates skills has the five of the seed.
#[test]
fn x30_the_states_of_a_workflow_are_those_of_the_file() {
    let file = include_str!("../../../../agents/skill-creator.md");
    let head = file.split("---\n").nth(1).expect("a head");
    let workflow = &head[head.find("workflow:").expect("a workflow")..head.find("limits:").expect("limits")];
    let workflow = agent(workflow).workflow.expect("a workflow");
    let states: Vec<&str> = workflow.states.iter().map(|state| state.name.0.as_str()).collect();
    let expected = ["gathering_requirements", "defining_triggers", "generating_skill", "testing", "complete"];
    assert_eq!(states, expected);
}

/// E38, X7: `supervisor` is another word for it, and either names the agent whose file it is.
#[test]
fn e38_the_declaring_agent_coordinates_its_team() {
    for key in ["coordinator", "supervisor"] {
        let team = agent(&format!("team: {{members: [b, c], {key}: a}}")).team.expect("a team");
        assert_eq!(team.members, [name("b"), name("c")]);
        let draft = draft(&[("a", &format!("team: {{members: [b, c], {key}: b}}")), ("b", ""), ("c", "")]);
        let problem = &draft.problems()[0];
        assert_eq!(problem.message, "the agent that declares a team coordinates it: `a`, and not `b`");
        assert_eq!(problem.help, "remove it, or move `team:` to the file of `b`");
        assert_eq!(errors(&draft).len(), 1);
    }
}

/// X5: beside `router: true` the old word for sub-agents is an error, not a second list.
#[test]
fn x5_a_router_has_no_subagents() {
    let draft = draft(&[("a", "router: true\nagents: [b]\nsubagents: [c]"), ("b", ""), ("c", "")]);
    assert!(errors(&draft).iter().any(|error| error.contains("`subagents` is called `agents`")));
    assert!(draft.finish().is_err());
}

/// E7: what cannot be meant is said at once.
#[test]
fn e7_odd_teams_are_refused() {
    for (team, said) in [
        ("{members: [b, b]}", "`b` is in this list twice"),
        ("{members: [a, b]}", "a → a"),
        ("{members: [b, c], quorum: 3}", "2"),
        ("{members: [b, c], quorum: 0}", "1"),
        ("{members: [b, c], max_rounds: 0}", "1"),
        ("{members: [b]}", "at least two members"),
    ] {
        let draft = draft(&[("a", &format!("team: {team}")), ("b", ""), ("c", "")]);
        let found = errors(&draft);
        assert!(found.iter().any(|error| error.contains(said)), "{team}: {found:?}");
    }
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
    assert_eq!(agent.history, HistoryAccess::Last(4));
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
fn x5_agents_beside_own_destinations_are_callable() {
    let with_destinations = agent("router: {destinations: [b]}\nagents: [c]");
    assert_eq!(with_destinations.router.expect("a router").destinations, [name("b")]);
    assert_eq!(with_destinations.agents, [name("c")]);
    let without = agent("router: {may_answer: true}\nagents: [c]");
    assert_eq!(without.router.expect("a router").destinations, [name("c")]);
    assert!(without.agents.is_empty());
}

#[test]
fn a_star_is_every_other_agent_that_may_be_called() {
    let heads =
        [("a", "agents: ['*']"), ("b", "agents: [a, '*']"), ("c", "can_be_orchestrated: false"), ("d", "")];
    let draft = draft(&heads);
    assert_eq!(errors(&draft), [""; 0]);
    assert_eq!(draft.agent(&name("a")).unwrap().agent.agents, [name("b"), name("d")]);
    assert_eq!(draft.agent(&name("b")).unwrap().agent.agents, [name("a"), name("d")]);
    assert_eq!(draft.edges_of(&name("a")).count(), 2);
}

/// A key that was meant to be another one is an error that says which (contract, "Unknown key").
#[test]
fn near_misses_of_every_kind_of_key() {
    for (key, meant) in [
        ("advisor: []", "advisors"),
        ("maxTurn: 3", "max_turns"),
        ("permision: {}", "permission"),
        ("mode2: all", "mode"),
        ("subagent: []", "agents"),
        ("consults: []", "advisors"),
    ] {
        let draft = draft(&[("a", key)]);
        let found = errors(&draft);
        assert!(
            found.len() == 1 && found[0].contains(&format!("did you mean `{meant}`?")),
            "{key}: {found:?}"
        );
    }
    for spelling in ["readonly", "readOnly", "read_only"] {
        assert!(agent(&format!("{spelling}: true")).tools.read_only, "{spelling}");
    }
}

#[test]
fn names_of_the_wrong_form_are_reported_and_the_rest_is_read() {
    let found = errors(&draft(&[("a", "name: [a, b]\ndisplay_name: [x]\nhandoff: nobody")]));
    let expected = [
        "a.md:3:7: wrong-type: `name` is a list, and has to be text",
        "a.md:4:15: wrong-type: `display_name` is a list, and has to be text",
        "a.md:5:10: unknown-agent: no agent is called `nobody`",
    ];
    assert_eq!(found, expected);
    let found = errors(&draft(&[
        ("a", "name: -bad!\nhandoff: nobody"),
        ("b", "handoff: a"),
        ("-", "handoff: nobody"),
    ]));
    let rules: Vec<_> = found.iter().map(|error| error.split(": ").nth(1).unwrap()).collect();
    assert_eq!(rules, ["invalid-name", "unknown-agent", "invalid-name", "unknown-agent"], "{found:?}");
}

#[test]
fn a_state_with_a_bad_target_is_kept() {
    let head = "workflow:\n  states:\n    - {name: one, next: [BAD, two], on_failure: [x], run: read_file}\n    - {name: two}";
    let draft = draft(&[("a", head)]);
    let found = errors(&draft);
    assert!(
        found.len() == 2 && found[0].contains("invalid-name") && found[1].contains("wrong-type"),
        "{found:?}"
    );
    let workflow = draft.agent(&name("a")).unwrap().agent.workflow.clone().unwrap();
    assert_eq!(workflow.states.len(), 2);
    assert_eq!(workflow.states[0].next.len(), 1);
}

#[test]
fn a_state_runs_exactly_one_tool_that_exists() {
    for (tool, rule) in [
        ("read_*", "invalid-glob"),
        ("a b", "invalid-glob"),
        ("mcp:x", "invalid-glob"),
        ("mcp:nowhere/do", "unknown-server"),
        ("mcp:x/*", "invalid-glob"),
        ("nothing", "unknown-tool"),
    ] {
        let head = format!(
            "mcp_servers: {{x: {{command: x}}}}\nworkflow:\n  states: [{{name: one, run: \"{tool}\"}}]"
        );
        let found = errors(&draft(&[("a", &head)]));
        assert!(found.len() == 1 && found[0].contains(rule), "{tool}: {found:?}");
    }
    agent("mcp_servers: {x: {command: x}}\nworkflow:\n  states: [{name: one, run: \"mcp:x/do\"}]");
}

#[test]
fn permissions_of_opencode_become_approvals() {
    let deny = |head: &str| {
        let approvals = agent(head).approvals;
        assert!(approvals.ask.is_empty() && approvals.auto.is_empty(), "{head}");
        approvals.deny.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        deny("permission: {\"*\": deny, shell: deny, \"mcp_*\": deny, bash: deny}"),
        ["*", "shell", "mcp:*/*", "shell"]
    );
    assert_eq!(deny("permission: deny"), ["*"]);
    assert_eq!(agent("permission: ask").approvals.ask[0].as_str(), "*");
    let draft = draft(&[("a", "permission: {external_directory: deny}")]);
    assert_eq!(draft.problems()[0].rule, baton_agents::Rule::UnusedKey);
}

#[test]
fn keys_that_a_remote_agent_does_not_use_are_only_warned_about() {
    let head = "kind: remote\nagent_card_url: https://x.example/card.json\nrouter: true\nagents: [nobody]\n\
                tools: [nothing, \"a b\"]\nteam: {members: [a]}\ncollaborations: [nobody]\nworkflow: 3\nmodel: []";
    let draft = draft(&[("a", head)]);
    assert_eq!(errors(&draft), [""; 0]);
    assert!(draft.problems().iter().all(|problem| problem.rule == baton_agents::Rule::RemoteUnused));
    assert!(draft.edges().is_empty());
    let agent = &draft.agent(&name("a")).unwrap().agent;
    assert!(agent.router.is_none() && agent.team.is_none() && agent.tools.allow.is_empty());
}

#[test]
fn all_errors_of_a_schema_come_at_once() {
    let head = "output_schema:\n  type: objekt\n  properties: {a: {minLength: -1}}\n  required: yes";
    let found = errors(&draft(&[("a", head)]));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().any(|error| error.starts_with("a.md:4:9:")), "{found:?}");
    assert!(found.iter().any(|error| error.starts_with("a.md:5:31:")), "{found:?}");
}

/// A template that compiles and would fail in the first run is refused before.
#[test]
fn templates_use_what_exists() {
    let problems = |body: &str| {
        let head = "---\ndescription: x\nsanitize: true\n---\n";
        let source = baton_agents::SourceFile::new("a.md", format!("{head}{body}"));
        let draft = baton_agents::RosterDraft::parse(&[source], &KnownNames::default(), Vec::new());
        draft
            .problems()
            .iter()
            .map(|p| format!("{}:{} {}", p.severity, p.location.start().column, p.message))
            .collect::<Vec<_>>()
    };
    for (body, expected) in [
        ("x {{ user | uper }}", "error:13 no filter is called `uper`"),
        ("x {% if user is definde %}{% endif %}", "error:17 no test is called `definde`"),
        ("x {% if nope(1) %}{% endif %}", "error:9 no function is called `nope`"),
        ("x {{ nope(1) }}", "note:6 `nope` is not a variable of Baton: the text stays as it is"),
        ("x {% include 'y' %}", "error:6 a prompt cannot use `include`: there are no other templates"),
        ("{% import 'y' as z %}", "error:4 a prompt cannot use `import`: there are no other templates"),
        ("{% from 'y' import z %}", "error:4 a prompt cannot use `from`: there are no other templates"),
        ("{% extends 'y' %}", "error:4 a prompt cannot use `extends`: there are no other templates"),
        (
            "{% if usr %}{% endif %}",
            "warning:7 the template uses `usr`, which does not exist and prints nothing",
        ),
        (
            "a.usr {{ agent.usr }} {{ usr }}",
            "warning:26 `usr` is not a variable of Baton: the text stays as it is",
        ),
        (
            "{# usr #}{% raw %}{{ usr }}{% endraw %}{{ 'usr' ~ usr }}",
            "warning:51 `usr` is not a variable of Baton: the text stays as it is",
        ),
    ] {
        assert_eq!(problems(body), [expected], "{body}");
    }
    for body in [
        "{% for agent in agents if agent.name is defined %}{{ loop.index }}{{ agent.name | upper }}{% else %}-{% endfor %}",
        "{% macro hi(who='you') %}hi {{ who }}{% endmacro %}{{ hi(who=user) }}{% set x = range(3) | list %}{{ x[0] }}",
        "{% set ns = namespace(n=0) %}{{ ns.n }}{% with a = 1 %}{{ a is not none }}{% endwith %}",
        "{% filter upper %}x{% endfilter %}{{ {'is': 1}.is }} { x } {{ [1, 2] | join(', ') }} {{ user if user else tenant }}",
    ] {
        assert_eq!(problems(body), [""; 0], "{body}");
    }
    let many: String = (0..100).map(|at| format!("{{{{ v{at} }}}}")).collect();
    let found = problems(&many);
    assert_eq!(found.len(), 21);
    assert!(found[20].contains("80 more names"), "{found:?}");
    let found = problems(&format!("{many}{{{{ user | uper }}}}"));
    assert!(found.iter().any(|problem| problem.contains("`uper`")), "{found:?}");
}

#[test]
fn conditions_see_output_input_and_user() {
    for (condition, expected) in [
        ("'x' in ouput", "the condition uses `ouput`, which does not exist"),
        ("tenant == 'x'", "the condition uses `tenant`, which does not exist"),
        ("output | nope", "no filter is called `nope`"),
        ("output is nope", "no test is called `nope`"),
        ("nope(output)", "no function is called `nope`"),
    ] {
        let found =
            errors(&draft(&[("a", &format!("handoff: [{{to: b, when: \"{condition}\"}}]")), ("b", "")]));
        assert!(
            found.len() == 1 && found[0].contains("invalid-expression") && found[0].contains(expected),
            "{found:?}"
        );
    }
    for condition in [
        "output.x[input] and user not in ['a'] or output | length > range(3) | max",
        "not (output is none)",
        "true",
    ] {
        agent(&format!("handoff: [{{to: b, when: \"{condition}\"}}]"));
    }
}

#[test]
fn collaborators_are_found_inside_their_markup() {
    let text = "---\ndescription: x\n---\n~~~~\n~~~\n**Collaborations**: In Code\n~~~~\n**Collaborations**: `nobody`, **No One** (x)\n";
    let source = baton_agents::SourceFile::new("a.md", text);
    let draft = baton_agents::RosterDraft::parse(&[source], &KnownNames::default(), Vec::new());
    assert_eq!(
        errors(&draft),
        [
            "a.md:8:22: unknown-agent: no agent is called `nobody`",
            "a.md:8:33: unknown-agent: no agent is called `No One`"
        ]
    );
}

/// Nothing that a report can print repeats a secret, whatever else is wrong with the file.
#[test]
fn no_problem_repeats_a_secret() {
    for head in [
        "kind: remote\nauth: {type: bearer, token: hunter2}",
        "kind: remote\nauth: {type: bearer, token: hunter2}\nauth: {type: bearer, token: hunter2}",
        "auth: {type: bearer, token: hunter2}",
        "kind: remote\nauth: {type: bearr, token: hunter2}",
        "kind: remote\nauth: {token: hunter2}",
        "kind: remote\nauth: {type: bearer, tokn: hunter2}",
        "kind: remote\nauth: {type: hunter2}",
        "kind: remote\nauth: hunter2",
        "kind: remote\nauth:\n  type: basic\n  password: hunter2: abc",
        "kind: remote\nauth:\n  type: basic\n  password: |\n    hunter2\n    more\nbad: [",
        "kind: remote\nauth: {type: basic, password: hunter2: [",
        "x: &secret hunter2\nkind: remote\nauth: {type: basic, password: *secret}\ny: 1",
        "mcp_servers:\n  x: {command: x, env: {API_KEY: hunter2}, nonsense: 1}",
        "mcp_servers: {x: {url: 1, command: x, headers: {Authorization: Bearer hunter2}}}",
    ] {
        let draft = draft(&[("a", head)]);
        assert!(!draft.problems().is_empty(), "{head}");
        for problem in draft.problems() {
            let places = problem.related.iter().map(|related| &related.location).chain([&problem.location]);
            let mut quoted: Vec<&str> = places.map(|place| place.source.text.as_str()).collect();
            quoted.extend([problem.message.as_str(), problem.help.as_str()]);
            // `type: hunter2` is a short word in a place where no secret stands.
            let is_word = head.ends_with("{type: hunter2}");
            assert!(is_word || quoted.iter().all(|text| !text.contains("hunter2")), "{head}: {problem}");
        }
    }
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
        baton_agents::SourceFile::new(
            "sre.md",
            "---\ndescription: Keeps things running.\n---\n**Collaborations**: Security Specialist (reviews, audits), dba\n\n```\n**Collaborations**: Nobody\n```\n",
        ),
        baton_agents::SourceFile::new("security_specialist.md", "---\ndescription: Secures.\n---\nSecure.\n"),
        baton_agents::SourceFile::new("dba.md", "---\ndescription: Stores.\n---\nStore.\n"),
    ];
    let draft = baton_agents::RosterDraft::parse(&sources, &KnownNames::default(), Vec::new());
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
        |draft: &baton_agents::RosterDraft| draft.problems().iter().map(|p| p.severity).collect::<Vec<_>>();
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
    let load = || Roster::load(&[dir.path().to_owned()], &KnownNames::default(), Strictness::Lenient);
    assert_eq!(load().unwrap_err().problems.len(), 2);
    write("one.md", "---\ndescription: One.\nhandoff: two\n---\nOne.\n");
    write("deep/er/two.md", "---\ndescription: Two.\n---\nTwo.\n");
    let roster = load().unwrap();
    assert_eq!(roster.len(), 2);
    assert_eq!(roster.nearest("tow"), [name("two")]);
    assert!(roster.graph().agents.iter().any(|node| node.id == name("two") && node.terminal));
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_read_is_named_and_the_rest_goes_on() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let locked = dir.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::write(dir.path().join("a.md"), "---\ndescription: A.\n---\nA.\n").unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
    let draft = baton_agents::RosterDraft::read(&[dir.path().to_owned()], &KnownNames::default());
    // The superuser reads everything.
    if std::fs::read_dir(&locked).is_err() {
        assert_eq!(draft.problems().len(), 1);
        assert_eq!(draft.problems()[0].location.path(), locked);
    }
    assert!(draft.agent(&name("a")).is_some());
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_folder_in_two_spellings_is_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.md"), "---\ndescription: A.\n---\nA.\n").unwrap();
    let dirs = [
        dir.path().to_owned(),
        dir.path().join("."),
        dir.path().join("../").join(dir.path().file_name().unwrap()),
    ];
    assert_eq!(Roster::load(&dirs, &KnownNames::default(), Strictness::Lenient).unwrap().len(), 1);
}

#[test]
fn a_missing_or_empty_folder_says_so() {
    let missing =
        Roster::load(&[PathBuf::from("/nowhere/agents")], &KnownNames::default(), Strictness::Lenient);
    let error = missing.unwrap_err().to_string();
    assert!(error.contains("/nowhere/agents") && error.contains("agents.dirs"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error =
        Roster::load(&[empty.path().to_owned()], &KnownNames::default(), Strictness::Lenient).unwrap_err();
    assert!(error.to_string().contains("baton init"), "{error}");
}

/// D11: a remote agent may use the client credentials grant.
#[test]
fn oauth2_credentials_are_read() {
    let card = "kind: remote\nagent_card_url: https://x.example/card.json\n";
    let auth = "auth: {type: oauth2, token_url: https://login.example/token, client_id: baton, client_secret: $S, scopes: [a, b]}";
    let valid = draft(&[("far", &format!("{card}{auth}"))]);
    assert_eq!(errors(&valid), [""; 0]);
    for (auth, expected) in [
        ("auth: {type: oauth2, client_id: baton, client_secret: $S}", "`auth` needs `token_url`"),
        (
            "auth: {type: oauth2, token_url: nowhere, client_id: baton, client_secret: $S}",
            "not an http or https URL",
        ),
        (
            "auth: {type: oauth2, token_url: https://x.example, client_id: b, client_secret: hunter2}",
            "a secret is named",
        ),
    ] {
        let found = errors(&draft(&[("far", &format!("{card}{auth}"))]));
        assert!(found.iter().any(|message| message.contains(expected)), "{found:?}");
        assert!(!format!("{found:?}").contains("hunter2"));
    }
}
