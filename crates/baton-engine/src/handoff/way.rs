//! Who takes a run: decided when it begins, because a thread may change hands while its message waits. The decision is kept with
//! the beginning, so it is the same after a crash.

use std::sync::Arc;

use baton_core::agent::{Agent, TriggerMode};
use baton_core::store::{HandoffEnd, HandoffSession, HandoffState, RunRecord, Told, Topic};
use baton_core::{AgentName, HandoffId, StoreError, TenantId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::lease::{Lease, ended, overdue};
use super::saying::{is_exit, is_going_on, is_yes};
use crate::engine::{Agents, Engine, Request};
use crate::entry;
use crate::failure::Failure;
use crate::journal::Record;
use crate::scope::RunState;
use crate::task::{Change, Task};

/// How a run begins.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Begun {
    pub(crate) way: Way,
    /// The handoff that it has to do with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handoff_id: Option<HandoffId>,
    /// Whose run it is, where that is not who was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<AgentName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// Whoever was asked. If a handoff has ended that they do not know of, they are told.
    #[default]
    Own,
    /// The holder of the thread.
    Held(Cue),
    /// The person leaves the holder with these very words.
    Leave,
    /// A handoff has ended, and whoever has the thread again says so.
    Told,
    /// The message is a trigger: the baton goes on before anybody has said a word.
    Trigger(AgentName),
    /// What it was to say has been said.
    Nothing,
}

/// How a holder comes to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cue {
    /// The person said something.
    Message,
    /// It has just got the thread.
    Begun,
    /// The person goes on with what was left.
    Resumed,
}

impl Begun {
    fn own() -> Self {
        Self::default()
    }

    fn with(way: Way, agent: &AgentName, handoff: &HandoffSession) -> Self {
        Self { way, agent: Some(agent.clone()), handoff_id: Some(handoff.handoff_id) }
    }

    /// Whether whoever answers has the thread, and had it before.
    pub(crate) fn is_held(&self) -> bool {
        self.way == Way::Held(Cue::Message)
    }

    /// Whether who answers is who has the conversation afterwards.
    pub(crate) fn is_own(&self) -> bool {
        self.way == Way::Own
    }

    /// Decides, or remembers what was decided before a crash. The handoff is as it stands then.
    pub(crate) async fn of(
        state: &Arc<RunState>,
        record: &RunRecord,
        request: &Request,
        words: &str,
    ) -> Result<(Self, Option<Lease>), Failure> {
        if let Some(step) = state.steps.get(record.agent.as_str()) {
            let begun: Self = serde_json::from_value(step.data.clone()).unwrap_or_default();
            let lease = match begun.handoff_id {
                Some(id) => Some(Lease::new(known(state, id).await?)),
                None => None,
            };
            return Ok((begun, lease));
        }
        let handoff = match &request.task {
            Task::Delegate(_) => return Ok((Self::own(), None)),
            Task::Handoff { handoff_id, .. } => Some(known(state, *handoff_id).await?),
            Task::Answer => state.handoff.clone(),
        };
        let Some(handoff) = handoff else {
            let new = NewRoute { engine: &state.engine, agents: &state.agents, tenant: &state.caller.tenant };
            return Ok((new.triggered(&record.agent, &request.task, words), None));
        };
        let handoff = settled(state, handoff).await?;
        let begun = match &request.task {
            Task::Handoff { change, .. } => changed(state, &handoff, *change),
            _ => asked(state, record, request, words, &handoff),
        };
        let has_lease = begun.handoff_id.is_some();
        Ok((begun, has_lease.then(|| Lease::new(handoff))))
    }
}

async fn known(state: &RunState, id: HandoffId) -> Result<HandoffSession, StoreError> {
    match &state.handoff {
        Some(handoff) if handoff.handoff_id == id => Ok(handoff.clone()),
        _ => state.store.handoff(id).await,
    }
}

/// A lease whose time is over, or whose holder is gone, ends here; one that was about to end has ended.
async fn settled(state: &Arc<RunState>, handoff: HandoffSession) -> Result<HandoffSession, Failure> {
    let Some(end) = overdue(&state.agents, &handoff, Timestamp::now()) else { return Ok(handoff) };
    let change = Lease::new(handoff).change(|handoff| ended(handoff, end, None));
    let handoff = change.session.clone();
    // If it is refused, another process has ended it.
    state.journal.keep_soon(Record { handoffs: vec![change], is_note: true, ..Record::default() }).await;
    Ok(handoff)
}

/// Something happened to the handoff outside of a run, and the run is there to take that up.
fn changed(state: &RunState, handoff: &HandoffSession, change: Change) -> Begun {
    let is_active = handoff.state == HandoffState::Active;
    let target = &handoff.target_agent_id;
    match change {
        Change::Begun if is_active => Begun::with(Way::Held(Cue::Begun), target, handoff),
        Change::Resumed if is_active => Begun::with(Way::Held(Cue::Resumed), target, handoff),
        Change::Ended if !handoff.state.is_open() && handoff.notes.told == Told::Nobody => {
            Begun { agent: receiver(state, handoff), ..Begun::with(Way::Told, target, handoff) }
        }
        _ => Begun { way: Way::Nothing, ..Begun::own() },
    }
}

/// Somebody said something in a thread that has, or had, a handoff.
fn asked(
    state: &RunState,
    record: &RunRecord,
    request: &Request,
    words: &str,
    handoff: &HandoffSession,
) -> Begun {
    let target = state.agents.get(&handoff.target_agent_id);
    let terms = target.and_then(|target| target.accepts_handoff.as_ref());
    let leaves = terms.is_some_and(|terms| is_exit(&terms.exit_words, words));
    let back = |way| Begun { agent: receiver(state, handoff), ..Begun::with(way, &record.agent, handoff) };
    if handoff.state == HandoffState::Active {
        let is_elsewhere = request.overrides.is_named && record.agent != handoff.target_agent_id;
        return match terms {
            _ if leaves => back(Way::Leave),
            Some(terms) if is_elsewhere && !terms.exclusive => Begun::own(),
            _ => Begun::with(Way::Held(Cue::Message), &handoff.target_agent_id, handoff),
        };
    }
    if handoff.state.is_open() {
        return Begun::own();
    }
    let notes = &handoff.notes;
    if leaves && notes.told == Told::Nobody && notes.end == Some(HandoffEnd::Left) {
        return back(Way::Told);
    }
    // Later the same word means to go on with something else, unless it says with what.
    let is_meant = |target: &Agent| notes.topic != Topic::Other || entry::speaks_of(words, target);
    let goes_on = |target: &Agent| {
        (is_going_on(words) && is_meant(target)) || (notes.topic == Topic::Question && is_yes(words))
    };
    if target.is_some_and(|target| goes_on(target) && is_resumable(target, handoff)) {
        return Begun::with(Way::Held(Cue::Resumed), &handoff.target_agent_id, handoff);
    }
    let new = NewRoute { engine: &state.engine, agents: &state.agents, tenant: &state.caller.tenant };
    let begun = new.triggered(&record.agent, &request.task, words);
    if notes.told == Told::Agent && notes.topic == Topic::Other {
        return begun;
    }
    Begun { handoff_id: Some(handoff.handoff_id), ..begun }
}

/// Whether a handoff can be gone on with.
pub fn is_resumable(target: &Agent, handoff: &HandoffSession) -> bool {
    let resumes = target.accepts_handoff.as_ref().is_some_and(|terms| terms.resume);
    let has_work = target.workflow.is_none() || handoff.workflow.is_some();
    let is_undone = matches!(handoff.state, HandoffState::Cancelled | HandoffState::Error);
    resumes && has_work && is_undone && handoff.notes.preserve_state
}

/// Who gets the thread back, if it is still there.
fn receiver(state: &RunState, handoff: &HandoffSession) -> Option<AgentName> {
    let source = &handoff.source_agent_id;
    state.agents.contains_key(source).then(|| source.clone())
}

/// Routes a message in a thread without a handoff.
pub(crate) struct NewRoute<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) agents: &'a Agents,
    pub(crate) tenant: &'a TenantId,
}

impl NewRoute<'_> {
    /// The route of a run in a thread that never had a handoff; `None` if its task is about a handoff.
    pub(crate) fn decide(&self, agent: &AgentName, task: &Task, words: &str) -> Option<Begun> {
        match task {
            Task::Answer => Some(self.triggered(agent, task, words)),
            Task::Delegate(_) => Some(Begun::own()),
            Task::Handoff { .. } => None,
        }
    }

    /// Straight to the first collaborator with `trigger_mode: auto` whose trigger is in the message.
    fn triggered(&self, agent: &AgentName, task: &Task, words: &str) -> Begun {
        let own = Begun::own();
        let Some(asked) = self.agents.get(agent) else { return own };
        if !task.is_said() || !self.engine.parts.policy.transfers.is_on(self.tenant) {
            return own;
        }
        let targets = asked.collaborations.iter().filter_map(|one| self.agents.get(&one.agent));
        let mut taking = targets.filter(|target| {
            let terms = target.accepts_handoff.as_ref();
            terms.is_some_and(|terms| {
                terms.trigger_mode == TriggerMode::Auto && entry::holds_any(words, &terms.triggers)
            })
        });
        taking.next().map_or(own, |target| Begun { way: Way::Trigger(target.name.clone()), ..Begun::own() })
    }
}
