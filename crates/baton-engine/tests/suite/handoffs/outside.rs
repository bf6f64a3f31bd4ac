//! What people and programs do to a handoff from outside of a run.

use std::sync::Arc;

use baton_core::event::{EventKind, HandoffPhase, RunOutcome};
use baton_core::store::{ApprovalStatus, HandoffEnd, HandoffState, RunStatus};
use baton_engine::orchestration::{exit_handoff, resume_handoff, return_handoff, start_handoff};
use baton_engine::{
    Engine, HandoffError, HandoffResult, HandoffStarted, OnConflict, OrchestrationError, ReturnStatus,
};
use baton_models::scripted::{Scripted, ScriptedTurn};
use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::Semaphore;

use super::{Talk, asked_of, name, phases, setup, transfer};
use crate::{TestTool, eventually};

fn begun() -> Scripted {
    Scripted::default().script("a", [transfer("maker")]).script("maker", [ScriptedTurn::text("Hi!")])
}

/// C-4, C-8: a button starts it; the target greets the person and knows what was said.
#[tokio::test]
async fn c_8_handoff_is_started_by_request() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("Hello.")])
        .script("maker", [ScriptedTurn::text("Hi! Alerts, then?"), ScriptedTurn::text("Good.")]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("I have an idea").await;
    let HandoffStarted::Now { handoff, run_id } =
        talk.engine.start_handoff(talk.asking_for("maker")).await.unwrap()
    else {
        panic!("it was queued");
    };
    assert_eq!((handoff.state, &handoff.source_agent_id), (HandoffState::Active, &name("a")));
    talk.rest().await;
    let run = talk.store().run(run_id).await.unwrap();
    assert_eq!((run.status, run.agent), (RunStatus::Completed, name("maker")));
    let events = talk.store().run_events(run_id, 0, 100).await.unwrap();
    assert_eq!(phases(&events)[0].0, HandoffPhase::Connecting);
    let first = format!("{:?}", asked_of(&model, "maker")[0].messages);
    assert!(first.contains("a button was pressed") && first.contains("I have an idea"), "{first}");
    assert_eq!(talk.said().await, ["person: I have an idea", "a: Hello.", "maker: Hi! Alerts, then?"]);
    assert_eq!(talk.say("Yes").await.answer(), "Good.");
}

/// C-4: the acceptance says how long it will probably take, once three of the target are completed; ones that were left do not
/// count.
#[tokio::test]
async fn c_4_acceptance_estimates_the_duration_from_completed_handoffs() {
    let model = Scripted::default()
        .script("a", std::iter::repeat_n(ScriptedTurn::text("Well."), 6))
        .script("maker", std::iter::repeat_n(ScriptedTurn::text("Hi!"), 5));
    let talk = Talk::new(setup(&model)).await;
    talk.say("I have an idea").await;
    let mut estimates = Vec::new();
    for status in [
        ReturnStatus::Completed,
        ReturnStatus::Cancelled,
        ReturnStatus::Completed,
        ReturnStatus::Completed,
        ReturnStatus::Completed,
    ] {
        let started = talk.engine.start_handoff(talk.asking_for("maker")).await.unwrap();
        let HandoffStarted::Now { handoff, run_id } = started else { panic!("it was queued") };
        talk.rest().await;
        let events = talk.store().run_events(run_id, 0, 100).await.unwrap();
        let announced = events.iter().find_map(|event| match &event.kind {
            EventKind::Handoff(handoff) if handoff.phase == HandoffPhase::Active => Some(handoff.clone()),
            _ => None,
        });
        let estimate = handoff.notes.estimated_seconds;
        assert_eq!(announced.unwrap().estimated_duration_seconds, estimate, "the event says the same");
        estimates.push(estimate);
        let returned = HandoffResult { status, ..HandoffResult::default() };
        return_handoff(&talk.engine, talk.leaving(), returned).await.unwrap();
        talk.rest().await;
    }
    assert_eq!(estimates, [None, None, None, None, Some(0)]);
}

/// C-34: people see the holder of their thread, unless its file says that they do not: then nothing is announced to them, and it
/// speaks under the name of the agent that passed the thread on.
#[tokio::test]
async fn c_34_hidden_holder_is_not_announced() {
    use baton_core::message::Visibility;
    for (visible, announced, speaker) in
        [(None, true, "Skill Creation Assistant"), (Some(false), false, "Assistant")]
    {
        let model = Scripted::default()
            .script("a", [transfer("maker")])
            .script("maker", [ScriptedTurn::text("Which one?"), ScriptedTurn::text("Good.")]);
        let mut setup = setup(&model);
        setup.others[0].visible = visible;
        let talk = Talk::new(setup).await;
        let first = talk.say("create a skill").await;
        let second = talk.say("Alerts").await;
        assert_eq!(
            (second.answer(), talk.holder().await.as_str()),
            ("Good.", "maker"),
            "it holds the thread"
        );
        let events: Vec<_> = first.events.iter().chain(&second.events).collect();
        let shown = events.iter().filter(|event| event.visibility == Visibility::User);
        let is_handoff = |kind: &EventKind| matches!(kind, EventKind::Handoff(_));
        assert_eq!(shown.clone().any(|event| is_handoff(&event.kind)), announced);
        assert!(events.iter().any(|event| is_handoff(&event.kind)), "traces have it in any case");
        let speakers: Vec<&str> = shown
            .filter_map(|event| match &event.kind {
                EventKind::TextFinished { speaker, .. } => Some(speaker.as_str()),
                _ => None,
            })
            .collect();
        let announcing = if announced { &["Assistant"][..] } else { &[] };
        assert_eq!(speakers, [announcing, &[speaker, speaker]].concat());
    }
}

/// C-11, C-28: the library's operations on handoffs fail with errors of their family, each with its code; what was made is carried
/// back.
#[tokio::test]
async fn c_11_c_28_handoff_errors_are_orchestration_errors() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("Hello."), ScriptedTurn::text("Your skill is there.")])
        .script("maker", [ScriptedTurn::text("Hi!")]);
    let talk = Talk::new(setup(&model)).await;
    let engine = &talk.engine;
    let code = |error: HandoffError| {
        let error = OrchestrationError::from(error);
        assert!(
            matches!(&error, OrchestrationError::Handoff(HandoffError(_))) && !error.to_string().is_empty()
        );
        error.code().to_owned()
    };
    // C-11: there is no conversation that it could be kept with.
    let missing = start_handoff(engine, talk.asking_for("maker")).await.unwrap_err();
    assert_eq!(code(missing), "thread_not_found");
    talk.say("I have an idea").await;
    assert_eq!(code(start_handoff(engine, talk.asking_for("nobody")).await.unwrap_err()), "agent_not_found");
    assert_eq!(code(start_handoff(engine, talk.asking_for("a")).await.unwrap_err()), "handoff_rejected");
    assert_eq!(code(exit_handoff(engine, talk.leaving()).await.unwrap_err()), "no_active_handoff");
    let HandoffStarted::Now { handoff, .. } = start_handoff(engine, talk.asking_for("maker")).await.unwrap()
    else {
        panic!("it was queued");
    };
    assert_eq!(code(start_handoff(engine, talk.asking_for("maker")).await.unwrap_err()), "handoff_active");
    talk.rest().await;
    let returned = HandoffResult {
        status: ReturnStatus::Completed,
        result_summary: Some("A skill for alerts.".to_owned()),
        artifacts_created: vec!["slack-alert".to_owned()],
    };
    let ended = return_handoff(engine, talk.leaving(), returned).await.unwrap();
    assert_eq!((ended.handoff_id, ended.state), (handoff.handoff_id, HandoffState::Completed));
    assert_eq!(ended.artifacts_created, ["slack-alert"]);
    talk.rest().await;
    let finished = resume_handoff(engine, talk.leaving(), handoff.handoff_id).await.unwrap_err();
    assert!(!code(finished).is_empty(), "what is complete is not resumed");
}

/// Who gives a thread away is never somebody whose time was over.
#[tokio::test]
async fn c_21_expired_holder_cannot_transfer() {
    let model = begun().script("other", [ScriptedTurn::text("I am next."), ScriptedTurn::text("Yes.")]);
    let two = setup(&model).with("other", |agent| {
        agent.accepts_handoff = Some(baton_core::agent::AcceptsHandoff::default());
    });
    let talk = Talk::new(two).await;
    talk.say("create a skill").await;
    super::expire(&talk).await;
    let started = talk.engine.start_handoff(talk.asking_for("other")).await.unwrap();
    let HandoffStarted::Now { handoff, .. } = started else { panic!("it was queued") };
    assert_eq!(handoff.source_agent_id, name("a"));
    talk.rest().await;
    assert_eq!(talk.holder().await, "other");
}

/// What is not said about the matter is what the person said last, and never what they were answered.
#[tokio::test]
async fn c_2_default_summary_is_the_persons_message() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("I cannot.")])
        .script("maker", [ScriptedTurn::text("Hi!")]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("Alerts would be nice").await;
    let wish = baton_engine::StartHandoff { context_summary: String::new(), ..talk.asking_for("maker") };
    let HandoffStarted::Now { handoff, .. } = talk.engine.start_handoff(wish).await.unwrap() else {
        panic!("queued")
    };
    assert_eq!(handoff.context_summary, "Alerts would be nice");
    talk.rest().await;
}

/// X16, H3: who ends somebody else's handoff lends them none of their own rights.
#[tokio::test]
async fn x_16_run_caused_by_an_administrator_has_the_users_rights() {
    let model = begun().script("a", [ScriptedTurn::text("It is there.")]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("create a skill").await;
    let exit = baton_engine::ExitRequest { is_administrator: true, ..talk.leaving() };
    talk.engine.return_handoff(exit, HandoffResult::default()).await.unwrap();
    talk.rest().await;
    let last = talk.events().await.pop().unwrap().run_id;
    let run = talk.store().run(last).await.unwrap();
    assert_eq!((run.user_id.as_str(), &run.request["rights"]), ("ada", &serde_json::json!([])));
    assert_eq!(talk.said().await.last().unwrap(), "a: It is there.");
}

/// C-12: of many at once one gets the thread.
#[tokio::test]
async fn c_12_one_of_many_concurrent_requests_is_accepted() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("Hello.")])
        .script("maker", [ScriptedTurn::text("Hi!")]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("Hello").await;
    let started = join_all((0..8).map(|_| talk.engine.start_handoff(talk.asking_for("maker")))).await;
    assert_eq!(started.iter().filter(|one| one.is_ok()).count(), 1);
    assert!(
        started.iter().filter_map(|one| one.as_ref().err()).all(|failure| failure.code() == "handoff_active")
    );
    talk.rest().await;
    assert_eq!(talk.holder().await, "maker");
}

/// X15: who asks for it waits, and is next.
#[tokio::test]
async fn x_15_request_can_queue_behind_another() {
    let model = begun().script("other", [ScriptedTurn::text("I am next.")]);
    let two = setup(&model).with("other", |agent| {
        agent.accepts_handoff = Some(baton_core::agent::AcceptsHandoff::default());
    });
    let talk = Talk::new(two).await;
    talk.say("create a skill").await;
    let mut wish = talk.asking_for("other");
    wish.on_conflict = OnConflict::Queue;
    assert!(matches!(talk.engine.start_handoff(wish.clone()).await, Ok(HandoffStarted::Queued)));
    assert_eq!(
        talk.engine.start_handoff(wish).await.unwrap_err().code(),
        "handoff_active",
        "one waits, not more"
    );
    talk.say("cancel").await;
    talk.rest().await;
    assert_eq!(talk.holder().await, "other");
    assert_eq!(talk.said().await.last().unwrap(), "other: I am next.");
}

/// C-16: leaving ends the holder's run also in the first moments, when nothing of it is stored.
#[tokio::test]
async fn c_16_exit_works_before_the_holders_run_is_recorded() {
    let model = begun().script("maker", [ScriptedTurn::default().hang()]);
    let (mut parts, request) = setup(&model).parts().await;
    parts.flush = crate::LONG;
    let talk = Talk { engine: Engine::new(parts), request };
    talk.say("create a skill").await;
    let busy = talk.engine.start(talk.saying("Slack")).await.unwrap();
    while asked_of(&model, "maker").len() < 2 {
        tokio::task::yield_now().await;
    }
    talk.engine.exit_handoff(talk.leaving()).await.unwrap();
    assert_eq!(busy.finish().await.status, RunStatus::Cancelled);
    talk.rest().await;
    assert_eq!(talk.holder().await, "a");
}

/// C-16, X16: leaving works while the holder is busy, and ends what it is at.
#[tokio::test]
async fn c_16_exit_works_while_the_holder_is_busy() {
    for by_word in [false, true] {
        let model = begun().script("maker", [ScriptedTurn::default().say("I am thi").hang()]);
        let talk = Talk::new(setup(&model)).await;
        talk.say("create a skill").await;
        let mut busy = talk.engine.start(talk.saying("Slack")).await.unwrap();
        while let Some(event) = busy.events.recv().await {
            if matches!(event.kind, EventKind::TextDelta { .. }) {
                break;
            }
        }
        let last = if by_word {
            let ran = talk.say("Cancel!").await;
            ran.events
        } else {
            let handoff = talk.engine.exit_handoff(talk.leaving()).await.unwrap();
            assert_eq!(handoff.state, HandoffState::Cancelled);
            assert!(talk.open().await.is_none(), "at once");
            Vec::new()
        };
        let ended = busy.finish().await;
        assert_eq!(ended.status, RunStatus::Cancelled);
        talk.rest().await;
        let events = if by_word { last } else { talk.events().await };
        let (phase, sentence) = phases(&events).pop().unwrap();
        assert_eq!(
            (phase, sentence.as_str()),
            (HandoffPhase::Cancelled, "No problem! Returning you to the main assistant.")
        );
        assert_eq!(talk.holder().await, "a");
        let said = talk.said().await;
        assert_eq!(
            said.last().unwrap(),
            "a: Let me know if you'd like to continue creating that skill later."
        );
    }
}

/// C-16: a holder that waits for an answer ends with the handoff, so that the next message is for the main agent. It asks in the run
/// that opened the handoff, or in a later one.
#[tokio::test]
async fn c_16_exit_ends_a_holder_that_waits_for_an_answer() {
    for (by_word, at_once) in [(false, false), (true, false), (false, true), (true, true)] {
        let question = ScriptedTurn::call("ask_user", &json!({"question": "Which channel?"}));
        let greeting = (!at_once).then(|| ScriptedTurn::text("Hi!"));
        let model = Scripted::default()
            .script("a", [transfer("maker"), ScriptedTurn::text("Of course.")])
            .script("maker", greeting.into_iter().chain([question]));
        let ask_user = TestTool::echo("ask_user").spec(|spec| {
            spec.parameters = json!({"type": "object", "properties": {"question": {"type": "string"}}});
        });
        let talk = Talk::new(setup(&model).tool(ask_user)).await;
        let mut asked = talk.say("create a skill").await;
        if !at_once {
            asked = talk.say("Slack").await;
        }
        let approval = asked.end.waits_for[0].approval_id;
        if by_word {
            talk.say("Cancel!").await;
        } else {
            talk.engine.exit_handoff(talk.leaving()).await.unwrap();
            talk.rest().await;
        }
        let settled = talk.store().approval(approval).await.unwrap();
        assert_eq!(settled.outcome.status, ApprovalStatus::Cancelled);
        assert_eq!(talk.store().run(settled.run_id).await.unwrap().status, RunStatus::Cancelled);
        assert_eq!(talk.say("And now?").await.answer(), "Of course.");
        assert_eq!((talk.holder().await.as_str(), model.left()), ("a", 0));
    }
}

/// A run of the main agent that waits since before the handoff is not the holder's.
#[tokio::test]
async fn exit_leaves_the_main_agents_question_open() {
    let question = ScriptedTurn::call("ask_user", &json!({"question": "Which channel?"}));
    let model = Scripted::default().script("a", [question]).script("maker", [ScriptedTurn::text("Hi!")]);
    let ask_user = TestTool::echo("ask_user").spec(|spec| {
        spec.parameters = json!({"type": "object", "properties": {"question": {"type": "string"}}});
    });
    let talk = Talk::new(setup(&model).tool(ask_user)).await;
    let asked = talk.say("Post it").await;
    let approval = asked.end.waits_for[0].approval_id;
    talk.engine.start_handoff(talk.asking_for("maker")).await.unwrap();
    talk.rest().await;
    talk.engine.exit_handoff(talk.leaving()).await.unwrap();
    talk.rest().await;
    assert_eq!(talk.store().approval(approval).await.unwrap().outcome.status, ApprovalStatus::Pending);
}

/// Two who leave at the same time leave once.
#[tokio::test]
async fn c_16_second_exit_changes_nothing() {
    let model = begun();
    let talk = Talk::new(setup(&model)).await;
    talk.say("create a skill").await;
    let left = join_all((0..5).map(|_| talk.engine.exit_handoff(talk.leaving()))).await;
    assert_eq!(left.iter().filter(|one| one.is_ok()).count(), 1);
    assert!(
        left.iter().filter_map(|one| one.as_ref().err()).all(|failure| failure.code() == "no_active_handoff")
    );
    talk.rest().await;
    let ends =
        phases(&talk.events().await).into_iter().filter(|(phase, _)| *phase == HandoffPhase::Cancelled);
    assert_eq!(ends.count(), 1);
    assert_eq!(talk.engine.exit_handoff(talk.leaving()).await.unwrap_err().code(), "no_active_handoff");
}

/// C-5: the holder's end comes from outside, and the main agent acknowledges it.
#[tokio::test]
async fn c_5_holder_returns_the_thread_by_request() {
    let model = begun().script("a", [ScriptedTurn::text("Great, it is there.")]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("create a skill").await;
    let returned = HandoffResult {
        status: ReturnStatus::Completed,
        result_summary: Some("A skill was made.".to_owned()),
        artifacts_created: vec!["skill:x".to_owned()],
    };
    let handoff = talk.engine.return_handoff(talk.leaving(), returned).await.unwrap();
    assert_eq!((handoff.state, handoff.notes.end), (HandoffState::Completed, Some(HandoffEnd::Completed)));
    talk.rest().await;
    assert_eq!(talk.said().await.last().unwrap(), "a: Great, it is there.");
    assert_eq!(phases(&talk.events().await).last().unwrap().0, HandoffPhase::Completed);
}

/// C-16: what was left is taken up again from outside, and not twice.
#[tokio::test]
async fn c_16_handoff_is_resumed_by_request() {
    let model = begun().script("maker", [ScriptedTurn::text("The name?")]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("create a skill").await;
    let id = talk.open().await.unwrap().handoff_id;
    talk.say("stop").await;
    let (handoff, _) = talk.engine.resume_handoff(talk.leaving(), id).await.unwrap();
    assert_eq!(handoff.state, HandoffState::Active);
    talk.rest().await;
    assert_eq!(talk.said().await.last().unwrap(), "maker: The name?");
    let again = talk.engine.resume_handoff(talk.leaving(), id).await.unwrap_err();
    assert_eq!(again.code(), "handoff_active");
}

/// Messages that wait when the person leaves are answered by whoever has the thread then.
#[tokio::test]
async fn d_3_routing_is_decided_when_the_run_starts() {
    let gate = Arc::new(Semaphore::new(0));
    let model = Scripted::default()
        .script(
            "a",
            [ScriptedTurn::call("transfer_to_maker", &serde_json::json!({"reason": "r"})).until(&gate)],
        )
        .script("maker", [ScriptedTurn::text("Hi!"), ScriptedTurn::text("Noted.")]);
    let talk = Talk::new(setup(&model)).await;
    let first = talk.engine.start(talk.saying("create a skill")).await.unwrap();
    // Said while the main agent still has the thread; heard when it has not.
    let second = talk.engine.start(talk.saying("It is called Slack Alert")).await.unwrap();
    gate.add_permits(1);
    let (first, second) = (first.finish().await, second.finish().await);
    assert_eq!(first.answered_by, Some(name("maker")));
    assert_eq!(second.answer.unwrap().text, "Noted.");
    eventually(async || talk.holder().await == "maker").await;
    let last = talk.events().await.pop().unwrap().kind;
    assert!(matches!(last, EventKind::RunFinished { outcome: RunOutcome::Success, .. }));
}
