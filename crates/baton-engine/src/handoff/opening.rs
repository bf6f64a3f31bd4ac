//! In the middle of a run an agent gets the thread: by a colleague's decision, or because a trigger was said.

use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::store::{HandoffEnd, HandoffNotes, HandoffSession, HandoffState, StepKind, StepState, Told};
use baton_core::{HandoffId, StoreError};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::lease::{self, Lease};
use super::terms::{activate, negotiate};
use super::{holding, notices, wording};
use crate::failure::Failure;
use crate::journal::Record;
use crate::outcome::Outcome;
use crate::patterns::handover::{head, shared, shared_value, tail};
use crate::run::{self, Input};
use crate::scope::Scope;

/// Of why it is handed over, in characters.
const REASON: usize = 500;

/// What is offered to the target.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) target: Arc<Agent>,
    pub(crate) reason: String,
    pub(crate) summary: String,
    /// Facts by name; those that the target's workflow asks for are not asked again.
    pub(crate) known: Map<String, Value>,
}

/// How it went.
#[derive(Debug)]
pub(crate) enum Opened {
    /// The target has the thread, and this is its first answer.
    Answered(Box<Outcome>),
    /// It had it, and has given it back.
    Back(Arc<Lease>),
    /// Somebody else has to answer.
    Refused(Failure),
}

/// Gives the thread to the target, whose part is `child`, and lets it speak. `input` is what it is told.
pub(crate) async fn open(
    scope: &Scope,
    child: Scope,
    offer: &Offer,
    input: Input,
) -> Result<Opened, Failure> {
    let lease = match begin(scope, offer).await {
        Ok(lease) => Arc::new(lease),
        Err(failure) if failure.ends_the_run(scope) && !is_refusal(&failure) => return Err(failure),
        Err(failure) => return Ok(Opened::Refused(refused(scope, offer, failure))),
    };
    let handoff = lease.session();
    tracing::info!(
        thread_id = %scope.run.caller.thread_id, tenant_id = %scope.run.caller.tenant,
        handoff_id = %handoff.handoff_id, source_agent = %scope.name(), target_agent = %offer.target.name,
        handoff_reason = %offer.reason, "Handoff initiated"
    );
    match run::run(child.holding(&lease), input).await {
        Ok(outcome) => match holding::after(scope, &lease, &outcome).await? {
            holding::After::Held => Ok(Opened::Answered(Box::new(outcome))),
            holding::After::Ended => Ok(Opened::Back(lease)),
        },
        Err(failure) if failure.ends_the_run(scope) => Err(failure),
        Err(failure) => {
            tracing::warn!(thread_id = %scope.run.caller.thread_id, %failure, "a handoff failed at once");
            let run = scope.run.run_id;
            let ended = |handoff: &mut HandoffSession| {
                lease::ended(handoff, HandoffEnd::Failed, Some(run));
                // The source agent learns of it from the result of this call.
                handoff.notes.told = Told::Agent;
            };
            scope.change(&lease, ended).await;
            let sentence = wording::unavailable(&offer.target);
            notices::ended(scope, &lease.session(), sentence.clone()).await?;
            Ok(Opened::Refused(Failure::HandoffUnavailable(sentence)))
        }
    }
}

/// Whether a failure of the store is one of the rules, not of the store.
fn is_refusal(failure: &Failure) -> bool {
    matches!(failure, Failure::Store(StoreError::HandoffActive(_) | StoreError::TooManyHandoffs(_)))
}

fn refused(scope: &Scope, offer: &Offer, failure: Failure) -> Failure {
    match failure {
        Failure::Store(StoreError::HandoffActive(_)) => {
            let holder =
                scope.run.handoff.as_ref().and_then(|one| scope.run.agents.get(&one.target_agent_id));
            Failure::HandoffActive(wording::occupied(holder.unwrap_or(&offer.target)))
        }
        Failure::Store(error @ StoreError::TooManyHandoffs(_)) => {
            Failure::HandoffRejected { agent: offer.target.name.clone(), reason: error.to_string() }
        }
        other => other,
    }
}

/// Whether the thread was given away here before a crash.
pub(crate) fn is_begun(scope: &Scope) -> bool {
    scope.run.steps.contains_key(scope.at("lease").path())
}

/// Asks the target and gives it the thread, which the person hears of then. After a crash it is the same handoff.
async fn begin(scope: &Scope, offer: &Offer) -> Result<Lease, Failure> {
    let place = scope.at("lease");
    if let Some(id) = place.finished()? {
        return Ok(Lease::new(scope.run.store.handoff(id).await?));
    }
    negotiate(&scope.run.engine, &offer.target, &scope.run.rights)?;
    let lease = Lease::opened(new(scope, offer), scope.run.engine.parts.policy.max_open_handoffs);
    let opened = lease.change(|handoff| {
        activate(handoff, &offer.target, &offer.known);
        handoff.notes.told = Told::Person;
    });
    let id = opened.session.handoff_id;
    let begun = Record {
        steps: vec![place.step(StepKind::Note, StepState::Finished, &id)?],
        handoffs: vec![opened],
        ..Record::default()
    };
    scope.run.journal.keep(begun.and(notices::opened(scope, &lease.session())?)).await?;
    Ok(lease)
}

fn new(scope: &Scope, offer: &Offer) -> HandoffSession {
    let (giver, policy) = (&scope.agent, &scope.run.engine.parts.policy);
    let known = shared_value(giver, &Value::Object(offer.known.clone()));
    let notes = HandoffNotes {
        since: scope.run.message_number,
        recent: policy.recent_messages,
        ..HandoffNotes::default()
    };
    let now = Timestamp::now();
    HandoffSession {
        handoff_id: HandoffId::from_uuid(Uuid::now_v7()),
        thread_id: scope.run.caller.thread_id,
        user_id: scope.run.caller.user.clone(),
        source_agent_id: giver.name.clone(),
        target_agent_id: offer.target.name.clone(),
        state: HandoffState::Pending,
        context_summary: tail(&shared(giver, &offer.summary), policy.context_max_chars),
        handoff_reason: head(&shared(giver, offer.reason.trim()), REASON),
        started_at: now,
        updated_at: now,
        completed_at: None,
        result_summary: None,
        artifacts_created: Vec::new(),
        metadata: if offer.known.is_empty() { Value::Null } else { json!({ "context": known }) },
        expires_at: None,
        notes,
        next: None,
        workflow: None,
        version: 0,
    }
}

/// Whether a transfer gives the target the whole thread: somebody behind the scenes has none to give.
pub(crate) fn is_for_thread(scope: &Scope, target: &Agent) -> bool {
    target.accepts_handoff.is_some() && scope.is_for_the_person() && !scope.bounds.is_sub_agent
}
