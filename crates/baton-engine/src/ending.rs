//! The end of a run: its last event, its answer as a message, and who is told.

use baton_core::SessionId;
use baton_core::event::{self, EventKind, Source};
use baton_core::message::Visibility;
use baton_core::store::work::{RunEnd, SessionChange};
use baton_core::store::{End, NewEvent, RunRecord, RunStatus, Step, StepKind, StepState};
use jiff::Timestamp;
use serde_json::json;

use crate::audit;
use crate::failure::Failure;
use crate::journal::Record;
use crate::ledger::Ledger;
use crate::outcome::Outcome;

/// The last write: the answer becomes part of the conversation, and the run has ended.
pub(crate) fn ending(
    record: &RunRecord,
    keeps: bool,
    status: RunStatus,
    ledger: &Ledger,
    sources: Vec<Source>,
    outcome: Option<&Outcome>,
    failure: Option<&Failure>,
) -> Record {
    let answer = outcome.map(|outcome| &outcome.answer);
    let end = End {
        answer: answer.map(|answer| answer.text.clone()),
        value: answer.and_then(|answer| answer.value.clone()),
        limit: answer.and_then(|answer| answer.limit).map(|limit| limit.word().to_owned()),
        answered_by: outcome.map(|outcome| outcome.agent.clone()),
        sources,
        dissent: outcome.map(|outcome| outcome.dissent.clone()).unwrap_or_default(),
        code: failure.map(|failure| failure.code().to_owned()),
        message: failure.map(ToString::to_string),
    };
    let session_id = SessionId::root(record.run_id);
    let (session_end, kind) = last_events(&session_id, status, ledger, &end);
    Record {
        steps: vec![session_step(record, &session_id, &end)],
        events: vec![event(record, Visibility::Internal, session_end), event(record, Visibility::User, kind)],
        messages: outcome
            .map(|outcome| outcome.message(record.run_id, Visibility::User))
            .into_iter()
            .collect(),
        sessions: vec![session_change(session_id, record, status)],
        audit: vec![audit::of_run(record, record.agent.as_str(), "run.end", status.word())],
        // Who asked others for the caller does not get the conversation for that.
        holder: outcome.filter(|_| keeps).map(|_| record.agent.clone()),
        end: Some(RunEnd { status, end }),
        ..Record::default()
    }
}

/// How the session and the run end for whoever listens.
fn last_events(
    session_id: &SessionId,
    status: RunStatus,
    ledger: &Ledger,
    end: &End,
) -> (EventKind, EventKind) {
    let session_id = session_id.clone();
    let (usage, by_agent) = (ledger.spent(""), ledger.by_agent());
    let outcome = match status {
        RunStatus::Completed => event::Outcome::Success,
        RunStatus::Cancelled => event::Outcome::Cancelled,
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

/// The run's own session is finished with the run.
fn session_step(record: &RunRecord, session_id: &SessionId, end: &End) -> Step {
    Step {
        path: record.agent.to_string(),
        session_id: session_id.clone(),
        kind: StepKind::Session,
        state: StepState::Finished,
        data: json!(end),
        at: Timestamp::now(),
    }
}

/// An event of the run's own session.
pub(crate) fn event(record: &RunRecord, visibility: Visibility, kind: EventKind) -> NewEvent {
    let agent = record.agent.clone();
    let path = agent.as_str().into();
    NewEvent { at: Timestamp::now(), agent, path, visibility, kind }
}

/// A session begins or ends.
pub(crate) fn session_change(session_id: SessionId, record: &RunRecord, status: RunStatus) -> SessionChange {
    let agent = record.agent.clone();
    SessionChange { session_id, path: agent.to_string(), agent, status, at: Timestamp::now() }
}
