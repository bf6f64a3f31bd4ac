//! Details of a conversation with a holder: unfinished work in a new thread, and the flags of a request.

use baton_core::event::EventKind;
use baton_core::store::HandoffState;
use baton_core::{ThreadId, UserId};
use baton_engine::StartHandoff;

use super::Talk;
use super::conflict::{BEGIN, offline};

const WELCOME: &str = "Welcome back! Would you like to continue creating your Slack alert skill?";

const LATER: &str = "Let me know if you'd like to continue creating that skill later.";

/// The same user in another thread.
fn elsewhere(talk: &Talk, number: u8) -> Talk {
    let mut request = talk.request.clone();
    let id = format!("550e8400-e29b-41d4-a716-4466554400{number:02}");
    request.caller.thread_id = ThreadId::parse(&id).unwrap();
    Talk { engine: std::sync::Arc::clone(&talk.engine), request }
}

/// K9, K10, C-15: a new thread offers the unfinished work once, and goes on with it.
#[tokio::test]
async fn k_10_unfinished_work_is_offered_in_a_new_thread() {
    let talk = Talk::new(offline()).await;
    for words in [BEGIN, "Read the report", "cancel"] {
        talk.say(words).await;
    }
    let mut stranger = elsewhere(&talk, 2);
    stranger.request.caller.user = UserId::parse("bob").unwrap();
    assert_ne!(stranger.say("Hello").await.answer(), WELCOME, "only the same user");
    let (next, third) = (elsewhere(&talk, 3), elsewhere(&talk, 4));
    let asked = next.say("Hello").await;
    assert_eq!(asked.answer(), WELCOME, "{}", asked.log());
    assert_ne!(third.say("Hello").await.answer(), WELCOME, "only once");
    let resumed = next.say("yes").await;
    assert!(resumed.answer().contains("- Steps: Read the report"), "{}", resumed.log());
    assert!(
        resumed.answer().ends_with("What is the format? You can choose bullets or table."),
        "{}",
        resumed.answer()
    );
    assert_eq!(next.holder().await, "maker");
    assert_eq!(talk.store().resumable_handoffs(talk.request.caller.thread_id).await.unwrap(), []);
    for words in ["table", "Slack Alert"] {
        next.say(words).await;
    }
    let said = next.said().await;
    assert_eq!(said.last().unwrap(), "a: Great, your 'Slack Alert' skill is now active.");
}

/// K10: a no leaves the work where it is, and only the reply to the offer is about it.
#[tokio::test]
async fn k_10_offer_is_declined_or_passed_over() {
    let talk = Talk::new(offline()).await;
    for words in [BEGIN, "cancel"] {
        talk.say(words).await;
    }
    let (next, other) = (elsewhere(&talk, 6), elsewhere(&talk, 7));
    assert_eq!(next.say("Hello").await.answer(), WELCOME);
    assert_eq!(next.say("No, thanks").await.answer(), LATER);
    next.say("I have an idea").await;
    next.say("yes").await;
    assert_eq!(next.holder().await, "a", "this yes is about something else");
    assert_eq!(talk.store().resumable_handoffs(talk.request.caller.thread_id).await.unwrap().len(), 1);
    assert_ne!(other.say("no").await.answer(), LATER, "nothing was offered there");
    next.say("continue with the skill").await;
    assert_eq!(next.holder().await, "maker");
}

/// K10: a client that asked the question itself records it, and the engine understands the reply. Nothing is recorded for a message
/// about something else, nor for work that goes on elsewhere.
#[tokio::test]
async fn k_10_offer_of_a_client_is_replied_to() {
    let talk = Talk::new(offline()).await;
    for words in [BEGIN, "cancel"] {
        talk.say(words).await;
    }
    let (tenant, thread) = (talk.request.caller.tenant.clone(), talk.request.caller.thread_id);
    let left = talk.store().resumable_handoffs(thread).await.unwrap().pop().unwrap().handoff_id;
    let offer = async |talk: &Talk, words: &str| {
        let thread = talk.request.caller.thread_id;
        talk.engine.record_offer(&tenant, left, thread, words).await.unwrap();
        talk.say(words).await
    };
    let (greeted, busy, declined) = (elsewhere(&talk, 8), elsewhere(&talk, 9), elsewhere(&talk, 10));
    assert_ne!(offer(&greeted, "Hello").await.answer(), WELCOME, "it is not asked twice");
    greeted.say("yes").await;
    assert_eq!(greeted.holder().await, "a", "it replies to something else");
    offer(&busy, "I have an idea").await;
    busy.say("yes").await;
    assert_eq!(busy.holder().await, "a");
    assert_eq!(offer(&declined, "no").await.answer(), LATER);
    declined.say("ok").await;
    assert_eq!(declined.holder().await, "a", "it was declined");
    let resumed = elsewhere(&talk, 11);
    assert!(offer(&resumed, "yes").await.answer().contains("- Purpose: sends Slack alerts"));
    assert_eq!(resumed.holder().await, "maker");
    // Now the old handoff is done with, and the new one is open.
    let open = talk.store().open_handoff_of(resumed.request.caller.thread_id).await.unwrap().unwrap();
    talk.engine.record_offer(&tenant, open.handoff_id, thread, "yes").await.unwrap();
    let unchanged = talk.store().handoff(open.handoff_id).await.unwrap();
    assert_eq!((unchanged.version, unchanged.notes.offered), (open.version, None));
}

/// K10: without unfinished work, a greeting is answered as usual; the message may also name the work.
#[tokio::test]
async fn k_10_continue_names_the_work_in_a_new_thread() {
    let talk = Talk::new(offline()).await;
    assert_ne!(talk.say("Hello").await.answer(), WELCOME);
    for words in [BEGIN, "cancel"] {
        talk.say(words).await;
    }
    let next = elsewhere(&talk, 5);
    assert!(next.say("continue creating the skill").await.answer().contains("- Purpose: sends Slack alerts"));
    assert_eq!(next.holder().await, "maker");
}

/// C-28: nobody speaks when the return is not expected.
#[tokio::test]
async fn c_28_return_that_is_not_expected_is_silent() {
    let talk = Talk::new(offline()).await;
    talk.say("I have an idea").await;
    let request = StartHandoff { return_expected: false, ..talk.asking_for("maker") };
    talk.engine.start_handoff(request).await.unwrap();
    talk.rest().await;
    let before = talk.said().await.len();
    let left = talk.say("cancel").await;
    assert_eq!(left.end.answer, None, "{}", left.log());
    assert_eq!(talk.said().await.len(), before + 1, "only the word of the user");
    assert_eq!(talk.holder().await, "a");
}

/// C-28: what was collected is dropped with the handoff, and nothing promises that it was saved.
#[tokio::test]
async fn c_28_state_that_is_not_preserved_is_dropped() {
    let talk = Talk::new(offline()).await;
    talk.say("I have an idea").await;
    let request = StartHandoff { preserve_state: false, ..talk.asking_for("maker") };
    talk.engine.start_handoff(request).await.unwrap();
    talk.rest().await;
    talk.say("It sends alerts").await;
    let left = talk.say("cancel").await;
    assert_eq!(left.answer(), "What can I do for you?");
    let thread = talk.request.caller.thread_id;
    let handoff = talk.store().handoffs(thread).await.unwrap().pop().unwrap();
    assert_eq!((handoff.state, handoff.workflow), (HandoffState::Cancelled, None));
    assert_eq!(talk.store().resumable_handoffs(thread).await.unwrap(), []);
    talk.say("continue").await;
    assert_eq!(talk.holder().await, "a");
}

/// K7: every reply of a holder has its progress.
#[tokio::test]
async fn k_7_progress_accompanies_every_reply() {
    let talk = Talk::new(offline()).await;
    let mut said = Vec::new();
    for words in [BEGIN, "Read the report", "Help me debug my crashing service", "yes", "table"] {
        let ran = talk.say(words).await;
        let progress = ran.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::Progress(progress) => Some(progress.clone()),
            _ => None,
        });
        let progress = progress.unwrap_or_else(|| panic!("{words}: {}", ran.log()));
        assert_eq!(progress.mode.as_deref(), Some("[Skill Creation Mode]"), "{words}");
        said.push((progress.step, progress.total, progress.text));
    }
    // Each answer counts; what is said about something else does not.
    let expected = [1, 2, 2, 2, 3].map(|answered| (1, 2, format!("Gathering - {answered}/4 answers")));
    assert_eq!(said, expected);
}
