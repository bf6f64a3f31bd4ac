//! Handoffs to remote agents outside of a run: the offer, and the end of the remote task.

use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::message::Part;
use baton_core::remote::{RemoteLink, RemoteMessage, RemoteTask};
use baton_core::store::{HandoffSession, MessageQuery, NewHandoff};
use baton_core::{RunId, TenantId, TenantStore};

use super::messages;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::redaction::redact;
use crate::remote::handoff::{cancel_held, offer_outside, outside_offer};

impl Engine {
    /// Asks a remote agent whether it takes the thread of `new`, which then knows the remote task. Without effect for local agents.
    pub(super) async fn offer_to_remote(
        &self,
        store: &dyn TenantStore,
        target: &Arc<Agent>,
        mut new: NewHandoff,
    ) -> Result<NewHandoff, Failure> {
        if !target.kind.is_remote() {
            return Ok(new);
        }
        let recent = self.recent_messages(store, &new).await?;
        let text = format!("{}\n\n{}", new.handoff_reason, new.context_summary);
        let message = RemoteMessage {
            message_id: new.handoff_id.as_uuid(),
            task: RemoteTask::new_in(new.thread_id.to_string()),
            parts: vec![Part::text(text.trim())],
            handoff: Some(Box::new(outside_offer(&new, recent))),
            run_id: RunId::from_uuid(new.handoff_id.as_uuid()),
            trace: None,
        };
        let link = offer_outside(&self.parts.extensions, target, message).await;
        new.notes.remote = Some(Box::new(link.map_err(|failure| or_unavailable(target, failure))?));
        Ok(new)
    }

    async fn recent_messages(
        &self,
        store: &dyn TenantStore,
        new: &NewHandoff,
    ) -> Result<Vec<(baton_core::Role, String)>, Failure> {
        let messages = store.messages(new.thread_id, MessageQuery::last(new.notes.recent)).await?;
        let agents = self.agents(store.tenant());
        let giver = agents.get(&new.source_agent_id);
        let masked = |text: String| giver.map_or_else(|| text.clone(), |giver| redact(giver, &text));
        Ok(messages.into_iter().map(|one| (one.message.role, masked(one.message.text()))).collect())
    }

    /// Cancels the remote task of a handoff that has ended.
    pub(super) fn release_remote(&self, tenant: &TenantId, handoff: &HandoffSession) {
        let agents = self.all_agents_of(tenant);
        if let Some(target) = agents.get(&handoff.target_agent_id) {
            self.release_link(target, handoff.notes.remote.as_deref());
        }
    }

    /// Cancels the remote task of a handoff that has ended or could not be stored.
    pub(super) fn release_link(&self, target: &Arc<Agent>, link: Option<&RemoteLink>) {
        cancel_held(&self.parts.extensions, target, link);
    }
}

/// The sentence for the user if a remote agent cannot be asked. The reason is for operators and is logged.
pub(super) fn or_unavailable(target: &Agent, failure: Failure) -> Failure {
    match failure {
        Failure::Unavailable(_) | Failure::Remote { .. } => {
            tracing::warn!(agent = %target.name, %failure, "a remote agent cannot be offered a thread");
            Failure::HandoffUnavailable(messages::unavailable_message(target))
        }
        other => other,
    }
}
