//! Decides whether an agent accepts a thread, before the thread is handed to it.

use baton_core::Rights;
use baton_core::agent::{AcceptsHandoff, Agent};
use baton_core::remote::{RemoteLink, RemoteTask};
use baton_core::store::{Activation, HandoffSession, HandoffState, LastTopic, NotifiedParty};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::messages;
use crate::failure::Failure;
use crate::models::ModelRegistry;
use crate::workflow;

/// Permission that a caller needs to start a handoff.
pub(crate) const INITIATE_PERMISSION: &str = "handoff:initiate";

/// Returns the target's terms, or the reason why it cannot take the thread: it accepts no handoffs, a permission is missing, or it
/// has no model. A remote agent is asked after this, with [`crate::remote::handoff::offer`].
pub(crate) fn negotiate<'a>(
    models: &ModelRegistry,
    target: &'a Agent,
    rights: &Rights,
) -> Result<&'a AcceptsHandoff, Failure> {
    let Some(terms) = &target.accepts_handoff else {
        let reason = "it answers questions, but does not take over conversations".to_owned();
        return Err(Failure::HandoffRejected { agent: target.name.clone(), reason });
    };
    let needed = [Some(INITIATE_PERMISSION), terms.permission.as_ref().map(baton_core::Permission::as_str)];
    if let Some(missing) = needed.into_iter().flatten().find(|needed| !rights.allow(needed)) {
        return Err(Failure::NotAllowed(missing.to_owned()));
    }
    if !target.kind.is_remote() && models.candidates(target).is_err() {
        return Err(Failure::HandoffUnavailable(messages::unavailable_message(target)));
    }
    Ok(terms)
}

/// State of a new lease: the workflow, filled with the values in `known`, and the expiry time.
pub(crate) fn new_activation(target: &Agent, known: &Map<String, Value>) -> Activation {
    let workflow = target.workflow.as_ref().map(|workflow| workflow::begin(workflow, known));
    let length = target.accepts_handoff.as_ref().map(|terms| terms.max_session.get());
    let expires_at = length.and_then(|length| Timestamp::now().saturating_add(length).ok());
    Activation { workflow, expires_at }
}

/// Activates the lease, for the first time or again. A resumed handoff keeps its workflow state.
pub(crate) fn activate(handoff: &mut HandoffSession, target: &Agent, known: &Map<String, Value>) {
    let Activation { workflow, expires_at } = new_activation(target, known);
    handoff.state = HandoffState::Active;
    handoff.workflow = handoff.workflow.take().or(workflow);
    handoff.expires_at = expires_at;
    let notes = &mut handoff.notes;
    if let Some(link) = &mut notes.remote {
        // The task of the lease before was cancelled.
        let task = RemoteTask { context_id: link.task.context_id.clone(), ..RemoteTask::default() };
        **link = RemoteLink { task, ..RemoteLink::default() };
    }
    (notes.end, notes.ended_in, notes.failures) = (None, None, 0);
    (notes.told, notes.topic, notes.second) = (NotifiedParty::Nobody, LastTopic::Other, None);
}
