//! The lease by which an agent holds a thread: how a run changes it, how it changes outside of a run, and how it ends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_core::store::{
    HandoffChange, HandoffEnd, HandoffSession, HandoffState, LastTopic, NotifiedParty, WorkflowState,
};
use baton_core::{RunId, StoreError, TenantStore};
use jiff::{SignedDuration, Timestamp};

use crate::agents::Agents;
use crate::failure::Failure;
use crate::journal::Record;
use crate::run_state::RunState;

/// Maximum number of attempts for an optimistic update.
const MAX_ATTEMPTS: u32 = 20;
/// A handoff that is still pending after this time has failed.
const OPENING_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);

/// A handoff session within a run. Its state is the stored one plus the changes that the run's next append commits.
#[derive(Debug)]
pub(crate) struct HandoffLease {
    session: Mutex<HandoffSession>,
    /// Set if this run opens the handoff: the maximum number of open handoffs of the target.
    max_open: Option<u32>,
}

impl HandoffLease {
    pub(crate) fn new(session: HandoffSession) -> Self {
        Self { session: Mutex::new(session), max_open: None }
    }

    /// A lease that is not stored yet. The store enforces `max_open` when the run commits it.
    pub(crate) fn opened(session: HandoffSession, max_open: u32) -> Self {
        Self { session: Mutex::new(session), max_open: Some(max_open) }
    }

    pub(crate) fn session(&self) -> HandoffSession {
        self.lock().clone()
    }

    pub(crate) fn workflow(&self) -> Option<WorkflowState> {
        self.lock().workflow.clone()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.lock().state.is_open()
    }

    /// Applies `change` and returns the new session, which the run must commit.
    #[must_use]
    pub(crate) fn change(&self, change: impl FnOnce(&mut HandoffSession)) -> HandoffChange {
        let mut session = self.lock();
        change(&mut session);
        HandoffChange { session: session.clone(), max_open: self.max_open }
    }

    fn lock(&self) -> MutexGuard<'_, HandoffSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Applies `change` and commits it with the run's next append, without waiting.
pub(crate) async fn commit_change(
    run: &RunState,
    lease: &HandoffLease,
    change: impl FnOnce(&mut HandoffSession),
) {
    // Nothing depends on a change after the end. If the store refuses it, the run goes on without it.
    let is_note = !lease.is_open();
    let handoffs = vec![lease.change(change)];
    run.recorder.journal.commit_soon(Record { handoffs, is_note, ..Record::default() }).await;
}

/// Ends the handoff with the run's next append, without waiting.
pub(crate) async fn commit_end(run: &RunState, lease: &HandoffLease, end: HandoffEnd) {
    commit_change(run, lease, |handoff| set_ended(handoff, end, Some(run.run_id))).await;
}

/// Changes a handoff outside of a run, by optimistic update. On a conflict, `change` is applied to the newer version, up to
/// [`MAX_ATTEMPTS`] times. Fails with [`Failure::NoHandoff`] if the handoff has ended in between, even if it was resumed: a slow
/// process must not end a resumed handoff.
pub(crate) async fn change_stored(
    store: &dyn TenantStore,
    mut known: HandoffSession,
    change: impl Fn(&mut HandoffSession) + Send,
) -> Result<HandoffSession, Failure> {
    for _ in 0..MAX_ATTEMPTS {
        let mut changed = known.clone();
        change(&mut changed);
        match store.update_handoff(changed).await {
            Err(StoreError::HandoffChanged) => {
                let now = store.handoff(known.handoff_id).await?;
                if known.state.is_open() && !is_same_lease(&known, &now) {
                    return Err(Failure::NoHandoff("the handoff has ended meanwhile"));
                }
                known = now;
            }
            updated => return Ok(updated?),
        }
    }
    Err(StoreError::HandoffChanged.into())
}

/// Whether an open handoff has not ended since `known` was read. Each activation sets a new `expires_at`; a pending handoff has
/// none.
fn is_same_lease(known: &HandoffSession, now: &HandoffSession) -> bool {
    now.state.is_open() && known.expires_at.is_none_or(|end| now.expires_at == Some(end))
}

/// State of a handoff that has ended with `end`.
pub(crate) fn state_after(end: HandoffEnd) -> HandoffState {
    match end {
        HandoffEnd::Completed => HandoffState::Completed,
        HandoffEnd::Declined | HandoffEnd::Left | HandoffEnd::Expired | HandoffEnd::Ended => {
            HandoffState::Cancelled
        }
        HandoffEnd::Failed => HandoffState::Error,
    }
}

/// Ends the handoff. Resets the notification state, and drops the workflow unless it is preserved for a resume.
pub(crate) fn set_ended(handoff: &mut HandoffSession, end: HandoffEnd, run: Option<RunId>) {
    handoff.state = state_after(end);
    handoff.expires_at = None;
    handoff.notes.end = Some(end);
    handoff.notes.ended_in = run.or(handoff.notes.ended_in);
    handoff.notes.told = NotifiedParty::Nobody;
    handoff.notes.topic = LastTopic::End;
    // A queued request is carried out by the run that acknowledges the end. After an expiry the user has left.
    let is_due = end != HandoffEnd::Expired;
    handoff.notes.second = handoff.notes.second.take().filter(|second| second.is_queued() && is_due);
    if !handoff.notes.preserve_state {
        handoff.workflow = None;
    }
}

/// How an open handoff has to end if no run is active on its thread: it has expired, its holder is gone, or the process that
/// opened or returned it died before completing that. `None` if it is valid.
pub(crate) fn overdue_end(agents: &Agents, handoff: &HandoffSession, now: Timestamp) -> Option<HandoffEnd> {
    let takes = |name| agents.get(name).is_some_and(|agent| agent.accepts_handoff.is_some());
    match handoff.state {
        HandoffState::Pending if now.duration_since(handoff.updated_at) > OPENING_TIMEOUT => {
            Some(HandoffEnd::Failed)
        }
        HandoffState::Returning => Some(handoff.notes.end.unwrap_or(HandoffEnd::Completed)),
        HandoffState::Active if handoff.expires_at.is_some_and(|end| end <= now) => Some(HandoffEnd::Expired),
        HandoffState::Active if !takes(&handoff.target_agent_id) => Some(HandoffEnd::Failed),
        _ => None,
    }
}
