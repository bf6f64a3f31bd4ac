//! The lease that a run's agent holds the thread by.

use std::sync::{Arc, Mutex, PoisonError};

use baton_core::store::{HandoffEnd, HandoffSession, HandoffState, Told, Topic, WorkflowState};
use baton_core::{RunId, StoreError, TenantStore};
use jiff::{SignedDuration, Timestamp};

use crate::engine::Agents;
use crate::failure::Failure;

/// How often a change is tried again that somebody else came before.
const TRIES: u32 = 20;
/// A handoff that was never begun after this time never will be.
const OPENING: SignedDuration = SignedDuration::from_secs(60);

/// Shared by all of a run that happens under it. What it says is what is kept.
#[derive(Debug)]
pub(crate) struct Lease {
    store: Arc<dyn TenantStore>,
    session: Mutex<HandoffSession>,
}

impl Lease {
    pub(crate) fn new(store: Arc<dyn TenantStore>, session: HandoffSession) -> Self {
        Self { store, session: Mutex::new(session) }
    }

    /// As it was kept last.
    pub(crate) fn session(&self) -> HandoffSession {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn workflow(&self) -> Option<WorkflowState> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).workflow.clone()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).state.is_open()
    }

    /// Changes it and keeps that. `change` is made again on what somebody else has made of it meanwhile, unless they ended it.
    pub(crate) async fn change(
        &self,
        change: impl Fn(&mut HandoffSession) + Send,
    ) -> Result<HandoffSession, Failure> {
        for _ in 0..TRIES {
            let before = self.session();
            let mut changed = before.clone();
            change(&mut changed);
            match self.store.update_handoff(changed).await {
                Ok(kept) => return Ok(self.keep(kept)),
                Err(StoreError::Conflict(_)) => {
                    let now = self.keep(self.store.handoff(before.handoff_id).await?);
                    if before.state.is_open() && !now.state.is_open() {
                        return Err(Failure::NoHandoff("the handoff has ended meanwhile"));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Conflict("the handoff").into())
    }

    fn keep(&self, session: HandoffSession) -> HandoffSession {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session.clone();
        session
    }
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
