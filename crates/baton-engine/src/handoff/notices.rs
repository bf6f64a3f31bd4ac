//! What is said once about a handoff, to the person and for the trail.

use baton_core::event::{EventKind, HandoffEvent, HandoffPhase};
use baton_core::store::{AuditEntry, HandoffEnd, HandoffSession, StepKind, StepState};
use serde_json::{Value, json};

use super::wording;
use crate::audit;
use crate::failure::Failure;
use crate::journal::Record;
use crate::scope::Scope;
use crate::workflow;

impl Scope {
    /// Says it at this place, once, whatever happens in between.
    async fn say_once(
        &self,
        segment: &str,
        kinds: Vec<EventKind>,
        audit: Vec<AuditEntry>,
    ) -> Result<(), Failure> {
        if let Some(notice) = self.notice(segment, kinds, audit)? {
            self.run.journal.keep_soon(notice).await;
        }
        Ok(())
    }

    /// What is said at this place; nothing if it was said before a crash.
    fn notice(
        &self,
        segment: &str,
        kinds: Vec<EventKind>,
        audit: Vec<AuditEntry>,
    ) -> Result<Option<Record>, Failure> {
        let place = self.at(segment);
        if place.is_finished() {
            return Ok(None);
        }
        let steps = vec![place.step(StepKind::Note, StepState::Finished, &Value::Null)?];
        let user = baton_core::message::Visibility::User;
        let events = kinds.into_iter().map(|kind| place.event_as(user, kind)).collect();
        Ok(Some(Record { steps, events, audit, ..Record::default() }))
    }

    fn progress_of(&self, handoff: &HandoffSession) -> Option<EventKind> {
        let target = self.run.agents.get(&handoff.target_agent_id)?;
        workflow::progress(target, handoff.workflow.as_ref()?)
    }

    fn on_record(&self, handoff: &HandoffSession, action: &str, decision: &str) -> Vec<AuditEntry> {
        let detail = json!({
            "handoff_id": handoff.handoff_id, "from": handoff.source_agent_id, "to": handoff.target_agent_id,
            "reason": handoff.handoff_reason, "state": handoff.state,
        });
        vec![audit::of_handoff(&self.run, &handoff.source_agent_id, action, decision, detail)]
    }
}

fn handed(handoff: &HandoffSession, phase: HandoffPhase, message: String) -> EventKind {
    EventKind::Handoff(HandoffEvent {
        handoff_id: handoff.handoff_id,
        phase,
        from: handoff.source_agent_id.clone(),
        to: handoff.target_agent_id.clone(),
        reason: handoff.handoff_reason.clone(),
        message,
    })
}

/// At once, before the target is asked anything.
pub(crate) async fn connecting(scope: &Scope, handoff: &HandoffSession) -> Result<(), Failure> {
    let Some(target) = scope.run.agents.get(&handoff.target_agent_id) else { return Ok(()) };
    let sentence = wording::connecting(target);
    scope.say_once("connecting", vec![handed(handoff, HandoffPhase::Connecting, sentence)], Vec::new()).await
}

/// The target has the thread.
pub(crate) async fn active(scope: &Scope, handoff: &HandoffSession, sentence: String) -> Result<(), Failure> {
    let mut kinds = vec![handed(handoff, HandoffPhase::Active, sentence)];
    kinds.extend(scope.progress_of(handoff));
    scope.say_once("active", kinds, scope.on_record(handoff, "handoff.start", audit::ALLOWED)).await
}

/// Both at once, for a handoff that is opened in this run.
pub(crate) fn opened(scope: &Scope, handoff: &HandoffSession) -> Result<Record, Failure> {
    let target = scope.run.agents.get(&handoff.target_agent_id);
    let sentence = target.map(|target| wording::connecting(target)).unwrap_or_default();
    let mut active = vec![handed(handoff, HandoffPhase::Active, String::new())];
    active.extend(scope.progress_of(handoff));
    let connecting = vec![handed(handoff, HandoffPhase::Connecting, sentence)];
    let connecting = scope.notice("connecting", connecting, Vec::new())?;
    let audit = scope.on_record(handoff, "handoff.start", audit::ALLOWED);
    let active = scope.notice("active", active, audit)?;
    Ok(connecting.into_iter().chain(active).fold(Record::default(), Record::and))
}

/// The target is about to give it back.
pub(crate) async fn returning(scope: &Scope, handoff: &HandoffSession) -> Result<(), Failure> {
    let sentence = wording::returning(&scope.run.agents, handoff);
    scope.say_once("returning", vec![handed(handoff, HandoffPhase::Returning, sentence)], Vec::new()).await
}

/// It has ended. Whoever did not hear that it was about to is told with it.
pub(crate) async fn ended(scope: &Scope, handoff: &HandoffSession, sentence: String) -> Result<(), Failure> {
    let (phase, decision) = match handoff.notes.end {
        Some(HandoffEnd::Completed) => (HandoffPhase::Completed, "completed"),
        Some(HandoffEnd::Failed) => (HandoffPhase::Error, "failed"),
        _ => (HandoffPhase::Cancelled, "cancelled"),
    };
    let kinds = vec![handed(handoff, phase, sentence)];
    scope.say_once("ended", kinds, scope.on_record(handoff, "handoff.end", decision)).await
}
