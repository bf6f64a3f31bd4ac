//! Patterns inside patterns, with everybody well and with a failing leaf at each level.

use baton_core::HumanDuration;
use baton_core::agent::{Advisor, Advisors, Destination, Quorum, Router, RoutingMode, Team, TerminationMode};
use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::message::{Part, Visibility};
use baton_core::model::ModelErrorKind;
use baton_core::store::RunStatus;
use baton_models::scripted::{RecordedRequest, Scripted, ScriptedTurn};
use serde_json::json;

use super::{Ran, Setup, name};

fn to(agent: &str) -> Vec<Destination> {
    vec![Destination { to: name(agent), when: None }]
}

fn advisors(agents: &[&str]) -> Advisors {
    let timeout = HumanDuration::from_secs(60);
    let advisor = |agent: &&str| Advisor { agent: name(agent), required: false, timeout };
    Advisors { agents: agents.iter().map(advisor).collect(), ..Advisors::default() }
}

fn team(members: &[&str]) -> Team {
    Team {
        members: members.iter().map(|member| name(member)).collect(),
        termination_mode: TerminationMode::MaxRounds,
        max_rounds: 1,
        quorum: Quorum::All,
        member_timeout: HumanDuration::from_secs(60),
    }
}

fn router(destinations: &[&str]) -> Router {
    let destinations = destinations.iter().map(|destination| name(destination)).collect();
    Router { mode: RoutingMode::Pure, destinations, fallback: None, may_answer: false }
}

fn call(specialist: &str) -> ScriptedTurn {
    ScriptedTurn::call("call_agent", &json!({"mission": "Look it up.", "specialist": specialist}))
}

/// What the person saw.
fn seen(ran: &Ran) -> Vec<&str> {
    let texts = ran.events.iter().filter(|event| event.visibility == Visibility::User);
    let texts = texts.filter_map(|event| match &event.kind {
        EventKind::TextFinished { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Everything an agent was told in one of its calls.
fn told(asked: &RecordedRequest) -> String {
    let texts = asked.messages.iter().map(|message| match message {
        ChatMessage::User { parts } => parts
            .iter()
            .filter_map(|part| if let Part::Text { text } = part { Some(text.clone()) } else { None })
            .collect(),
        ChatMessage::Assistant(reply) => reply.text.clone(),
        ChatMessage::Tool(result) => result.content.to_string(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn asked(model: &Scripted, agent: &str) -> Vec<String> {
    model.asked().iter().filter(|asked| asked.agent == agent).map(told).collect()
}

/// The sum of rows, and that the script was played to its end.
fn check(ran: &Ran, model: &Scripted) {
    let mut total = baton_core::Usage::default();
    for row in &ran.end.rows {
        total += row.usage();
    }
    assert_eq!(ran.end.usage, total);
    let (EventKind::RunFinished { by_agent, .. } | EventKind::RunFailed { by_agent, .. }) =
        &ran.events.last().unwrap().kind
    else {
        panic!("no end");
    };
    let mut shares = baton_core::Usage::default();
    for share in by_agent {
        let rows = ran.end.rows.iter().filter(|row| row.agent == share.agent);
        let own = rows.fold(baton_core::Usage::default(), |mut own, row| {
            own += row.usage();
            own
        });
        assert_eq!(share.usage, own, "{}", share.agent);
        shares += own;
    }
    assert_eq!(shares, total, "everybody who took something is named");
    assert!(by_agent.is_sorted_by(|a, b| a.agent < b.agent), "{by_agent:?}");
    assert_eq!(model.left(), 0, "somebody was not asked\n{}", ran.log());
}

/// One agent, `x`, in every place that a file can give it, and what its model was asked there first.
async fn in_every_place() -> Vec<(&'static str, RecordedRequest)> {
    let route = ScriptedTurn::call("route_to", &json!({"agent": "x", "reason": "theirs"}));
    let says = || ScriptedTurn::text("Said.");
    let mut all = Vec::new();
    for place in ["advisor", "stage", "destination", "member"] {
        let model = Scripted::default().script("x", [says()]).script("y", [says()]);
        let model = model.script("a", [if place == "destination" { route.clone() } else { says() }]);
        let setup = Setup::new(&model).with("x", |_| {}).with("y", |_| {}).agent(|a| match place {
            "advisor" => a.advisors = advisors(&["x"]),
            "stage" => a.handoff = to("x"),
            "destination" => a.router = Some(router(&["x"])),
            _ => a.team = Some(team(&["x", "y"])),
        });
        assert_eq!(setup.run().await.answer(), "Said.", "{place}");
        all.push((place, model.asked().into_iter().find(|asked| asked.agent == "x").unwrap()));
    }
    all
}

/// E1: the walk is around the session, which is the same wherever it is held: same prompt, same tools, one message. Only the
/// channel of a team is something that its members are given.
#[tokio::test]
async fn e1_session_is_independent_of_its_pattern() {
    let model = Scripted::default().script("x", [ScriptedTurn::text("Said.")]);
    let mut alone = Setup::new(&model);
    alone.agent = crate::named("x");
    alone.run().await;
    let alone = model.asked().remove(0);
    for (place, asked) in in_every_place().await {
        let own = |tool: &&String| !["broadcast", "vote_conclude"].contains(&tool.as_str());
        let tools: Vec<_> = asked.tools.iter().filter(own).collect();
        assert_eq!((&asked.system, tools), (&alone.system, alone.tools.iter().collect()), "{place}");
        assert_eq!(asked.tools.len(), alone.tools.len() + if place == "member" { 2 } else { 0 }, "{place}");
        assert_eq!((asked.messages.len(), asked.output_schema), (1, false), "{place}");
        assert!(told(&asked).contains("What is up?"), "{place}");
    }
}

/// E2: each file says what its own agent does; whoever declares nothing runs as if the others declared nothing either.
#[tokio::test]
async fn e2_agent_without_patterns_is_unaffected_by_others() {
    let run = async |others: bool| {
        let model = Scripted::default().script("a", [ScriptedTurn::text("Said.").tokens(3, 1)]);
        let mut setup = Setup::new(&model);
        if others {
            setup = setup
                .with("lead", |lead| lead.team = Some(team(&["a", "last"])))
                .with("advised", |advised| advised.advisors = advisors(&["a"]))
                .with("desk", |desk| desk.router = Some(router(&["a"])))
                .with("first", |first| first.handoff = to("a"))
                .with("last", |_| {});
        }
        let ran = setup.run().await;
        let asked = model.asked();
        assert_eq!(asked.len(), 1);
        (ran.log(), ran.ledger(), asked[0].system.clone(), asked[0].tools.clone(), told(&asked[0]))
    };
    assert_eq!(run(true).await, run(false).await);
}

/// E10, I5: advisors come before the session, the chain after it.
#[tokio::test]
async fn i5_advisors_then_chain() {
    let model = Scripted::default()
        .script("legal", [ScriptedTurn::text("Mind the law.")])
        .script("a", [ScriptedTurn::text("A draft.")])
        .script("editor", [ScriptedTurn::text("The final text.")]);
    let setup = Setup::new(&model).agent(|a| {
        a.advisors = advisors(&["legal"]);
        a.handoff = to("editor");
    });
    let ran = setup.with("legal", |_| {}).with("editor", |_| {}).run().await;
    assert_eq!((ran.answer(), seen(&ran)), ("The final text.", vec!["The final text."]));
    assert!(
        asked(&model, "a")[0].contains("Mind the law.") && asked(&model, "editor")[0].contains("A draft.")
    );
    assert!(!asked(&model, "editor")[0].contains("Mind the law."), "advice is for the one who asked for it");
    check(&ran, &model);
    insta::assert_snapshot!(ran.by_place());
}

/// E9, X6b, I5: the destination's chain first, the router's own last.
#[tokio::test]
async fn i5_router_with_a_chain_runs_its_own_chain_last() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::call("route_to", &json!({"agent": "b", "reason": "it is theirs"}))])
        .script("b", [ScriptedTurn::text("From b.")])
        .script("c", [ScriptedTurn::text("From c.")])
        .script("last", [ScriptedTurn::text("The last word.")]);
    let setup = Setup::new(&model).agent(|a| {
        a.router = Some(router(&["b"]));
        a.handoff = to("last");
    });
    let ran = setup.with("b", |b| b.handoff = to("c")).with("c", |_| {}).with("last", |_| {}).run().await;
    assert_eq!((ran.answer(), seen(&ran)), ("The last word.", vec!["The last word."]));
    assert!(asked(&model, "last")[0].contains("From c.") && !asked(&model, "last")[0].contains("From b."));
    check(&ran, &model);
    insta::assert_snapshot!(ran.by_place());
}

/// E9, X8, I5: the end of a member's chain speaks for it.
#[tokio::test]
async fn i5_last_stage_of_a_members_chain_speaks_for_it() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::text("A rough idea.")])
        .script("polish", [ScriptedTurn::text("A polished idea.")])
        .script("c", [ScriptedTurn::text("Another idea.")])
        .script("a", [ScriptedTurn::text("We decided.")]);
    let setup = Setup::new(&model).agent(|a| a.team = Some(team(&["b", "c"])));
    let ran =
        setup.with("b", |b| b.handoff = to("polish")).with("polish", |_| {}).with("c", |_| {}).run().await;
    assert_eq!(seen(&ran), ["We decided."]);
    let coordinator = asked(&model, "a").pop().unwrap();
    assert!(
        coordinator.contains("A polished idea.") && coordinator.contains("Another idea."),
        "{coordinator}"
    );
    assert!(!coordinator.contains("A rough idea."), "{coordinator}");
    check(&ran, &model);
    insta::assert_snapshot!(ran.by_place());
}

/// Delegation inside a team inside a chain.
fn nested(leaf: ScriptedTurn) -> (Scripted, Setup) {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("The request, in order.")])
        .script(
            "b",
            [
                ScriptedTurn::call("delegate", &json!({"agents": ["x", "y"], "message": "Look it up."})),
                ScriptedTurn::text("Both looked."),
            ],
        )
        .script("x", [ScriptedTurn::text("From x.")])
        .script("y", [leaf])
        .script("c", [ScriptedTurn::text("No idea.")])
        .script("lead", [ScriptedTurn::text("The panel's verdict.")]);
    let setup = Setup::new(&model)
        .agent(|a| a.handoff = to("lead"))
        .with("lead", |lead| lead.team = Some(team(&["b", "c"])))
        .with("b", |b| b.agents = vec![name("x"), name("y")])
        .with("c", |_| {})
        .with("x", |_| {})
        .with("y", |_| {});
    (model, setup)
}

#[tokio::test]
async fn e20_delegation_inside_a_team_inside_a_chain() {
    let (model, setup) = nested(ScriptedTurn::text("From y."));
    let ran = setup.run().await;
    assert_eq!(seen(&ran), ["The panel's verdict."]);
    let second = asked(&model, "b").pop().unwrap();
    assert!(second.contains("From x.") && second.contains("From y."), "{second}");
    check(&ran, &model);
    insta::assert_snapshot!(ran.by_place());
}

#[tokio::test]
async fn e29_failing_leaf_affects_only_itself() {
    let (model, setup) = nested(ScriptedTurn::error(ModelErrorKind::Auth));
    let ran = setup.run().await;
    assert_eq!(ran.end.status, RunStatus::Completed);
    assert_eq!(seen(&ran), ["The panel's verdict."]);
    let second = asked(&model, "b").pop().unwrap();
    assert!(second.contains("From x.") && second.contains("\"failed\""), "{second}");
    check(&ran, &model);
}

/// Three calls deep; `fails` is the level whose own last turn fails, counted from the top.
async fn three_deep(fails: Option<usize>) -> (Scripted, Ran) {
    let last = |level: usize, text: &str| match fails {
        Some(failing) if failing == level => ScriptedTurn::error(ModelErrorKind::Auth),
        _ => ScriptedTurn::text(text),
    };
    let model = Scripted::default()
        .script("a", [call("b"), last(0, "Top.")])
        .script("b", [call("c"), last(1, "Middle.")])
        .script("c", [call("d"), last(2, "Lower.")])
        .script("d", [last(3, "Leaf.")]);
    let setup = Setup::new(&model)
        .agent(|a| a.agents = vec![name("b")])
        .with("b", |b| b.agents = vec![name("c")])
        .with("c", |c| c.agents = vec![name("d")])
        .with("d", |_| {});
    let ran = setup.run().await;
    check(&ran, &model);
    (model, ran)
}

/// F19, F24
#[tokio::test]
async fn f19_calls_nest_three_deep() {
    let (model, ran) = three_deep(None).await;
    assert_eq!((ran.answer(), seen(&ran)), ("Top.", vec!["Top."]));
    for (agent, heard) in [("a", "Middle."), ("b", "Lower."), ("c", "Leaf.")] {
        assert!(asked(&model, agent)[1].contains(heard), "{agent}");
    }
    insta::assert_snapshot!(ran.by_place());
}

/// F5, X24: whoever fails, the one above is told and goes on; only the top's own failure is the run's.
#[tokio::test]
async fn x24_failure_is_reported_to_the_level_above() {
    for (level, above) in [(1, "a"), (2, "b"), (3, "c")] {
        let (model, ran) = three_deep(Some(level)).await;
        assert_eq!(ran.end.status, RunStatus::Completed, "level {level}");
        let heard = asked(&model, above)[1].clone();
        assert!(
            heard.contains("\"success\":false") && heard.contains("Sub-agent execution failed"),
            "{heard}"
        );
    }
    let (_, ran) = three_deep(Some(0)).await;
    assert_eq!((ran.end.status, seen(&ran).len()), (RunStatus::Failed, 0));
}

/// E16, I5: in a chain the failure names its stage, wherever it is.
#[tokio::test]
async fn i5_errors_propagate_through_compositions() {
    for failing in ["b", "c"] {
        let turn = |agent: &str| {
            if agent == failing {
                ScriptedTurn::error(ModelErrorKind::Auth)
            } else {
                ScriptedTurn::text("Said.")
            }
        };
        let model = Scripted::default()
            .script("a", [ScriptedTurn::call("route_to", &json!({"agent": "b", "reason": "theirs"}))])
            .script("b", [turn("b")])
            .script("c", [turn("c")]);
        let setup = Setup::new(&model).agent(|a| a.router = Some(router(&["b"])));
        let ran = setup.with("b", |b| b.handoff = to("c")).with("c", |_| {}).run().await;
        assert_eq!(ran.end.status, RunStatus::Failed);
        let message = ran.end.failure.as_ref().unwrap().to_string();
        assert!(message.contains(&format!("`{failing}`")), "{message}");
        assert_eq!(seen(&ran).len(), 0);
    }
}
