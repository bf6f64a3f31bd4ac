//! Decides which agent takes a run. The decision is made when the run starts, because a handoff may begin or end while its
//! message is queued. It is stored with the start, so it is the same after a crash.

use std::sync::Arc;

use baton_core::agent::{Agent, TriggerMode};
use baton_core::store::{HandoffEnd, HandoffSession, HandoffState, LastTopic, NotifiedParty, RunRecord};
use baton_core::{AgentName, HandoffId, StoreError, TenantId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::agents::Agents;
use crate::classifier;
use crate::failure::Failure;
use crate::intent::{is_continue, is_exit, is_yes};
use crate::journal::Record;
use crate::lease::{HandoffLease, overdue_end, set_ended};
use crate::policy::Policy;
use crate::request::StoredRequest;
use crate::run_state::RunState;
use crate::task::{HandoffTransition, RunTask};

/// Which agent takes a run, and by which handoff.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RoutingDecision {
    #[serde(rename = "way")]
    pub(crate) route: RunRoute,
    /// The handoff that the run is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handoff_id: Option<HandoffId>,
    /// The agent that takes the run, if it is not the requested one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<AgentName>,
}

/// Why an agent takes a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunRoute {
    /// The requested agent. If a handoff has ended without its knowledge, it is informed.
    #[default]
    #[serde(rename = "own")]
    Requested,
    /// The holder of the thread.
    Held(HolderCue),
    /// The user leaves the holder with an exit word.
    Leave,
    /// A handoff has ended, and the agent that has the thread again says so.
    #[serde(rename = "told")]
    HandoffEnded,
    /// The message contains a trigger: the baton is passed to this agent before the requested one answers.
    Trigger(AgentName),
    /// There is nothing left to say.
    Nothing,
}

/// Why a holder speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HolderCue {
    /// The user sent a message.
    Message,
    /// It has just received the thread.
    Begun,
    /// The user resumes an unfinished handoff.
    Resumed,
}

impl RoutingDecision {
    fn requested() -> Self {
        Self::default()
    }

    fn with(route: RunRoute, agent: &AgentName, handoff: &HandoffSession) -> Self {
        Self { route, agent: Some(agent.clone()), handoff_id: Some(handoff.handoff_id) }
    }

    /// Whether the answering agent held the thread before the run.
    pub(crate) fn is_held(&self) -> bool {
        self.route == RunRoute::Held(HolderCue::Message)
    }

    /// Whether the requested agent answers. It then keeps the conversation.
    pub(crate) fn is_requested(&self) -> bool {
        self.route == RunRoute::Requested
    }

    /// Decides the route, or returns the decision that was stored before a crash. The lease has the current state of the handoff.
    pub(crate) async fn decide(
        state: &Arc<RunState>,
        record: &RunRecord,
        request: &StoredRequest,
        words: &str,
    ) -> Result<(Self, Option<HandoffLease>), Failure> {
        if let Some(step) = state.recorder.steps.get(record.agent.as_str()) {
            let routing: Self = serde_json::from_value(step.data.clone()).unwrap_or_default();
            let lease = match routing.handoff_id {
                Some(id) => Some(HandoffLease::new(load_handoff(state, id).await?)),
                None => None,
            };
            return Ok((routing, lease));
        }
        let handoff = match &request.task {
            RunTask::Delegate(_) => return Ok((Self::requested(), None)),
            RunTask::Handoff { handoff_id, .. } => Some(load_handoff(state, *handoff_id).await?),
            RunTask::Answer => state.handoff.clone(),
        };
        let Some(handoff) = handoff else {
            let new = NewRoute { policy: &state.policy, agents: &state.agents, tenant: &state.caller.tenant };
            return Ok((new.triggered(&record.agent, &request.task, words), None));
        };
        let handoff = end_if_overdue(state, handoff).await?;
        let routing = match &request.task {
            RunTask::Handoff { change, .. } => route_change(state, &handoff, *change),
            _ => route_message(state, record, request, words, &handoff),
        };
        let has_lease = routing.handoff_id.is_some();
        Ok((routing, has_lease.then(|| HandoffLease::new(handoff))))
    }
}

async fn load_handoff(state: &RunState, id: HandoffId) -> Result<HandoffSession, StoreError> {
    match &state.handoff {
        Some(handoff) if handoff.handoff_id == id => Ok(handoff.clone()),
        _ => state.store.handoff(id).await,
    }
}

/// Ends the handoff if its lease has expired or its holder is gone.
async fn end_if_overdue(state: &Arc<RunState>, handoff: HandoffSession) -> Result<HandoffSession, Failure> {
    let Some(end) = overdue_end(&state.agents, &handoff, Timestamp::now()) else { return Ok(handoff) };
    let change = HandoffLease::new(handoff).change(|handoff| set_ended(handoff, end, None));
    let handoff = change.session.clone();
    // If the record is rejected, another process has ended the handoff.
    state
        .recorder
        .journal
        .commit_soon(Record { handoffs: vec![change], is_note: true, ..Record::default() })
        .await;
    Ok(handoff)
}

/// Routes a run that was started because its handoff has changed outside of a run.
fn route_change(state: &RunState, handoff: &HandoffSession, change: HandoffTransition) -> RoutingDecision {
    let is_active = handoff.state == HandoffState::Active;
    let target = &handoff.target_agent_id;
    match change {
        HandoffTransition::Begun if is_active => {
            RoutingDecision::with(RunRoute::Held(HolderCue::Begun), target, handoff)
        }
        HandoffTransition::Resumed if is_active => {
            RoutingDecision::with(RunRoute::Held(HolderCue::Resumed), target, handoff)
        }
        HandoffTransition::Ended
            if !handoff.state.is_open() && handoff.notes.told == NotifiedParty::Nobody =>
        {
            RoutingDecision {
                agent: receiver(state, handoff),
                ..RoutingDecision::with(RunRoute::HandoffEnded, target, handoff)
            }
        }
        _ => RoutingDecision { route: RunRoute::Nothing, ..RoutingDecision::requested() },
    }
}

/// Routes a message in a thread that has, or had, a handoff.
fn route_message(
    state: &RunState,
    record: &RunRecord,
    request: &StoredRequest,
    words: &str,
    handoff: &HandoffSession,
) -> RoutingDecision {
    let target = state.agents.get(&handoff.target_agent_id);
    let terms = target.and_then(|target| target.accepts_handoff.as_ref());
    let leaves = terms.is_some_and(|terms| is_exit(&terms.exit_words, words));
    let back = |route| RoutingDecision {
        agent: receiver(state, handoff),
        ..RoutingDecision::with(route, &record.agent, handoff)
    };
    if handoff.state == HandoffState::Active {
        let is_elsewhere = request.overrides.is_named && record.agent != handoff.target_agent_id;
        return match terms {
            _ if leaves => back(RunRoute::Leave),
            Some(terms) if is_elsewhere && !terms.exclusive => RoutingDecision::requested(),
            _ => RoutingDecision::with(RunRoute::Held(HolderCue::Message), &handoff.target_agent_id, handoff),
        };
    }
    if handoff.state.is_open() {
        return RoutingDecision::requested();
    }
    let notes = &handoff.notes;
    if leaves && notes.told == NotifiedParty::Nobody && notes.end == Some(HandoffEnd::Left) {
        return back(RunRoute::HandoffEnded);
    }
    // Once the topic has changed, `continue` means something else, unless the message mentions the agent.
    let is_meant =
        |target: &Agent| notes.topic != LastTopic::Other || classifier::mentions_agent(words, target);
    let goes_on = |target: &Agent| {
        (is_continue(words) && is_meant(target)) || (notes.topic == LastTopic::Question && is_yes(words))
    };
    if target.is_some_and(|target| goes_on(target) && is_resumable(target, handoff)) {
        return RoutingDecision::with(RunRoute::Held(HolderCue::Resumed), &handoff.target_agent_id, handoff);
    }
    let new = NewRoute { policy: &state.policy, agents: &state.agents, tenant: &state.caller.tenant };
    let routing = new.triggered(&record.agent, &request.task, words);
    if notes.told == NotifiedParty::Agent && notes.topic == LastTopic::Other {
        return routing;
    }
    RoutingDecision { handoff_id: Some(handoff.handoff_id), ..routing }
}

/// Whether a handoff can be resumed.
pub fn is_resumable(target: &Agent, handoff: &HandoffSession) -> bool {
    let resumes = target.accepts_handoff.as_ref().is_some_and(|terms| terms.resume);
    let has_work = target.workflow.is_none() || handoff.workflow.is_some();
    let is_undone = matches!(handoff.state, HandoffState::Cancelled | HandoffState::Error);
    resumes && has_work && is_undone && handoff.notes.preserve_state
}

/// The agent that gets the thread back, if it still exists.
fn receiver(state: &RunState, handoff: &HandoffSession) -> Option<AgentName> {
    let source = &handoff.source_agent_id;
    state.agents.contains_key(source).then(|| source.clone())
}

/// Routes a message in a thread without a handoff.
pub(crate) struct NewRoute<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) agents: &'a Agents,
    pub(crate) tenant: &'a TenantId,
}

impl NewRoute<'_> {
    /// The route of a run in a thread that never had a handoff; `None` if its task is about a handoff.
    pub(crate) fn decide(&self, agent: &AgentName, task: &RunTask, words: &str) -> Option<RoutingDecision> {
        match task {
            RunTask::Answer => Some(self.triggered(agent, task, words)),
            RunTask::Delegate(_) => Some(RoutingDecision::requested()),
            RunTask::Handoff { .. } => None,
        }
    }

    /// Routes to the first collaborator with `trigger_mode: auto` whose trigger is in the message.
    fn triggered(&self, agent: &AgentName, task: &RunTask, words: &str) -> RoutingDecision {
        let own = RoutingDecision::requested();
        let Some(asked) = self.agents.get(agent) else { return own };
        if !task.is_said() || !self.policy.transfers.is_on(self.tenant) {
            return own;
        }
        let targets = asked.collaborations.iter().filter_map(|one| self.agents.get(&one.agent));
        let mut taking = targets.filter(|target| {
            let terms = target.accepts_handoff.as_ref();
            terms.is_some_and(|terms| {
                terms.trigger_mode == TriggerMode::Auto
                    && classifier::contains_trigger(words, &terms.triggers)
            })
        });
        taking.next().map_or(own, |target| RoutingDecision {
            route: RunRoute::Trigger(target.name.clone()),
            ..RoutingDecision::requested()
        })
    }
}
