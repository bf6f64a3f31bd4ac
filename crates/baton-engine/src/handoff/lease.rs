//! The lease that a run's agent holds the thread by.

use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_core::store::{
    HandoffChange, HandoffEnd, HandoffSession, HandoffState, Told, Topic, WorkflowState,
};
use baton_core::{RunId, StoreError, TenantStore};
use jiff::{SignedDuration, Timestamp};

use crate::engine::Agents;
use crate::failure::Failure;
use crate::journal::Record;
use crate::scope::Scope;

/// How often a change is tried again that somebody else came before.
const TRIES: u32 = 20;
/// A handoff that was never begun after this time never will be.
const OPENING: SignedDuration = SignedDuration::from_secs(60);

/// A handoff in a run that has to do with it. What it says is what is kept, or will be with the run's next append.
#[derive(Debug)]
pub(crate) struct Lease {
    session: Mutex<HandoffSession>,
    /// Where it is opened by this run: how many the target may have.
    max_open: Option<u32>,
}

impl Lease {
    pub(crate) fn new(session: HandoffSession) -> Self {
        Self { session: Mutex::new(session), max_open: None }
    }

    /// One that is not stored yet.
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

    /// Changes it. The run has to keep what this returns.
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

impl Scope {
    /// Changes the handoff, with the run's next append.
    pub(crate) async fn change(&self, lease: &Lease, change: impl FnOnce(&mut HandoffSession)) {
        // What is noted about a handoff that has ended decides nothing.
        let is_note = !lease.is_open();
        let handoffs = vec![lease.change(change)];
        self.run.journal.keep_soon(Record { handoffs, is_note, ..Record::default() }).await;
    }
}

/// Changes a handoff outside of a run. If another writer came first, `change` is applied to the new version, unless the handoff has ended.
pub(crate) async fn change_stored(
    store: &dyn TenantStore,
    mut known: HandoffSession,
    change: impl Fn(&mut HandoffSession) + Send,
) -> Result<HandoffSession, Failure> {
    for _ in 0..TRIES {
        let mut changed = known.clone();
        change(&mut changed);
        match store.update_handoff(changed).await {
            Err(StoreError::HandoffChanged) => {
                let now = store.handoff(known.handoff_id).await?;
                if known.state.is_open() && !now.state.is_open() {
                    return Err(Failure::NoHandoff("the handoff has ended meanwhile"));
                }
                known = now;
            }
            updated => return Ok(updated?),
        }
    }
    Err(StoreError::HandoffChanged.into())
}

/// How it stands once it has ended so.
pub(crate) fn state_after(end: HandoffEnd) -> HandoffState {
    match end {
        HandoffEnd::Completed => HandoffState::Completed,
        HandoffEnd::Declined | HandoffEnd::Left | HandoffEnd::Expired | HandoffEnd::Ended => {
            HandoffState::Cancelled
        }
        HandoffEnd::Failed => HandoffState::Error,
    }
}

/// It ends, in a run or outside of one, and nobody has been told.
pub(crate) fn ended(handoff: &mut HandoffSession, end: HandoffEnd, run: Option<RunId>) {
    handoff.state = state_after(end);
    handoff.expires_at = None;
    handoff.notes.end = Some(end);
    handoff.notes.ended_in = run.or(handoff.notes.ended_in);
    handoff.notes.told = Told::Nobody;
    handoff.notes.topic = Topic::End;
    if !handoff.notes.preserve_state {
        handoff.workflow = None;
    }
}

/// How a lease ends that cannot go on as it is, where nobody is at work in its thread: its time is over, its holder is gone, or
/// whoever began or ended it did not come to the end of that.
pub(crate) fn overdue(agents: &Agents, handoff: &HandoffSession, now: Timestamp) -> Option<HandoffEnd> {
    let takes = |name| agents.get(name).is_some_and(|agent| agent.accepts_handoff.is_some());
    match handoff.state {
        HandoffState::Pending if now.duration_since(handoff.updated_at) > OPENING => Some(HandoffEnd::Failed),
        HandoffState::Returning => Some(handoff.notes.end.unwrap_or(HandoffEnd::Completed)),
        HandoffState::Active if handoff.expires_at.is_some_and(|end| end <= now) => Some(HandoffEnd::Expired),
        HandoffState::Active if !takes(&handoff.target_agent_id) => Some(HandoffEnd::Failed),
        _ => None,
    }
}
