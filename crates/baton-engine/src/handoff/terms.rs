//! Whether an agent takes a thread over: asked before it is given to it.

use baton_core::Rights;
use baton_core::agent::{AcceptsHandoff, Agent};
use baton_core::store::{Activation, HandoffSession, HandoffState, Told, Topic};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::wording;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::workflow;

/// What somebody needs who has a thread handed over.
pub(crate) const INITIATE: &str = "handoff:initiate";

/// The target's answer: its terms, or why not.
pub(crate) fn negotiate<'a>(
    engine: &Engine,
    target: &'a Agent,
    rights: &Rights,
) -> Result<&'a AcceptsHandoff, Failure> {
    let Some(terms) = &target.accepts_handoff else {
        let reason = "it answers questions, but does not take over conversations".to_owned();
        return Err(Failure::HandoffRejected { agent: target.name.clone(), reason });
    };
    let needed = [Some(INITIATE), terms.permission.as_ref().map(baton_core::Permission::as_str)];
    if let Some(missing) = needed.into_iter().flatten().find(|needed| !rights.allow(needed)) {
        return Err(Failure::NotAllowed(missing.to_owned()));
    }
    if target.kind.is_remote() || engine.parts.models.candidates(target).is_err() {
        return Err(Failure::HandoffUnavailable(wording::unavailable(target)));
    }
    Ok(terms)
}

/// What the target begins with. What it knows already is not asked again.
pub(crate) fn activation(target: &Agent, known: &Map<String, Value>) -> Activation {
    let workflow = target.workflow.as_ref().map(|workflow| workflow::begin(workflow, known));
    let length = target.accepts_handoff.as_ref().map(|terms| terms.max_session.get());
    let expires_at = length.and_then(|length| Timestamp::now().saturating_add(length).ok());
    Activation { workflow, expires_at }
}

/// The target has the thread from now on, or again with what it had.
pub(crate) fn activate(handoff: &mut HandoffSession, target: &Agent, known: &Map<String, Value>) {
    let Activation { workflow, expires_at } = activation(target, known);
    handoff.state = HandoffState::Active;
    handoff.workflow = handoff.workflow.take().or(workflow);
    handoff.expires_at = expires_at;
    let notes = &mut handoff.notes;
    (notes.end, notes.ended_in, notes.failures) = (None, None, 0);
    (notes.told, notes.topic) = (Told::Nobody, Topic::Other);
}
