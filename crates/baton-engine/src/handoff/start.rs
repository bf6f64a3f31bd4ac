//! Starts a handoff in the middle of a run: the source agent calls a transfer tool, or the user's message matches a trigger.

use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::store::{
    HandoffChange, HandoffEnd, HandoffNotes, HandoffOrigin, HandoffSession, HandoffState, NotifiedParty,
    StepKind, StepState,
};
use baton_core::{HandoffId, StoreError, TenantId};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::announcement::Announcement;
use super::negotiation::{activate, negotiate};
use super::remote_target::or_unavailable;
use super::{estimate, holder_run, messages};
use crate::failure::Failure;
use crate::hops;
use crate::input::Input;
use crate::journal::Record;
use crate::lease::{self, HandoffLease};
use crate::outcome::Outcome;
use crate::redaction::{head, redact, redact_value, tail};
use crate::remote;
use crate::run;
use crate::scope::Scope;

/// Maximum length of [`HandoffOffer::reason`] in a stored session, in characters.
const MAX_REASON_CHARS: usize = 500;

/// A thread that the source agent offers to `target`, with the reason and the context.
#[derive(Debug)]
pub(crate) struct HandoffOffer {
    pub(crate) target: Arc<Agent>,
    pub(crate) reason: String,
    pub(crate) summary: String,
    /// Facts by name. The target's workflow does not ask for the ones it collects.
    pub(crate) known: Map<String, Value>,
    /// The handoff that was paused for this one.
    pub(crate) paused: Option<HandoffId>,
    /// The handoff of another thread that goes on in this one.
    pub(crate) moved: Option<Box<HandoffSession>>,
    pub(crate) announcement: Announcement,
}

/// Result of [`start`].
#[derive(Debug)]
pub(crate) enum StartOutcome {
    /// The target holds the thread; this is its first answer.
    Answered(Box<Outcome>),
    /// The target took the thread and returned it within its first answer.
    Returned(Arc<HandoffLease>),
    /// The target did not take the thread, or failed at once. The caller picks another agent.
    Refused(Failure),
}

/// Opens a handoff session and runs the target in the scope `child` with `input`. An `Err` ends the run; a refusal or a failure
/// of the target is [`StartOutcome::Refused`].
pub(crate) async fn start(
    scope: &Scope,
    child: Scope,
    offer: &HandoffOffer,
    input: Input,
) -> Result<StartOutcome, Failure> {
    let lease = match open_session(scope, &child, offer, &input).await {
        Ok(lease) => Arc::new(lease),
        Err(failure) if failure.is_fatal(&scope.run.control.cancel) && !is_refusal(&failure) => {
            return Err(failure);
        }
        Err(failure) => {
            let refusal = start_refused(scope, offer, failure);
            let declined = hops::declined_handoff(scope, &offer.target, &stored_reason(scope, offer));
            scope.run.recorder.journal.commit_soon(declined).await;
            if let (true, Failure::HandoffRejected { .. }) = (offer.target.kind.is_remote(), &refusal) {
                // The reason of an agent that declines is for the user too.
                let text = redact(&offer.target, &refusal.to_string());
                scope.emit(Visibility::User, EventKind::Status { text }).await;
            }
            return Ok(StartOutcome::Refused(refusal));
        }
    };
    match run::run(child.with_lease(&lease), input).await {
        Ok(outcome) => match holder_run::after_answer(scope, &lease, &outcome).await? {
            holder_run::HolderState::Held => {
                messages::announce_progress(scope, &lease.session()).await?;
                Ok(StartOutcome::Answered(Box::new(outcome)))
            }
            holder_run::HolderState::Ended => Ok(StartOutcome::Returned(lease)),
        },
        Err(failure) if failure.is_fatal(&scope.run.control.cancel) => Err(failure),
        Err(failure) => {
            tracing::warn!(thread_id = %scope.run.caller.thread_id, %failure, "a handoff failed at once");
            let run = scope.run.run_id;
            let ended = |handoff: &mut HandoffSession| {
                lease::set_ended(handoff, HandoffEnd::Failed, Some(run));
                // The source agent gets the failure as the result of its tool call, so it needs no end notice.
                handoff.notes.told = NotifiedParty::Agent;
            };
            lease::commit_change(&scope.run, &lease, ended).await;
            let sentence = messages::unavailable_message(&offer.target);
            messages::announce_ended(scope, &lease.session(), sentence.clone()).await?;
            Ok(StartOutcome::Refused(Failure::HandoffUnavailable(sentence)))
        }
    }
}

/// Whether the store rejected the handoff by a rule, as opposed to being unavailable.
fn is_refusal(failure: &Failure) -> bool {
    matches!(failure, Failure::Store(StoreError::HandoffActive(_) | StoreError::TooManyHandoffs(_)))
}

fn start_refused(scope: &Scope, offer: &HandoffOffer, failure: Failure) -> Failure {
    match failure {
        Failure::Store(StoreError::HandoffActive(_)) => {
            let holder =
                scope.run.handoff.as_ref().and_then(|one| scope.run.agents.get(&one.target_agent_id));
            Failure::HandoffActive(messages::occupied_message(holder.unwrap_or(&offer.target)))
        }
        Failure::Store(error @ StoreError::TooManyHandoffs(_)) => {
            Failure::HandoffRejected { agent: offer.target.name.clone(), reason: error.to_string() }
        }
        other => other,
    }
}

/// Whether the journal already holds the lease for this place, written before a crash.
pub(crate) fn is_started(scope: &Scope) -> bool {
    scope.run.recorder.steps.contains_key(scope.at("lease").path())
}

/// Negotiates with the target, asks it if it is a remote agent, and commits the lease, the routing step and the announcement in one append. After a crash, returns
/// the handoff that this place has already opened.
async fn open_session(
    scope: &Scope,
    child: &Scope,
    offer: &HandoffOffer,
    input: &Input,
) -> Result<HandoffLease, Failure> {
    let place = scope.at("lease");
    if let Some(id) = place.step().finished()? {
        return Ok(HandoffLease::new(scope.run.store.handoff(id).await?));
    }
    negotiate(&scope.run.models, &offer.target, &scope.run.request.rights)?;
    let (lease, _) = new_lease(scope, offer);
    let origin = HandoffOrigin {
        opened_in: Some((scope.run.run_id, child.path().to_owned())),
        query_class: scope.run.query_class().to_owned(),
        request: scope.run.request_fingerprint(),
    };
    let estimated_seconds = estimate::estimate(&*scope.run.store, &offer.target.name).await;
    let opened = lease.change(|handoff| {
        handoff.notes.origin = Some(Box::new(origin));
        handoff.notes.estimated_seconds = estimated_seconds;
    });
    let id = opened.session.handoff_id;
    if offer.target.kind.is_remote() {
        let offered = Box::pin(remote::handoff::offer(child, &opened.session, input)).await;
        offered.map_err(|failure| or_unavailable(&offer.target, failure))?;
    }
    let routing = Record {
        steps: vec![place.step().build(StepKind::Note, StepState::Finished, &id)?],
        handoffs: vec![opened],
        ..Record::default()
    };
    let opened = messages::opened_record(scope, &lease.session(), &offer.target, &offer.announcement)?;
    scope.run.recorder.journal.commit(routing.and(opened)).await?;
    log_started(&scope.run.caller.tenant, &lease.session());
    Ok(lease)
}

/// Logs a handoff once it is stored.
pub(super) fn log_started(tenant: &TenantId, handoff: &HandoffSession) {
    tracing::info!(
        thread_id = %handoff.thread_id, tenant_id = %tenant, handoff_id = %handoff.handoff_id,
        source_agent = %handoff.source_agent_id, target_agent = %handoff.target_agent_id,
        handoff_reason = %handoff.handoff_reason, by = "handoff", "Handoff initiated"
    );
}

fn stored_reason(scope: &Scope, offer: &HandoffOffer) -> String {
    head(&redact(scope.agent(), offer.reason.trim()), MAX_REASON_CHARS)
}

/// A lease that is not stored yet, with the target's workflow at its first state, and the change that stores it.
pub(crate) fn new_lease(scope: &Scope, offer: &HandoffOffer) -> (HandoffLease, HandoffChange) {
    let lease = HandoffLease::opened(new_session(scope, offer), scope.run.policy.max_open_handoffs);
    let opened = lease.change(|handoff| {
        handoff.workflow = offer.moved.as_ref().and_then(|moved| moved.workflow.clone());
        activate(handoff, &offer.target, &offer.known);
        handoff.notes.told = NotifiedParty::Person;
    });
    (lease, opened)
}

fn new_session(scope: &Scope, offer: &HandoffOffer) -> HandoffSession {
    let (giver, policy) = (scope.agent(), &scope.run.policy);
    let known = redact_value(giver, &Value::Object(offer.known.clone()));
    let notes = HandoffNotes {
        since: scope.run.request.message_number,
        recent: policy.recent_messages,
        paused: offer.paused,
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
        context_summary: tail(&redact(giver, &offer.summary), policy.context_max_chars),
        handoff_reason: stored_reason(scope, offer),
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

/// Whether a transfer hands over the whole thread. Sub-agents and agents that do not speak to the user have no thread to give.
pub(crate) fn is_thread_handoff(scope: &Scope, target: &Agent) -> bool {
    target.accepts_handoff.is_some() && scope.is_user_facing() && !scope.session.bounds.is_sub_agent()
}
