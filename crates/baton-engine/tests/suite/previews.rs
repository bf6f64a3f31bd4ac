//! X33: what `preview` shows is what a model is really asked in a run, word for word apart from marks and times.

use baton_core::AgentName;
use baton_core::agent::{
    Advisor, Advisors, Collaboration, Destination, HistoryAccess, Quorum, Router, RoutingMode, Team,
    TerminationMode,
};
use baton_core::chat::ChatMessage;
use baton_core::message::Part;
use baton_core::store::RunStatus;
use baton_engine::{Engine, Preview, PreviewedSession, Via, placeholder, preview};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::handoffs::{self, Talk};
use super::{Setup, name};

const QUESTION: &str = "Ask ada@example.com what is up.";

/// Without what is drawn anew for each message.
fn plain(text: &str) -> String {
    let is_nonce = |word: &str| word.len() == 16 && word.chars().all(|c| c.is_ascii_hexdigit());
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let words = words.map(|piece| {
        let word = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if is_nonce(word) { piece.replace(word, "NONCE") } else { piece.to_owned() }
    });
    let lines = words.collect::<String>();
    let lines = lines.lines().map(|line| match line.split_once(", 20") {
        Some((before, _)) if line.starts_with("###") => before.to_owned(),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The last thing that somebody was told in a session of theirs: its task.
fn task(messages: &[ChatMessage]) -> String {
    let parts = messages.iter().rev().find_map(|message| match message {
        ChatMessage::User { parts } => Some(parts),
        _ => None,
    });
    let texts = parts.into_iter().flatten().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Runs it, and looks at what `agent` would get.
async fn both(
    model: &Scripted,
    setup: Setup,
    agent: &str,
    from: Option<(&AgentName, Via)>,
) -> (Preview, Vec<baton_models::scripted::RecordedRequest>) {
    let (parts, request) = setup.asked(QUESTION).parts().await;
    let engine = Engine::new(parts);
    let shown = preview(&engine, &request.caller, &name(agent), from, QUESTION).await.unwrap();
    let mut run = engine.start(request).await.unwrap();
    while run.events.recv().await.is_some() {}
    let end = run.join().await;
    assert_eq!(end.status, RunStatus::Completed, "{:?}", end.failure);
    (shown, model.asked().into_iter().filter(|asked| asked.agent == agent).collect())
}

fn same(shown: &PreviewedSession, asked: &baton_models::scripted::RecordedRequest) {
    assert_eq!(plain(&shown.message), plain(&task(&asked.messages)));
    assert_eq!(shown.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>(), asked.tools);
}

/// The preview of `b` is what `b` is asked first.
async fn check(model: Scripted, via: Via, change: impl FnOnce(Setup) -> Setup) -> String {
    let (shown, asked) = both(&model, change(Setup::new(&model)), "b", Some((&name("a"), via))).await;
    assert_eq!(shown.system, asked[0].system);
    same(&shown.asked, &asked[0]);
    assert_eq!(shown.deciding, None);
    shown.asked.message
}

fn by_a(does: &str) -> String {
    placeholder(&name("a"), does)
}

#[tokio::test(start_paused = true)]
async fn preview_of_a_called_or_delegated_agent() {
    for (via, tool, arguments) in [
        (Via::Call, "call_agent", json!({"mission": QUESTION, "specialist": "b"})),
        (Via::Delegate, "delegate", json!({"message": QUESTION, "agents": ["b"]})),
    ] {
        let model = Scripted::default()
            .script("a", [ScriptedTurn::call(tool, &arguments), ScriptedTurn::text("Done.")])
            .script("b", [ScriptedTurn::text("Mine.")]);
        let setup = |setup: Setup| setup.agent(|a| a.agents = vec![name("b")]).with("b", |_| ());
        let message = check(model, via, setup).await;
        assert!(message.ends_with("what is up.") && !message.contains("ada@example.com"), "{message}");
    }
}

fn advised_by(agent: &str) -> Advisors {
    let timeout = baton_core::HumanDuration::from_secs(10);
    let agents = vec![Advisor { agent: name(agent), timeout, required: false }];
    Advisors { agents, ..Advisors::default() }
}

#[tokio::test(start_paused = true)]
async fn preview_of_an_advisor_and_its_agent() {
    let script = || {
        let advice = placeholder(&name("b"), "advises");
        Scripted::default()
            .script("b", [ScriptedTurn::text(&advice)])
            .script("a", [ScriptedTurn::text("Done.")])
    };
    let setup = |setup: Setup| setup.agent(|a| a.advisors = advised_by("b")).with("b", |_| ());
    check(script(), Via::Advisor, setup).await;
    let model = script();
    let (shown, asked) = both(&model, setup(Setup::new(&model)), "a", None).await;
    same(&shown.asked, &asked[0]);
    assert!(shown.asked.message.contains("[what b advises]"), "{}", shown.asked.message);
}

#[tokio::test(start_paused = true)]
async fn preview_of_an_advised_chain_stage() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text(&by_a("answers"))])
        .script("c", [ScriptedTurn::text(&placeholder(&name("c"), "advises"))])
        .script("b", [ScriptedTurn::text("Done.")]);
    let setup = |setup: Setup| {
        let setup = setup.agent(|a| a.handoff = vec![Destination { to: name("b"), when: None }]);
        setup.with("b", |b| b.advisors = advised_by("c")).with("c", |_| ())
    };
    let message = check(model, Via::Handoff, setup).await;
    assert!(message.contains("## ANSWER SO FAR") && message.contains("[what c advises]"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn preview_of_a_router_and_its_destination() {
    for mode in [RoutingMode::Pure, RoutingMode::Full] {
        let model = || {
            let choice = json!({"agent": "b", "reason": "It fits."});
            Scripted::default()
                .script("a", [ScriptedTurn::call("route_to", &choice)])
                .script("b", [ScriptedTurn::text("Done.")])
        };
        let setup = |setup: Setup| {
            let router = Router { mode, destinations: vec![name("b")], fallback: None, may_answer: false };
            setup.tool(super::TestTool::echo("look")).agent(|a| a.router = Some(router)).with("b", |_| ())
        };
        check(model(), Via::Route, setup).await;
        let model = model();
        let (shown, asked) = both(&model, setup(Setup::new(&model)), "a", None).await;
        same(&shown.asked, &asked[0]);
        assert!(shown.asked.tools.iter().any(|tool| tool.name == "route_to"));
        assert_eq!(shown.asked.tools.len() > 1, mode == RoutingMode::Full);
    }
}

#[tokio::test(start_paused = true)]
async fn preview_of_a_transfer_target() {
    for history in [HistoryAccess::Conversation, HistoryAccess::Brief, HistoryAccess::Summary] {
        let reason = json!({"reason": by_a("gives as its reason")});
        let model = Scripted::default()
            .script("a", [ScriptedTurn::text(&by_a("found out")).and_call("transfer_to_b", &reason)])
            .script("b", [ScriptedTurn::text("Done.")]);
        let setup = |setup: Setup| {
            let b = Collaboration { agent: name("b"), when: None, allow_revisit: 0 };
            let setup = setup.agent(|a| {
                a.collaborations = vec![b];
                a.history = history;
            });
            setup.with("b", |_| ())
        };
        let message = check(model, Via::Transfer, setup).await;
        assert!(
            message.contains("## PASSED ON TO YOU") && message.contains("[what a found out]"),
            "{message}"
        );
    }
}

fn team(termination_mode: TerminationMode) -> Team {
    let members = vec![name("b"), name("c")];
    let member_timeout = baton_core::HumanDuration::from_secs(60);
    Team { members, termination_mode, max_rounds: 2, quorum: Quorum::All, member_timeout }
}

fn members(model: Scripted) -> Scripted {
    ["b", "c"].into_iter().fold(model, |model, member| {
        let said = placeholder(&name(member), "said");
        let vote = json!({"ready": true, "reason": said});
        let turn =
            ScriptedTurn::call("broadcast", &json!({"message": said})).and_call("vote_conclude", &vote);
        model.script(member, [turn, ScriptedTurn::text(&said)])
    })
}

#[tokio::test(start_paused = true)]
async fn preview_of_team_members_and_coordinator() {
    for mode in [TerminationMode::CoordinatorDecides, TerminationMode::Consensus] {
        let model = || {
            let model = members(Scripted::default());
            let conclude = ScriptedTurn::call("conclude_team", &json!({"summary": by_a("said")}));
            let decides = (mode == TerminationMode::CoordinatorDecides).then_some(conclude);
            model.script("a", decides).script("a", [ScriptedTurn::text("Done.")])
        };
        let setup = |setup: Setup| {
            let setup = setup.agent(|a| a.team = Some(team(mode)));
            setup.tool(super::TestTool::echo("look")).with("b", |_| ()).with("c", |_| ())
        };
        let message = check(model(), Via::Member, setup).await;
        assert!(message.contains("## REQUEST") && message.contains("round 1 of at most 2"), "{message}");
        let model = model();
        let (shown, asked) = both(&model, setup(Setup::new(&model)), "a", None).await;
        same(&shown.asked, asked.last().unwrap());
        assert_eq!(shown.deciding.is_some(), mode == TerminationMode::CoordinatorDecides);
        assert_eq!(asked.len(), if shown.deciding.is_some() { 2 } else { 1 });
        if let Some(deciding) = &shown.deciding {
            same(deciding, &asked[0]);
        }
    }
}

/// An agent that takes the thread over has a lease, and with it the tools of a holder and its workflow.
#[tokio::test]
async fn preview_of_a_holder_with_a_workflow() {
    let reason = json!({"reason": by_a("gives as its reason")});
    let ask = ScriptedTurn::text(&by_a("found out")).and_call("transfer_to_maker", &reason);
    let record = ScriptedTurn::call("advance_workflow", &json!({"values": {"name": "Alert"}}));
    let model = Scripted::default()
        .script("a", [ask])
        .script("maker", [ScriptedTurn::text("What name?"), record, ScriptedTurn::text("Done.")]);
    let talk = Talk::new(handoffs::setup(&model)).await;
    let (caller, maker) = (&talk.request.caller, name("maker"));
    let engine = &talk.engine;
    let asked = || model.asked().into_iter().filter(|asked| asked.agent == "maker").collect::<Vec<_>>();

    let from = Some((&talk.request.agent, Via::Transfer));
    let shown = preview(engine, caller, &maker, from, QUESTION).await.unwrap();
    assert_eq!(talk.say(QUESTION).await.end.status, RunStatus::Completed);
    assert_eq!(shown.system, asked()[0].system);
    same(&shown.asked, &asked()[0]);
    assert!(shown.asked.message.contains("You are at step 1 of 2"), "{}", shown.asked.message);
    let tools: Vec<&str> = shown.asked.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["advance_workflow", "complete_handoff", "decline_handoff"]);

    let shown = preview(engine, caller, &maker, None, "Alert.").await.unwrap();
    talk.say("Alert.").await;
    assert_eq!(shown.system, asked()[1].system);
    same(&shown.asked, &asked()[1]);
}
