//! The questions of a workflow as requests: they stand in the list of approvals, and are answered there or by the next message.

use baton_core::event::EventKind;
use baton_core::message::Part;
use baton_core::store::{
    Approval, ApprovalKind, ApprovalStatus, AuditQuery, PageRequest, RunQuery, RunStatus,
};
use baton_core::{Permission, Rights, RunId, StoreError, UserId};
use baton_engine::{DecideError, DecisionInput, RunRequest, SubmitOptions, Verdict};
use serde_json::{Value, json};

use super::guided::{WORDS, guided};
use super::{Calls, stands};
use crate::handoffs::Talk;

async fn open(talk: &Talk) -> Vec<Approval> {
    talk.store().open_approvals(talk.request.caller.thread_id).await.unwrap()
}

/// The only open question.
async fn asked(talk: &Talk) -> Approval {
    let [asked] = <[Approval; 1]>::try_from(open(talk).await).unwrap();
    asked
}

async fn now(talk: &Talk, asked: &Approval) -> Approval {
    talk.store().approval(asked.request.approval_id).await.unwrap()
}

fn answer(text: &str) -> DecisionInput {
    DecisionInput { answer: Some(json!(text)), ..DecisionInput::new(Verdict::Approve) }
}

async fn decide(talk: &Talk, asked: &Approval, input: DecisionInput) -> Result<Approval, DecideError> {
    let (tenant, user) = (&talk.request.caller.tenant, &talk.request.caller.user);
    talk.engine.decide(tenant, asked.request.approval_id, user, input).await
}

/// What each event about a request says, in order.
async fn told(talk: &Talk) -> Vec<(String, ApprovalStatus)> {
    let events = talk.events().await;
    let told = events.iter().filter_map(|event| match &event.kind {
        EventKind::Approval(one) => Some((one.request.preview.heading.clone(), one.outcome.status)),
        _ => None,
    });
    told.collect()
}

/// A conversation that has come to this many of [`WORDS`].
async fn talk_after(said: usize) -> (Talk, Calls) {
    let calls = Calls::default();
    let talk = Talk::new(guided(&calls)).await;
    for words in &WORDS[..said] {
        assert_eq!(talk.say(words).await.end.status, RunStatus::Completed);
    }
    (talk, calls)
}

#[tokio::test]
async fn question_is_a_request_until_the_next_message() {
    let (talk, _) = talk_after(1).await;
    let first = asked(&talk).await;
    let (request, handoff) = (&first.request, talk.open().await.unwrap());
    assert_eq!((request.kind, request.agent.as_str()), (ApprovalKind::Question, "maker"));
    assert_eq!(request.preview.heading, "What is the format?");
    assert_eq!(request.choices, ["bullets", "table"]);
    assert_eq!(request.schema, json!({"type": "string", "enum": ["bullets", "table"]}));
    assert_eq!(
        (request.handoff_id, Some(request.expires_at)),
        (Some(handoff.handoff_id), handoff.expires_at)
    );
    let ran = talk.say("table").await;
    let settled = now(&talk, &first).await.outcome;
    assert_eq!((settled.status, settled.answer), (ApprovalStatus::Answered, Some(json!("table"))));
    assert_eq!(settled.answer_run_id, Some(ran.events[0].run_id));
    assert_eq!(settled.decided_by, Some(talk.request.caller.user.clone()));
    assert_eq!(asked(&talk).await.request.preview.heading, "What is the name?");
    let expected = [
        ("What is the format?", ApprovalStatus::Pending),
        ("What is the format?", ApprovalStatus::Answered),
        ("What is the name?", ApprovalStatus::Pending),
    ];
    assert_eq!(told(&talk).await, expected.map(|(text, status)| (text.to_owned(), status)));
}

/// The answer is the person's message, once; a second decision is refused.
#[tokio::test]
async fn request_is_answered_once_with_a_message() {
    let (talk, _) = talk_after(2).await;
    let name = asked(&talk).await;
    for (wrong, pointer) in [
        (DecisionInput::new(Verdict::Approve), "/answer"),
        (DecisionInput::new(Verdict::Deny), "/decision"),
        (answer(""), "/answer"),
    ] {
        let refused = decide(&talk, &name, wrong).await;
        assert!(
            matches!(&refused, Err(DecideError::Invalid { pointer: at, .. }) if at == pointer),
            "{refused:?}"
        );
    }
    let other = UserId::parse("bob").unwrap();
    let tenant = &talk.request.caller.tenant;
    let by_other = talk.engine.decide(tenant, name.request.approval_id, &other, answer("Slack Alert")).await;
    assert!(matches!(by_other, Err(DecideError::NotTheUser)), "{by_other:?}");
    let decided = decide(&talk, &name, answer("Slack Alert")).await.unwrap();
    assert_eq!(decided.outcome.status, ApprovalStatus::Answered);
    talk.rest().await;
    let run = talk.store().run(decided.outcome.answer_run_id.unwrap()).await.unwrap();
    assert_eq!((run.status, run.agent.as_str()), (RunStatus::Completed, "maker"));
    assert_eq!(stands(&talk).await.data["values"]["name"], "Slack Alert");
    let again = decide(&talk, &name, answer("Other")).await;
    assert!(matches!(again, Err(DecideError::Settled(_))), "{again:?}");
    let said = talk.said().await;
    assert_eq!(said.iter().filter(|line| *line == "person: Slack Alert").count(), 1, "{said:?}");
    assert_eq!(asked(&talk).await.request.preview.heading, "What is the triggers?");
    let answered = ("What is the name?".to_owned(), ApprovalStatus::Answered);
    assert_eq!(told(&talk).await.iter().filter(|one| **one == answered).count(), 1);
}

/// A yes to the request is the person's own yes: the tool that follows needs no approval of its own. A no is one, too.
#[tokio::test]
async fn confirmation_is_given_or_refused_by_the_request() {
    for (input, saved) in [(answer("YES"), 1), (DecisionInput::new(Verdict::Deny), 0)] {
        let (talk, calls) = talk_after(4).await;
        let save = asked(&talk).await;
        assert_eq!((save.request.preview.heading.as_str(), save.request.choices.len()), ("Save it?", 2));
        decide(&talk, &save, input).await.unwrap();
        talk.rest().await;
        assert_eq!(calls.count(), [1, 1, saved]);
        assert_eq!(talk.open().await.is_none(), saved == 1);
        assert_eq!(open(&talk).await.len(), 1 - saved);
    }
}

/// Leaving closes the question, by a word and by the button; coming back asks it again.
#[tokio::test]
async fn question_closes_with_the_handoff_and_opens_again() {
    for by_word in [true, false] {
        let (talk, _) = talk_after(2).await;
        let left = asked(&talk).await;
        if by_word {
            talk.say("cancel").await;
        } else {
            talk.engine.exit_handoff(talk.leaving()).await.unwrap();
        }
        talk.rest().await;
        assert_eq!(now(&talk, &left).await.outcome.status, ApprovalStatus::Cancelled);
        assert!(open(&talk).await.is_empty());
        assert_eq!(told(&talk).await.last().unwrap().1, ApprovalStatus::Cancelled);
        let late = decide(&talk, &left, answer("Slack Alert")).await;
        assert!(matches!(late, Err(DecideError::Settled(_))), "{late:?}");
        talk.say("continue").await;
        let back = asked(&talk).await;
        assert_eq!(back.request.preview.heading, "What is the name?");
        assert_ne!(back.request.approval_id, left.request.approval_id);
    }
}

#[tokio::test]
async fn expiry_of_the_handoff_closes_its_question() {
    let (talk, _) = talk_after(2).await;
    let asked = asked(&talk).await;
    let mut handoff = talk.open().await.unwrap();
    handoff.expires_at = Some(jiff::Timestamp::now());
    talk.store().update_handoff(handoff).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    let (tenant, thread) = (&talk.request.caller.tenant, talk.request.caller.thread_id);
    assert!(talk.engine.open_handoff(tenant, thread).await.unwrap().is_none());
    assert_eq!(now(&talk, &asked).await.outcome.status, ApprovalStatus::Cancelled);
}

/// A message for another agent is no answer.
#[tokio::test]
async fn question_stays_open_for_a_message_to_another_agent() {
    let calls = Calls::default();
    let setup = guided(&calls).with("maker", |agent| {
        super::maker(agent);
        agent.accepts_handoff.as_mut().unwrap().exclusive = false;
    });
    let talk = Talk::new(setup).await;
    talk.say(WORDS[0]).await;
    let format = asked(&talk).await;
    let mut aside = talk.saying("What time is it?");
    aside.overrides.is_named = true;
    talk.engine.start(aside).await.unwrap().finish().await;
    assert_eq!(asked(&talk).await, format);
}

/// A message that was sent before the question is about something else.
#[tokio::test]
async fn message_sent_before_the_question_does_not_answer_it() {
    let talk = Talk::new(guided(&Calls::default())).await;
    let message = |text: &str| RunRequest { input: vec![Part::text(text)], ..talk.request.clone() };
    let (first, early) = tokio::join!(
        talk.engine.submit(message(WORDS[0]), SubmitOptions::default()),
        talk.engine.submit(message("And hello"), SubmitOptions::default())
    );
    first.unwrap();
    let early = talk.store().run(early.unwrap().run_id).await.unwrap();
    talk.rest().await;
    let open = asked(&talk).await;
    assert_eq!(open.run_id, early.run_id, "asked again");
    let before: Vec<Approval> = talk.store().run_approvals(first_run(&talk).await).await.unwrap();
    assert_eq!(before.len(), 1);
    assert!(before[0].request.created_at > early.created_at, "the message came first");
    let outcome = &before[0].outcome;
    assert_eq!((outcome.status, &outcome.decided_by), (ApprovalStatus::Cancelled, &None));
    let trail = talk.store().audit(AuditQuery::default(), PageRequest::default()).await.unwrap().data;
    assert!(trail.iter().all(|one| one.entry.action != "approval.decide"));
}

async fn first_run(talk: &Talk) -> RunId {
    let runs = talk.store().runs(RunQuery::default(), PageRequest::default()).await.unwrap().data;
    runs.iter().map(|run| run.run_id).min().unwrap()
}

/// The answer is a message of its own, so its run has the rights of the caller who gave it.
#[tokio::test]
async fn answer_has_the_rights_of_its_caller() {
    let (talk, _) = talk_after(2).await;
    let name = asked(&talk).await;
    let rights: Rights = Permission::parse("thread:write").into_iter().collect();
    let input = DecisionInput { rights: rights.clone(), ..answer("Slack Alert") };
    let decided = decide(&talk, &name, input).await.unwrap();
    talk.rest().await;
    let run = talk.store().run(decided.outcome.answer_run_id.unwrap()).await.unwrap();
    assert_eq!(run.request["rights"], json!(rights));
}

/// An answer and a message at the same time: the question is settled once, every accepted text is in the history once, and a refused
/// answer says why.
#[tokio::test(flavor = "multi_thread")]
async fn answer_raced_with_a_message_settles_the_question_once() {
    for _ in 0..40 {
        let (talk, _) = talk_after(2).await;
        let name = asked(&talk).await;
        let message = RunRequest { input: vec![Part::text("By Message")], ..talk.request.clone() };
        let (sent, decided) = tokio::join!(
            talk.engine.submit(message, SubmitOptions::default()),
            decide(&talk, &name, answer("By Answer"))
        );
        sent.unwrap();
        talk.rest().await;
        let expected = match decided {
            Ok(_) => "By Answer",
            Err(DecideError::Settled(_) | DecideError::Store(StoreError::ThreadBusy(_))) => "By Message",
            Err(other) => panic!("{other:?}"),
        };
        let settled = now(&talk, &name).await.outcome;
        assert_eq!((settled.status, settled.answer), (ApprovalStatus::Answered, Some(json!(expected))));
        assert_eq!(stands(&talk).await.data["values"]["name"], expected);
        let said = talk.said().await;
        let count = |text: &str| said.iter().filter(|line| **line == format!("person: {text}")).count();
        assert_eq!((count("By Message"), count("By Answer")), (1, usize::from(expected == "By Answer")));
        assert!(open(&talk).await.len() <= 1);
        let runs = talk.store().runs(RunQuery::default(), PageRequest::default()).await.unwrap().data;
        assert!(runs.iter().all(|run| run.status == RunStatus::Completed));
    }
}

/// Values of the answer that a workflow cannot take are refused before anything is said.
#[tokio::test]
async fn answer_must_be_one_of_the_choices() {
    let (talk, _) = talk_after(1).await;
    let format = asked(&talk).await;
    let refused = decide(&talk, &format, answer("a poem")).await;
    assert!(matches!(refused, Err(DecideError::Invalid { .. })), "{refused:?}");
    assert_eq!(asked(&talk).await, format);
    // By its number, as everywhere.
    let decided = decide(&talk, &format, answer("2")).await.unwrap();
    assert_eq!(decided.outcome.answer, Some(Value::String("table".to_owned())));
    talk.rest().await;
    assert_eq!(stands(&talk).await.data["values"]["format"], "table");
}
