//! Discards the saved state of an ended handoff, so that it is no longer offered to be resumed.

use std::sync::Arc;

use baton_core::store::HandoffSession;
use baton_core::{HandoffId, StoreError, TenantId, ThreadId};

use super::lease::change_stored;
use super::wording;
use crate::engine::Engine;
use crate::failure::Failure;

impl Engine {
    /// Discards the partial state of a handoff that has ended: it cannot be resumed any more. A second call changes nothing.
    /// Refused while the handoff is open.
    pub async fn discard_handoff(
        self: &Arc<Self>,
        tenant: &TenantId,
        thread: ThreadId,
        handoff: HandoffId,
    ) -> Result<HandoffSession, Failure> {
        // Ends the handoff if it has expired.
        self.open_handoff(tenant, thread).await?;
        let store = self.parts.store.tenant(tenant);
        let kept = store.handoff(handoff).await?;
        if kept.thread_id != thread {
            return Err(StoreError::NotFound("handoff").into());
        }
        self.must_have_ended(&kept)?;
        if !has_state(&kept) {
            return Ok(kept);
        }
        let discarded = change_stored(&*store, kept, discard).await?;
        // It may have been resumed between the read and the write.
        self.must_have_ended(&discarded)?;
        Ok(discarded)
    }

    fn must_have_ended(&self, handoff: &HandoffSession) -> Result<(), Failure> {
        if !handoff.state.is_open() {
            return Ok(());
        }
        let agents = self.agents();
        let holder = agents.get(&handoff.target_agent_id);
        let sentence =
            holder.map_or_else(|| "the handoff is active".to_owned(), |one| wording::occupied(one));
        Err(Failure::HandoffActive(sentence))
    }
}

fn has_state(handoff: &HandoffSession) -> bool {
    handoff.workflow.is_some() || handoff.notes.preserve_state
}

fn discard(handoff: &mut HandoffSession) {
    if !handoff.state.is_open() {
        handoff.workflow = None;
        handoff.notes.preserve_state = false;
    }
}
