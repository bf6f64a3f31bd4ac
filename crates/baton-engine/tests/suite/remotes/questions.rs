//! Questions of remote agents reach the user, and the answers reach the same remote task.

use baton_core::message::Part;
use baton_core::remote::RemoteState;
use baton_core::store::{ApprovalKind, Cancel, RunStatus};
use baton_engine::{DecisionInput, Engine, RunRequest, Verdict};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::script::{ScriptedRemotes, ScriptedReply};
use super::setup;

fn calls_b() -> ScriptedTurn {
    ScriptedTurn::call("call_agent", &json!({"mission": "Book.", "specialist": "b"}))
}

/// D11: a remote agent's question parks the run, and the user's next message answers it, in another process too.
#[tokio::test]
async fn d11_question_of_a_remote_agent_waits_for_the_user() {
    for (state, heading) in [
        (RemoteState::InputRequired, "Which day?"),
        (RemoteState::AuthRequired, "The agent needs an authorization to go on: Which day?"),
    ] {
        let model = Scripted::default().script("a", [calls_b(), ScriptedTurn::text("Booked.")]);
        let remotes = ScriptedRemotes::default().script(
            "b",
            [
                ScriptedReply::task("t1").ends(state, "", "Which day?").used(5, "1"),
                ScriptedReply::task("t1").ends(RemoteState::Completed, "Monday it is.", "").used(8, "3"),
            ],
        );
        let (parts, request) = setup(&model, &remotes).parts().await;
        let engine = Engine::new(parts);
        let end = engine.start(request.clone()).await.unwrap().finish().await;
        assert_eq!(end.status, RunStatus::Waiting, "{:?}", end.failure);
        let asked = &end.waits_for[0];
        assert_eq!((asked.kind, asked.agent.as_str()), (ApprovalKind::Question, "b"));
        assert_eq!(asked.preview.heading, heading);

        let (parts, _) = setup(&model, &remotes).parts().await;
        let other = Engine::new(crate::durability::successor(parts, &engine.parts));
        let answer = RunRequest { input: vec![Part::text("Monday")], ..request };
        let end = other.start(answer).await.unwrap().finish().await;
        assert_eq!((end.status, end.answer.unwrap().text.as_str()), (RunStatus::Completed, "Booked."));
        let sent = remotes.sent();
        assert_eq!(remotes.texts(), ["Book.", "Monday"]);
        assert_eq!(sent[1].task.task_id.as_deref(), Some("t1"));
        assert_ne!(sent[0].message_id, sent[1].message_id);
        let rows: Vec<_> = end.rows.iter().filter(|row| row.agent.as_str() == "b").collect();
        let tokens: Vec<u64> = rows.iter().map(|row| row.tokens.input_tokens).collect();
        assert_eq!(tokens, [5, 3], "the usage of a task is reported as a total and billed once");
    }
}

#[tokio::test]
async fn denied_question_cancels_the_remote_task() {
    let model = Scripted::default().script("a", [calls_b(), ScriptedTurn::text("Not booked.")]);
    let remotes = ScriptedRemotes::default()
        .script("b", [ScriptedReply::task("t1").ends(RemoteState::InputRequired, "", "Which day?")]);
    let (parts, request) = setup(&model, &remotes).parts().await;
    let engine = Engine::new(parts);
    let run = engine.start(request.clone()).await.unwrap();
    let id = run.id;
    let end = run.finish().await;
    let caller = &request.caller;
    let denied = DecisionInput::new(Verdict::Deny);
    engine.decide(&caller.tenant, end.waits_for[0].approval_id, &caller.user, denied).await.unwrap();
    let end = engine.attend(&caller.tenant, caller.thread_id, id, 0).finish().await;
    assert_eq!(end.answer.unwrap().text, "Not booked.");
    assert_eq!(remotes.cancelled(), ["t1"]);
}

/// D11: no process works on a run that waits, so the request to cancel it cancels the remote task.
#[tokio::test]
async fn d11_cancelling_a_waiting_run_cancels_the_remote_task() {
    let model = Scripted::default().script("a", [calls_b()]);
    let remotes = ScriptedRemotes::default()
        .script("b", [ScriptedReply::task("t1").ends(RemoteState::InputRequired, "", "Which day?")]);
    let (parts, request) = setup(&model, &remotes).parts().await;
    let engine = Engine::new(parts);
    let run = engine.start(request.clone()).await.unwrap();
    let id = run.id;
    assert_eq!(run.finish().await.status, RunStatus::Waiting);
    let status = engine.cancel(&request.caller.tenant, id, Cancel::Abort).await.unwrap();
    assert_eq!(status, RunStatus::Cancelled);
    assert_eq!(remotes.cancelled(), ["t1"]);
}
