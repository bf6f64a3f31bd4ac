//! Our process dies while a remote agent works.

use baton_core::agent::AcceptsHandoff;
use baton_core::event::{EventKind, HandoffPhase};
use baton_core::remote::{RemoteEvent, RemoteState};
use baton_core::store::RunStatus;
use baton_models::scripted::Scripted;

use super::remote;
use super::script::{ScriptedRemotes, ScriptedReply, task};
use crate::Setup;
use crate::durability::{die, go_on};
use crate::transfers::{collaborates, transfer};

fn alone(remotes: &ScriptedRemotes) -> Setup {
    let mut setup = Setup::new(&Scripted::default()).agent(remote);
    setup.remotes = Some(remotes.shared());
    setup
}

/// D11: after a crash the recorded task is followed, and the message is not sent again.
#[test]
fn d11_remote_task_is_followed_after_a_crash() {
    let first = ScriptedRemotes::default().script("a", [ScriptedReply::task("t7").say("Half").hangs()]);
    let (engine, _, _) = die(alone(&first), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    let second = ScriptedRemotes::default().followed_by([ScriptedReply::task("t7")
        .ends(RemoteState::Completed, "Half and half", "")
        .used(9, "2")]);
    let after = go_on(alone(&second), &engine);
    after.is_sound();
    assert_eq!(after.run.status, RunStatus::Completed);
    assert_eq!(second.followed(), [task("t7")]);
    assert_eq!(second.sent().len(), 0);
    assert_eq!(after.messages.last().unwrap().message.text(), "Half and half");
    assert_eq!(after.count(|kind| matches!(kind, EventKind::TurnRestarted { .. })), 1);
    let paid: u64 = after.rows.iter().map(|row| row.tokens.input_tokens).sum();
    assert_eq!(paid, 9, "{:?}", after.rows);
}

/// D11: a message whose outcome is unknown is sent again with the same id, so that the peer can recognize it.
#[test]
fn d11_message_without_a_task_is_repeated_with_its_id() {
    let first = ScriptedRemotes::default().script("a", [ScriptedReply::default().say("Half").hangs()]);
    let (engine, _, _) = die(alone(&first), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    let second = ScriptedRemotes::default()
        .script("a", [ScriptedReply::task("t8").ends(RemoteState::Completed, "All of it", "")]);
    let after = go_on(alone(&second), &engine);
    assert_eq!(after.run.status, RunStatus::Completed);
    assert_eq!(first.sent()[0].message_id, second.sent()[0].message_id);
    assert_eq!(after.messages.last().unwrap().message.text(), "All of it");
}

/// C-3, D11: our process dies after the remote agent has accepted the thread and before its first answer. The same task is followed,
/// and the thread is offered once.
#[test]
fn c03_accepted_handoff_goes_on_after_a_crash() {
    let make = |model: &Scripted, remotes: &ScriptedRemotes| {
        let mut setup = Setup::new(model).agent(|a| collaborates(a, &["b"])).with("b", |b| {
            remote(b);
            b.accepts_handoff = Some(AcceptsHandoff::default());
        });
        setup.remotes = Some(remotes.shared());
        setup
    };
    let accepts = || ScriptedReply::task("t3").event(RemoteEvent::HandoffAccepted);
    let first = ScriptedRemotes::default().script("b", [accepts().hangs()]);
    let model = Scripted::default().script("a", [transfer("b")]);
    let is_active = |event: &baton_core::Event| matches!(&event.kind, EventKind::Handoff(handoff) if handoff.phase == HandoffPhase::Active);
    let (engine, _, _) = die(make(&model, &first), is_active);
    let second = ScriptedRemotes::default()
        .followed_by([accepts().ends(RemoteState::InputRequired, "", "Which name?")])
        .script("b", [accepts().ends(RemoteState::InputRequired, "", "Which name?")]);
    let after = go_on(make(&Scripted::default(), &second), &engine);
    assert_eq!(after.run.status, RunStatus::Completed);
    assert_eq!(after.messages.last().unwrap().message.text(), "Which name?");
    let opened =
        |kind: &EventKind| matches!(kind, EventKind::Handoff(one) if one.phase == HandoffPhase::Active);
    assert_eq!(after.count(opened), 1);
    let again = second.sent();
    assert!(again.is_empty() || again[0].message_id == first.sent()[0].message_id);
}
