//! The last record of a run: its last events, its answer as a message, and its end.

use baton_core::SessionId;
use baton_core::event::{self, EventKind, Source};
use baton_core::message::Visibility;
use baton_core::store::work::{RunEnd, SessionChange};
use baton_core::store::{NewEvent, RunEndData, RunRecord, RunStatus, Step, StepData, StepKind, StepState};
use jiff::Timestamp;

use crate::audit;
use crate::failure::Failure;
use crate::journal::Record;
use crate::ledger::Ledger;
use crate::outcome::Outcome;

/// Builds the last record: the answer becomes a message of the thread, and the run has ended.
pub(crate) fn last_record(
    record: &RunRecord,
    keeps: bool,
    status: RunStatus,
    ledger: &Ledger,
    sources: Vec<Source>,
    outcome: Option<&Outcome>,
    failure: Option<&Failure>,
) -> Record {
    let answer = outcome.map(|outcome| &outcome.answer);
    let end = RunEndData {
        answer: answer.map(|answer| answer.text.clone()),
        value: answer.and_then(|answer| answer.value.clone()),
        limit: answer.and_then(|answer| answer.limit).map(|limit| limit.word().to_owned()),
        answered_by: outcome.map(|outcome| outcome.agent.clone()),
        sources,
        dissent: outcome.map(|outcome| outcome.dissent.clone()).unwrap_or_default(),
        files: answer.map(|answer| answer.files.clone()).unwrap_or_default(),
        code: failure.map(|failure| failure.code().to_owned()),
        message: failure.map(ToString::to_string),
    };
    let session_id = SessionId::root(record.run_id);
    let message = outcome.map(|outcome| outcome.message(record.run_id, Visibility::User));
    let (session_end, kind) = last_events(&session_id, status, ledger, &end);
    let files = message.as_ref().filter(|_| !end.files.is_empty()).map(|message| {
        let kind = EventKind::Files { message_id: message.id, files: end.files.clone() };
        event(record, Visibility::User, kind)
    });
    let last = [event(record, Visibility::Internal, session_end), event(record, Visibility::User, kind)];
    let events = files.into_iter().chain(last).collect();
    Record {
        steps: vec![session_step(record, &session_id, &end)],
        events,
        messages: message.into_iter().collect(),
        sessions: vec![session_change(session_id, record, status)],
        audit: vec![audit::of_run(record, record.agent.as_str(), "run.end", status.word())],
        // An agent that only delegated for the caller does not take over the conversation.
        holder: outcome.filter(|_| keeps).map(|_| record.agent.clone()),
        end: Some(RunEnd { status, end }),
        ..Record::default()
    }
}

/// The last events of the root session and of the run.
fn last_events(
    session_id: &SessionId,
    status: RunStatus,
    ledger: &Ledger,
    end: &RunEndData,
) -> (EventKind, EventKind) {
    let session_id = session_id.clone();
    let (usage, by_agent) = (ledger.spent(""), ledger.by_agent());
    let outcome = match status {
        RunStatus::Completed => event::RunOutcome::Success,
        RunStatus::Cancelled => event::RunOutcome::Cancelled,
        _ => {
            let (code, message) =
                (end.code.clone().unwrap_or_default(), end.message.clone().unwrap_or_default());
            let session =
                EventKind::SessionFailed { session_id, code: code.clone(), message: message.clone() };
            return (session, EventKind::RunFailed { code, message, usage, by_agent });
        }
    };
    let finished = EventKind::RunFinished {
        outcome,
        usage,
        limit: end.limit.clone(),
        answered_by: end.answered_by.clone(),
        sources: end.sources.clone(),
        by_agent,
    };
    (EventKind::SessionFinished { session_id }, finished)
}

/// The root session ends with the run.
fn session_step(record: &RunRecord, session_id: &SessionId, end: &RunEndData) -> Step {
    Step {
        path: record.agent.to_string(),
        session_id: session_id.clone(),
        kind: StepKind::Session,
        state: StepState::Finished,
        data: StepData::of(end),
        at: Timestamp::now(),
    }
}

/// An event of the root session.
pub(crate) fn event(record: &RunRecord, visibility: Visibility, kind: EventKind) -> NewEvent {
    let agent = record.agent.clone();
    let path = agent.as_str().into();
    NewEvent { at: Timestamp::now(), agent, path, visibility, kind }
}

/// A change of the root session's status.
pub(crate) fn session_change(session_id: SessionId, record: &RunRecord, status: RunStatus) -> SessionChange {
    let agent = record.agent.clone();
    SessionChange { session_id, path: agent.to_string(), agent, status, at: Timestamp::now() }
}
