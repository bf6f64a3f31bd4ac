//! A thread is handed to a remote agent.

use baton_core::agent::{AcceptsHandoff, Return};
use baton_core::remote::{RemoteErrorKind, RemoteEvent, RemoteState, ReturnOutcome};
use baton_core::store::{HandoffEnd, HandoffState, RunStatus};
use baton_models::scripted::{Scripted, ScriptedTurn};

use super::patterns::told_to;
use super::remote;
use super::script::{ScriptedRemotes, ScriptedReply};
use crate::handoffs::Talk;
use crate::transfers::{collaborates, transfer};
use crate::{Setup, name};

/// `a` may hand the thread to the remote agent `b`.
fn setup(model: &Scripted, remotes: &ScriptedRemotes, returns: Return) -> Setup {
    let mut setup = Setup::new(model).agent(|a| collaborates(a, &["b"])).with("b", |b| {
        remote(b);
        b.accepts_handoff = Some(AcceptsHandoff { returns, ..AcceptsHandoff::default() });
    });
    setup.remotes = Some(remotes.shared());
    setup
}

fn asks(question: &str) -> ScriptedReply {
    ScriptedReply::task("t1").event(RemoteEvent::HandoffAccepted).ends(
        RemoteState::InputRequired,
        "",
        question,
    )
}

/// C-3, C-4, C-5: the agent is asked, holds the thread over several messages in one task, and returns it with a result.
#[tokio::test]
async fn c03_thread_goes_to_a_remote_agent_and_returns() {
    let model = Scripted::default().script("a", [transfer("b"), ScriptedTurn::text("Well done.")]);
    let remotes = ScriptedRemotes::default().script(
        "b",
        [
            asks("What is its name?").used(5, "1"),
            ScriptedReply::task("t1").ends(RemoteState::InputRequired, "", "And the steps?").used(7, "2"),
            ScriptedReply::task("t1")
                .returns("Made the skill.", ReturnOutcome::Completed, &["weekly-report"])
                .used(9, "4"),
        ],
    );
    let talk = Talk::new(setup(&model, &remotes, Return::OnComplete)).await;
    let first = talk.say("Make a skill").await;
    assert_eq!(first.answer(), "What is its name?", "{}", first.log());
    assert_eq!(talk.holder().await, "b");
    let offer = remotes.sent()[0].handoff.clone().unwrap();
    assert_eq!((offer.reason.as_str(), offer.source_agent_id.as_str()), ("b knows", "a"));
    assert_eq!(offer.words, "Make a skill");
    assert_eq!(talk.say("weekly-report").await.answer(), "And the steps?");
    let last = talk.say("Collect, write, send").await;
    assert_eq!(last.answer(), "Well done.", "{}", last.log());
    assert_eq!(talk.holder().await, "a");
    let sent = remotes.sent();
    assert_eq!(remotes.texts()[1..], ["weekly-report", "Collect, write, send"]);
    assert!(sent[1..].iter().all(|one| one.task.task_id.as_deref() == Some("t1") && one.handoff.is_none()));
    let ended = talk.store().handoffs(talk.request.caller.thread_id).await.unwrap().remove(0);
    assert_eq!((ended.state, ended.notes.end), (HandoffState::Completed, Some(HandoffEnd::Completed)));
    assert_eq!(ended.artifacts_created, ["weekly-report"]);
    assert_eq!(ended.result_summary.as_deref(), Some("Made the skill."));
    let said = talk.said().await;
    assert!(said.contains(&"b: Made the skill.".to_owned()), "{said:?}");
    let rows: Vec<u64> = last
        .end
        .rows
        .iter()
        .filter(|row| row.agent == name("b"))
        .map(|row| row.tokens.input_tokens)
        .collect();
    assert_eq!(rows, [2], "the total of the task was 7 before and is 9 now");
}

/// C-3: if the agent declines, the thread stays with its holder, and the user sees the reason.
#[tokio::test]
async fn c03_declined_handoff_leaves_the_thread() {
    let model = Scripted::default().script("a", [transfer("b"), ScriptedTurn::text("Then I do it.")]);
    let remotes =
        ScriptedRemotes::default().script("b", [ScriptedReply::default().declines("no capacity today")]);
    let talk = Talk::new(setup(&model, &remotes, Return::OnComplete)).await;
    let ran = talk.say("Make a skill").await;
    assert_eq!((ran.answer(), talk.holder().await.as_str()), ("Then I do it.", "a"));
    let told = told_to(&model, "a");
    assert!(told.contains("no capacity today"), "{told}");
    assert!(talk.open().await.is_none());
    assert!(!ran.log().contains("Connecting"), "{}", ran.log());
}

/// C-14: an agent that cannot be reached is unavailable, and nothing is stuck.
#[tokio::test]
async fn c14_unreachable_agent_gets_no_thread() {
    let model = Scripted::default().script("a", [transfer("b"), ScriptedTurn::text("Later?")]);
    let remotes = ScriptedRemotes::default()
        .script("b", [ScriptedReply::default().fails(RemoteErrorKind::Unreachable, "connection refused")]);
    let talk = Talk::new(setup(&model, &remotes, Return::OnComplete)).await;
    assert_eq!(talk.say("Make a skill").await.answer(), "Later?");
    assert!(told_to(&model, "a").contains("currently unavailable"));
    assert!(talk.open().await.is_none());
}

/// The user leaves without the agent, and its task is cancelled in the background.
#[tokio::test]
async fn exit_word_needs_no_remote_agent() {
    let model = Scripted::default().script("a", [transfer("b")]);
    let remotes = ScriptedRemotes::default().script("b", [asks("What?")]);
    let talk = Talk::new(setup(&model, &remotes, Return::OnComplete)).await;
    talk.say("Make a skill").await;
    let left = talk.say("exit").await;
    assert_eq!(left.end.status, RunStatus::Completed);
    assert_eq!(talk.holder().await, "a");
    assert_eq!((remotes.cancelled(), remotes.sent().len()), (vec!["t1".to_owned()], 1));
}

/// A peer that goes down in the middle is reported; the same task goes on when it is back.
#[tokio::test]
async fn holder_that_is_down_keeps_its_task() {
    let model = Scripted::default().script("a", [transfer("b")]);
    let remotes = ScriptedRemotes::default().script(
        "b",
        [
            asks("What?"),
            ScriptedReply::default().fails(RemoteErrorKind::Unreachable, "connection refused"),
            ScriptedReply::task("t1").ends(RemoteState::InputRequired, "", "Go on."),
        ],
    );
    let talk = Talk::new(setup(&model, &remotes, Return::OnComplete)).await;
    talk.say("Make a skill").await;
    let failed = talk.say("a").await.end;
    assert_eq!(failed.failure.unwrap().code(), "agent_unavailable");
    assert_eq!(talk.holder().await, "b");
    assert_eq!(talk.say("a").await.answer(), "Go on.");
    assert_eq!(remotes.sent()[2].task.task_id.as_deref(), Some("t1"));
}

/// A peer that has lost the task gets the thread again, with a new task in the same context.
#[tokio::test]
async fn lost_task_begins_again() {
    let model = Scripted::default().script("a", [transfer("b")]);
    let remotes = ScriptedRemotes::default().script(
        "b",
        [
            asks("What?"),
            ScriptedReply::default().fails(RemoteErrorKind::TaskNotFound, "no such task"),
            ScriptedReply::task("t2").ends(RemoteState::InputRequired, "", "From the start: what?"),
        ],
    );
    let talk = Talk::new(setup(&model, &remotes, Return::OnComplete)).await;
    talk.say("Make a skill").await;
    assert_eq!(talk.say("a").await.answer(), "From the start: what?");
    let again = &remotes.sent()[2];
    assert_eq!(
        (again.task.task_id.as_ref(), again.task.context_id.as_deref()),
        (None, Some("their-context"))
    );
    assert!(again.handoff.is_some());
}

/// An agent without the extension ends a task with every answer; with `return: never` it keeps the thread.
#[tokio::test]
async fn agent_that_never_returns_keeps_the_thread() {
    let model = Scripted::default().script("a", [transfer("b")]);
    let done = |text: &str| ScriptedReply::task("t").ends(RemoteState::Completed, text, "");
    let remotes = ScriptedRemotes::default().script("b", [done("One."), done("Two.")]);
    let talk = Talk::new(setup(&model, &remotes, Return::Never)).await;
    assert_eq!(talk.say("Go").await.answer(), "One.");
    assert_eq!(talk.say("More").await.answer(), "Two.");
    assert_eq!(talk.holder().await, "b");
    assert!(remotes.sent()[1].task.task_id.is_none());
}

/// A handoff that a program starts asks the agent first, and its first answer is read in the run that announces it.
#[tokio::test]
async fn c03_handoff_from_outside_asks_the_remote_agent() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("Hi.")]);
    let remotes = ScriptedRemotes::default()
        .script("b", [asks("What?")])
        .followed_by([asks("What?"), ScriptedReply::default()]);
    let talk = Talk::new(setup(&model, &remotes, Return::OnComplete)).await;
    talk.say("Hello").await;
    talk.engine.start_handoff(talk.asking_for("b")).await.unwrap();
    crate::eventually(async || talk.said().await.contains(&"b: What?".to_owned())).await;
    assert_eq!(remotes.followed().len(), 1);

    let model = Scripted::default().script("a", [ScriptedTurn::text("Hi.")]);
    let remotes = ScriptedRemotes::default().script("b", [ScriptedReply::default().declines("not today")]);
    let talk = Talk::new(setup(&model, &remotes, Return::OnComplete)).await;
    talk.say("Hello").await;
    let refused = talk.engine.start_handoff(talk.asking_for("b")).await.unwrap_err();
    assert_eq!(refused.to_string(), "`b` does not take over: not today");
    assert!(talk.open().await.is_none());
}
