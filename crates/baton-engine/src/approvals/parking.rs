//! The record with which a run parks, and the one with which it continues.

use baton_core::SessionId;
use baton_core::event::{ApprovalEvent, EventKind};
use baton_core::message::Visibility;
use baton_core::store::work::RunEnd;
use baton_core::store::{
    ApprovalOutcome, ApprovalRequest, ApprovalStatus, NewEvent, RunEndData, RunRecord, RunStatus, Step,
    StepKind, StepState,
};
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use crate::audit;
use crate::journal::Record;
use crate::run_end::{event, session_change};
use crate::run_state::RunState;

/// Builds the record that parks the run. Also returns what it waits for.
pub(crate) fn park(state: &RunState, record: &RunRecord) -> (Record, Vec<ApprovalRequest>) {
    let (waits, ledger) = (&state.waits, &state.recorder.ledger);
    let interrupts = waits.all_open();
    let session_id = SessionId::root(record.run_id);
    let waits_for: Vec<Uuid> = interrupts.iter().map(|one| one.approval_id).collect();
    let waiting = EventKind::RunWaiting {
        interrupts: interrupts.clone(),
        waits_for: waits_for.clone(),
        usage: ledger.spent(""),
        by_agent: ledger.by_agent(),
    };
    let parked = Record {
        steps: vec![parked_step(state, record, true, StepState::Started)],
        events: vec![event(record, Visibility::User, waiting)],
        sessions: vec![session_change(session_id, record, RunStatus::Waiting)],
        audit: vec![audit::of_run(record, record.agent.as_str(), "run.wait", RunStatus::Waiting.word())],
        waits_for,
        end: Some(RunEnd { status: RunStatus::Waiting, end: RunEndData::default() }),
        ..Record::default()
    };
    (parked, interrupts)
}

/// Builds the record with which a run continues after it had parked.
pub(crate) fn resume(state: &RunState, record: &RunRecord, is_held: bool) -> Record {
    let session_id = SessionId::root(record.run_id);
    Record {
        steps: vec![parked_step(state, record, false, StepState::Finished)],
        events: vec![event(record, Visibility::User, EventKind::RunResumed { is_held })],
        sessions: vec![session_change(session_id, record, RunStatus::Running)],
        audit: vec![audit::of_run(record, "system", "run.resume", "decided")],
        ..Record::default()
    }
}

/// Closes the approvals that a run leaves undecided when it ends.
pub(crate) fn close(state: &RunState, record: &RunRecord) -> Record {
    withdraw(state.waits.unsettled(), |kind| event(record, Visibility::User, kind))
}

/// Closes approvals as cancelled. `event` makes the event of each.
pub(crate) fn withdraw(requests: Vec<ApprovalRequest>, event: impl Fn(EventKind) -> NewEvent) -> Record {
    let outcome = || ApprovalOutcome::closed(ApprovalStatus::Cancelled);
    let closed = requests.iter().map(|one| (one.approval_id, outcome())).collect();
    let events = requests
        .into_iter()
        .map(|request| event(EventKind::Approval(Box::new(ApprovalEvent { request, outcome: outcome() }))));
    Record { events: events.collect(), closed_approvals: closed, ..Record::default() }
}

fn parked_step(state: &RunState, record: &RunRecord, next: bool, step_state: StepState) -> Step {
    Step {
        path: format!("{}/{}", record.agent, state.waits.parked_segment(next)),
        session_id: SessionId::root(record.run_id),
        kind: StepKind::Wait,
        state: step_state,
        data: json!({ "open": state.waits.all_open().len() }).into(),
        at: Timestamp::now(),
    }
}
