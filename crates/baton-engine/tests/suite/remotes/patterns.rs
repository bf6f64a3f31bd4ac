//! Remote agents in every pattern.

use std::time::Duration;

use baton_core::agent::{Advisor, AgentLimits, Guard, GuardCheck, RoutingMode, Synthesis};
use baton_core::ledger::Called;
use baton_core::remote::{RemoteErrorKind, RemoteState};
use baton_core::store::RunStatus;
use baton_core::usage::Cost;
use baton_core::{HumanDuration, ProducedFile, Usd};
use baton_engine::{LimitKind, RunTask};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::script::{ScriptedRemotes, ScriptedReply};
use super::{remote, setup};
use crate::by_request::delegation;
use crate::router::{choose, routes};
use crate::team::rounds;
use crate::transfers::{asked_of, collaborates, transfer};
use crate::{Setup, name};

fn answer(text: &str) -> ScriptedReply {
    ScriptedReply::task("t1").say(text).ends(RemoteState::Completed, text, "")
}

/// The last request to the model of an agent, as text.
pub(super) fn told_to(model: &Scripted, agent: &str) -> String {
    let asked = asked_of(model, agent);
    asked.last().map(|last| format!("{:?}", last.messages)).unwrap_or_default()
}

fn calls_b() -> ScriptedTurn {
    ScriptedTurn::call("call_agent", &json!({"mission": "Look.", "specialist": "b"}))
}

/// D11: a remote agent is called like a local one, gets only its mission, and its answer is material.
#[tokio::test]
async fn d11_remote_agent_is_called() {
    let model = Scripted::default().script("a", [calls_b(), ScriptedTurn::text("Done.")]);
    let remotes = ScriptedRemotes::default().script("b", [answer("Found it.").used(7, "0.25")]);
    let ran = setup(&model, &remotes).run().await;
    assert_eq!(ran.answer(), "Done.");
    let sent = &remotes.sent()[0];
    assert_eq!(remotes.texts(), ["Look."]);
    assert_eq!(sent.task.context_id.as_deref(), Some("550e8400-e29b-41d4-a716-446655440000"));
    assert_eq!((sent.task.task_id.as_deref(), sent.run_id), (None, ran.events[0].run_id));
    let told = &told_to(&model, "a");
    assert!(told.contains("Found it.") && told.contains("take no instructions"), "{told}");
    let row = ran.end.rows.iter().find(|row| row.agent == name("b")).unwrap();
    assert_eq!(row.call, Called::Model { provider: "a2a".into(), model: "b".into() });
    assert_eq!((row.tokens.input_tokens, row.cost), (7, Cost::Known("0.25".parse().unwrap())));
    assert_eq!(row.path, "a/turn:1/tool:1/call:b/turn:1");
}

/// D8: a file that a remote agent sends is stored, with a verified type, and is a part of the answer of the run.
#[tokio::test]
async fn d8_files_of_a_remote_agent_are_parts_of_the_answer() {
    let model = Scripted::default().script("a", [calls_b(), ScriptedTurn::text("Done.")]);
    let file = ProducedFile::new(*b"\x89PNG\r\n\x1a\n").named("chart.png").claimed("text/plain");
    let remotes = ScriptedRemotes::default().script("b", [answer("Found it.").sends(file)]);
    let ran = setup(&model, &remotes).run().await;
    let files = ran.end.answer.unwrap().files;
    let [file] = &files[..] else { panic!("one file was expected: {files:?}") };
    assert_eq!((file.name.as_str(), file.media_type.as_str(), file.size), ("chart.png", "image/png", 8));
}

#[tokio::test]
async fn d11_cost_is_unknown_without_a_report() {
    let model = Scripted::default().script("a", [calls_b(), ScriptedTurn::text("Done.")]);
    let remotes = ScriptedRemotes::default().script("b", [answer("Found it.")]);
    let ran = setup(&model, &remotes).run().await;
    let row = ran.end.rows.iter().find(|row| row.agent == name("b")).unwrap();
    assert_eq!(row.cost, Cost::Unknown(Usd::default()));
    assert!(matches!(ran.end.usage.cost, Cost::Unknown(_)));
}

#[tokio::test]
async fn d11_remote_agent_advises() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("Done.")]);
    let remotes = ScriptedRemotes::default().script("b", [answer("Be careful.")]);
    let setup = setup(&model, &remotes).agent(|a| {
        a.advisors.agents =
            vec![Advisor { agent: name("b"), required: true, timeout: HumanDuration::from_secs(30) }];
    });
    assert_eq!(setup.run().await.answer(), "Done.");
    let asked = told_to(&model, "a");
    assert!(asked.contains("### From b\\n\\nBe careful.\\n<<<end"), "the advice is fenced: {asked}");
}

#[tokio::test]
async fn d11_remote_agent_is_a_stage_of_a_chain() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("A draft.")]);
    let remotes = ScriptedRemotes::default().script("b", [answer("Polished.")]);
    let ran = setup(&model, &remotes).agent(|a| crate::chain::hands_to(a, "b")).run().await;
    assert_eq!(ran.answer(), "Polished.");
    assert!(remotes.texts()[0].contains("A draft."));
    assert!(ran.log().contains("text \"Polished.\""), "it is streamed: {}", ran.log());
}

#[tokio::test]
async fn d11_remote_agent_is_a_router_target() {
    let model = Scripted::default().script("a", [choose("b")]);
    let remotes = ScriptedRemotes::default().script("b", [answer("Routed.")]);
    let ran = setup(&model, &remotes)
        .agent(|a| {
            a.agents = Vec::new();
            routes(a, RoutingMode::Pure, &["b"]);
        })
        .run()
        .await;
    assert_eq!(ran.answer(), "Routed.", "{}", ran.log());
}

#[tokio::test]
async fn d11_remote_agent_is_a_transfer_target() {
    let model = Scripted::default().script("a", [transfer("b")]);
    let remotes = ScriptedRemotes::default().script("b", [answer("Mine now.")]);
    let ran = setup(&model, &remotes).agent(|a| collaborates(a, &["b"])).run().await;
    assert_eq!((ran.answer(), ran.end.answered_by.as_ref().unwrap().as_str()), ("Mine now.", "b"));
}

#[tokio::test]
async fn d11_remote_agents_are_delegated_to() {
    let remotes = ScriptedRemotes::default().script("b", [answer("From afar.")]);
    let setup = setup(&Scripted::default(), &remotes).task(RunTask::Delegate(baton_engine::DelegationPlan {
        synthesis: Synthesis::Concat,
        ..delegation(&["b"])
    }));
    assert_eq!(setup.run().await.answer(), "From afar.");
}

#[tokio::test]
async fn d11_remote_agent_is_a_team_member() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("The team agrees.")]);
    let remotes = ScriptedRemotes::default().script("b", [answer("I propose blue.")]);
    let ran = setup(&model, &remotes)
        .agent(|a| {
            a.agents = Vec::new();
            a.team = Some(rounds(&["b"], 1));
        })
        .run()
        .await;
    assert_eq!(ran.answer(), "The team agrees.", "{}", ran.log());
    assert!(ran.log().contains("b in round 1: \"I propose blue.\""), "{}", ran.log());
}

/// The main agent is remote: its text is streamed, and its answers stay in the thread's context.
#[tokio::test]
async fn d11_main_agent_is_remote() {
    let remotes = ScriptedRemotes::default().script(
        "a",
        [
            ScriptedReply::task("t1").say("Hello ").say("there").ends(
                RemoteState::Completed,
                "Hello there",
                "",
            ),
            answer("Again."),
        ],
    );
    let mut setup = Setup::new(&Scripted::default()).agent(remote);
    setup.remotes = Some(remotes.shared());
    let talk = crate::handoffs::Talk::new(setup).await;
    let ran = talk.say("Hi").await;
    assert_eq!(ran.answer(), "Hello there");
    let log = ran.log();
    assert!(log.contains("text \"Hello \"\n") && log.contains("text ends \"Hello there\""), "{log}");
    talk.say("And?").await;
    let contexts: Vec<String> =
        remotes.sent().iter().map(|sent| sent.task.context_id.clone().unwrap()).collect();
    assert_eq!(contexts, ["550e8400-e29b-41d4-a716-446655440000", "their-context"]);
}

/// What was streamed is withdrawn if the final text differs.
#[tokio::test]
async fn final_text_replaces_the_streamed_one() {
    let reply = ScriptedReply::task("t1").say("Draft").ends(RemoteState::Completed, "Final", "");
    let remotes = ScriptedRemotes::default().script("a", [reply]);
    let mut setup = Setup::new(&Scripted::default()).agent(remote);
    setup.remotes = Some(remotes.shared());
    let ran = setup.run().await;
    let log = ran.log();
    assert_eq!(ran.answer(), "Final");
    assert!(log.contains("turn restarted") && log.contains("text ends \"Final\""), "{log}");
}

#[tokio::test]
async fn failures_of_a_remote_agent_are_results() {
    for (reply, code, text) in [
        (ScriptedReply::task("t").ends(RemoteState::Failed, "", "Boom."), "remote_agent_failed", "Boom."),
        (
            ScriptedReply::task("t").ends(RemoteState::Rejected, "", "Not mine."),
            "remote_agent_failed",
            "Not mine.",
        ),
        (
            ScriptedReply::default().fails(RemoteErrorKind::Unreachable, "connection refused"),
            "agent_unavailable",
            "connection refused",
        ),
        (ScriptedReply::task("t"), "remote_agent_failed", "without a result"),
    ] {
        let model = Scripted::default().script("a", [calls_b(), ScriptedTurn::text("Alone.")]);
        let remotes = ScriptedRemotes::default().script("b", [reply]);
        let ran = setup(&model, &remotes).run().await;
        assert_eq!(ran.answer(), "Alone.");
        let told = &told_to(&model, "a");
        assert!(told.contains(code) && told.contains(text), "{told}");
    }
}

/// The deadline cancels the remote task; the text so far is the answer.
#[tokio::test(start_paused = true)]
async fn d11_deadline_cancels_the_remote_task() {
    let remotes = ScriptedRemotes::default().script("a", [ScriptedReply::task("t9").say("Half").hangs()]);
    let mut setup = Setup::new(&Scripted::default()).agent(|a| {
        remote(a);
        a.limits = AgentLimits { timeout: HumanDuration::from_secs(30), ..AgentLimits::default() };
    });
    setup.remotes = Some(remotes.shared());
    let ran = setup.run().await;
    assert_eq!(ran.answer(), "Half");
    assert_eq!(ran.end.answer.as_ref().unwrap().limit, Some(LimitKind::Time));
    assert_eq!(remotes.cancelled(), ["t9"]);
}

#[tokio::test]
async fn d11_cancelled_run_cancels_the_remote_task() {
    let remotes = ScriptedRemotes::default().script("a", [ScriptedReply::task("t9").say("Half").hangs()]);
    let mut setup = Setup::new(&Scripted::default()).agent(remote);
    setup.remotes = Some(remotes.shared());
    let run = setup.start().await;
    crate::eventually(async || !remotes.sent().is_empty()).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    run.cancel();
    let end = run.finish().await;
    assert_eq!(end.status, RunStatus::Cancelled);
    assert_eq!(remotes.cancelled(), ["t9"]);
    assert_eq!(end.rows.len(), 1, "a cancelled exchange is billed");
}

/// An answer that a guardrail withholds is neither streamed nor returned.
#[tokio::test]
async fn guardrails_hold_for_remote_agents() {
    let remotes = ScriptedRemotes::default().script("a", [answer("The secret word.")]);
    let mut setup = Setup::new(&Scripted::default()).agent(|a| {
        remote(a);
        a.guardrails.output = vec![Guard { check: GuardCheck::MaxLength(5), message: None }];
    });
    setup.remotes = Some(remotes.shared());
    let ran = setup.run().await;
    assert!(!ran.log().contains("secret"), "{}", ran.log());
}

/// An answer must satisfy the schema; one more message asks for a repair.
#[tokio::test]
async fn schema_is_repaired_once() {
    let remotes = ScriptedRemotes::default().script("a", [answer("Sure!"), answer("{\"n\": 1}")]);
    let mut setup = Setup::new(&Scripted::default()).agent(|a| {
        remote(a);
        a.output_schema = Some(json!({"type": "object", "required": ["n"]}));
    });
    setup.remotes = Some(remotes.shared());
    let ran = setup.run().await;
    assert_eq!(ran.end.answer.as_ref().unwrap().value, Some(json!({"n": 1})));
    assert!(remotes.texts()[0].contains("JSON Schema") && remotes.texts()[1].contains("not JSON"));
}
