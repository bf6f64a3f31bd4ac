//! The first record of a run: its first events, its session and its audit entry.

use baton_core::SessionId;
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::store::{RunRecord, RunStatus, Step, StepData, StepKind, StepState};
use jiff::Timestamp;

use crate::audit;
use crate::classifier::Classification;
use crate::journal::Record;
use crate::request::StoredRequest;
use crate::routing::RoutingDecision;
use crate::run_end::{event, session_change};

/// Builds the first record of a run. `record` names the agent that takes it, and need not contain the request.
pub(crate) fn first_record(record: &RunRecord, request: &StoredRequest, routing: &RoutingDecision) -> Record {
    let session_id = SessionId::root(record.run_id);
    let started = EventKind::SessionStarted { session_id: session_id.clone(), parent: None, why: None };
    let chosen = request.entry.as_ref().map(|Classification { domain, confidence, .. }| EventKind::Status {
        text: format!("`{}` was chosen: about {domain}, confidence {confidence:.2}", record.agent),
    });
    let mut events = vec![
        event(record, Visibility::User, EventKind::RunStarted { is_held: routing.is_held() }),
        event(record, Visibility::Internal, started),
    ];
    events.extend(chosen.map(|chosen| event(record, Visibility::Internal, chosen)));
    let step = Step {
        path: record.agent.to_string(),
        session_id: session_id.clone(),
        kind: StepKind::Session,
        state: StepState::Started,
        data: StepData::of(routing),
        at: Timestamp::now(),
    };
    Record {
        steps: vec![step],
        agent: routing.agent.clone(),
        events,
        sessions: vec![session_change(session_id, record, RunStatus::Running)],
        audit: vec![audit::start(record, request)],
        ..Record::default()
    }
}
