//! Decides which agent takes a run. The decision is made when the run starts, because a handoff may begin or end while its
//! message is queued. It is stored with the start, so it is the same after a crash.

use std::sync::Arc;

use baton_core::agent::{Agent, TriggerMode};
use baton_core::store::handoff::ResumeQuestion;
use baton_core::store::{
    HandoffEnd, HandoffNotes, HandoffSession, HandoffState, LastTopic, NotifiedParty, RunRecord,
};
use baton_core::{AgentName, HandoffId, StoreError, TenantId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::agents::Agents;
use crate::classifier;
use crate::failure::Failure;
use crate::handoff::elsewhere::REPLY_TO_ENGINE;
use crate::intent::conflict_reply::{ConflictReply, conflict_reply};
use crate::intent::second_request::{Choosable, RequestedAgent};
use crate::intent::{is_continue, is_exit, is_greeting, is_no, is_yes};
use crate::journal::Record;
use crate::lease::{HandoffLease, overdue_end, set_ended};
use crate::policy::Policy;
use crate::request::StoredRequest;
use crate::run_state::RunState;
use crate::task::{HandoffTransition, RunTask};
use crate::workflow::question::{self, WorkflowQuestion};

/// How often the user is asked whether to finish first.
const MAX_TIMES_ASKED: u32 = 2;
/// Words of a message that can both ask for another agent and agree to the pause of the holder's work.
const MAX_CONSENT_WORDS: usize = 25;

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
    /// The message asks the holder for something else, or replies to the question about such a request.
    #[serde(rename = "second")]
    SecondRequest(ConflictStep),
    /// Unfinished work of the user in another thread is offered or continued.
    Elsewhere(ElsewhereStep),
    /// There is nothing left to say.
    Nothing,
}

/// What happens about a request for something else than the holder's work (C-13).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConflictStep {
    /// The user is asked whether to finish first. The request is for this agent, or for the main one.
    Ask(Option<AgentName>),
    /// The reply was unclear, and the user is asked once more.
    AskAgain,
    /// The holder goes on with its question.
    Finish,
    /// The request is carried out when the handoff has ended.
    Queue,
    /// The message with this number was an answer and no request.
    Answer(u64),
    /// The handoff is paused, and the request of the message with this number is carried out.
    Switch { message: u64, agent: Option<AgentName> },
}

/// What happens about unfinished work in another thread (K10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ElsewhereStep {
    /// The user is asked whether to continue it here.
    Offer,
    /// It goes on here.
    Continue,
    /// The user declined. It stays where it is.
    Decline,
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
    /// The user asked for something else, and then decided to finish first.
    Kept,
}

impl RoutingDecision {
    fn requested() -> Self {
        Self::default()
    }

    /// The holder answers the message.
    fn held(handoff: &HandoffSession) -> Self {
        Self::with(RunRoute::Held(HolderCue::Message), &handoff.target_agent_id, handoff)
    }

    fn with(route: RunRoute, agent: &AgentName, handoff: &HandoffSession) -> Self {
        Self { route, agent: Some(agent.clone()), handoff_id: Some(handoff.handoff_id) }
    }

    /// Whether the answering agent held the thread before the run.
    pub(crate) fn is_held(&self) -> bool {
        let is_switch = |step: &ConflictStep| matches!(step, ConflictStep::Switch { .. });
        match &self.route {
            RunRoute::SecondRequest(step) => !is_switch(step),
            _ => self.is_for_holder(),
        }
    }

    /// Whether the message is for the agent that holds the thread.
    pub(crate) fn is_for_holder(&self) -> bool {
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
            let routing: Self = step.data.read().unwrap_or_default();
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
            if request.task.is_answer()
                && let Some((step, left)) = left_elsewhere(state, record, request, words).await?
            {
                let route = RunRoute::Elsewhere(step);
                let routing = Self { route, handoff_id: Some(left.handoff_id), agent: None };
                return Ok((routing, Some(HandoffLease::new(left))));
            }
            let new = NewRoute { policy: &state.policy, agents: &state.agents, tenant: &state.caller.tenant };
            return Ok((new.triggered(&record.agent, &request.task, words), None));
        };
        let mut handoff = end_if_overdue(state, handoff).await?;
        if request.task.is_said()
            && let Some(paused) = paused_handoff(state, &handoff, words).await?
        {
            handoff = paused;
        }
        let routing = match &request.task {
            RunTask::Handoff { change, .. } => route_change(state, &handoff, *change),
            _ => {
                let routing = route_message(state, record, request, words, &handoff);
                // An answer that was given to the workflow's question itself is an answer, whatever it says.
                let is_second = matches!(routing.route, RunRoute::SecondRequest(_));
                if is_second && question::is_answered_by(state, &handoff).await? {
                    RoutingDecision::held(&handoff)
                } else {
                    routing
                }
            }
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
            _ => match conflict_step(state, record, words, handoff) {
                None => RoutingDecision::held(handoff),
                Some(step @ ConflictStep::Switch { .. }) => back(RunRoute::SecondRequest(step)),
                Some(step) => {
                    RoutingDecision::with(RunRoute::SecondRequest(step), &handoff.target_agent_id, handoff)
                }
            },
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

/// Whether a message may be about unfinished work in another thread.
pub(crate) fn may_resume_elsewhere(words: &str) -> bool {
    is_greeting(words) || is_yes(words) || is_no(words) || is_continue(words)
}

/// The unfinished work of the user in another thread that the message is about, in a thread without a handoff.
async fn left_elsewhere(
    state: &RunState,
    record: &RunRecord,
    request: &StoredRequest,
    words: &str,
) -> Result<Option<(ElsewhereStep, HandoffSession)>, StoreError> {
    if request.overrides.is_named || !may_resume_elsewhere(words) {
        return Ok(None);
    }
    let is_reply = (is_yes(words) || is_no(words)) && !is_continue(words);
    if is_reply && record.message_number > REPLY_TO_ENGINE {
        return Ok(None);
    }
    let mut left = state.store.resumable_handoffs_of(&record.user_id).await?;
    let target = |one: &HandoffSession| state.agents.get(&one.target_agent_id);
    left.retain(|one| {
        one.thread_id != record.thread_id && target(one).is_some_and(|target| is_resumable(target, one))
    });
    // Only one message replies to the question. Others reply to something else.
    let this = ResumeQuestion { thread: record.thread_id, reply: record.message_number };
    let is_replied_to = |one: &HandoffSession| one.notes.offered == Some(this);
    if is_reply {
        let step = if is_yes(words) { ElsewhereStep::Continue } else { ElsewhereStep::Decline };
        return Ok(left.into_iter().find(is_replied_to).map(|offered| (step, offered)));
    }
    let at = left.iter().position(is_replied_to).filter(|_| is_continue(words)).unwrap_or_default();
    let Some(newest) = left.into_iter().nth(at) else { return Ok(None) };
    let is_named = target(&newest).is_some_and(|one| classifier::mentions_agent(words, one));
    let is_first = record.message_number == 1;
    Ok(match () {
        // In a thread where nothing was said, "continue" can mean nothing else.
        () if is_continue(words) && (is_named || is_first || is_replied_to(&newest)) => {
            Some((ElsewhereStep::Continue, newest))
        }
        () if is_first && is_greeting(words) && newest.notes.offered.is_none() => {
            Some((ElsewhereStep::Offer, newest))
        }
        () => None,
    })
}

/// What a message to the holder says about a second request: it makes one, or replies to the question about one. `None` if it is for
/// the holder.
fn conflict_step(
    state: &RunState,
    record: &RunRecord,
    words: &str,
    handoff: &HandoffSession,
) -> Option<ConflictStep> {
    let holder = state.agents.get(&handoff.target_agent_id)?;
    let question = question::pending(&state.models, holder, handoff);
    let choosable = Choosable {
        agents: &state.agents,
        holder: &holder.name,
        source: &handoff.source_agent_id,
        takes_requests: question.as_ref().is_some_and(WorkflowQuestion::takes_requests),
    };
    let is_choice = question.as_ref().is_some_and(|question| question.is_choice(words));
    let requested = if is_choice { None } else { choosable.requested(words).map(RequestedAgent::name) };
    // A message that was sent before the question was asked does not reply to it.
    let asked = handoff.notes.second.as_ref();
    let asked = asked.filter(|second| !second.is_queued() && record.created_at >= second.asked_at);
    let Some(second) = asked else { return requested.map(ConflictStep::Ask) };
    // Asked whether to finish first, the user asks for an agent again: now. In a long text a request may be a quotation, and is no
    // consent: the question stays.
    if let Some(agent) = requested {
        let is_short = words.split_whitespace().count() <= MAX_CONSENT_WORDS;
        return Some(match second.times_asked {
            _ if is_short => ConflictStep::Switch { message: record.message_number, agent },
            times if times < MAX_TIMES_ASKED => ConflictStep::AskAgain,
            _ => ConflictStep::Finish,
        });
    }
    let target = second.agent.as_ref().and_then(|agent| state.agents.get(agent));
    match conflict_reply(words, target.map(|target| &**target)) {
        ConflictReply::Switch => {
            Some(ConflictStep::Switch { message: second.message, agent: second.agent.clone() })
        }
        ConflictReply::Later => Some(ConflictStep::Queue),
        ConflictReply::WasAnswer => Some(ConflictStep::Answer(second.message)),
        ConflictReply::Other { may_answer: true } if question.is_none_or(|one| one.takes(words)) => None,
        ConflictReply::Other { .. } if second.times_asked < MAX_TIMES_ASKED => Some(ConflictStep::AskAgain),
        ConflictReply::Finish | ConflictReply::Other { .. } => Some(ConflictStep::Finish),
    }
}

/// The handoff that was paused for `last`, if the message resumes it.
async fn paused_handoff(
    state: &RunState,
    last: &HandoffSession,
    words: &str,
) -> Result<Option<HandoffSession>, StoreError> {
    let Some(paused) = last.notes.paused.filter(|_| !last.state.is_open()) else { return Ok(None) };
    let is_offered = last.notes.topic == LastTopic::Question && is_yes(words);
    if !is_offered && !is_continue(words) {
        return Ok(None);
    }
    let paused = state.store.handoff(paused).await?;
    let agent = |handoff: &HandoffSession| state.agents.get(&handoff.target_agent_id);
    let Some(target) = agent(&paused).filter(|target| is_resumable(target, &paused)) else { return Ok(None) };
    // `continue` is about the last handoff, if it can go on, unless the message mentions the other agent.
    let continues_last = agent(last).is_some_and(|target| is_resumable(target, last)) && !is_offered;
    let is_meant = !continues_last && last.notes.topic != LastTopic::Other;
    if is_meant || classifier::mentions_agent(words, target) {
        // The question is asked in the last handoff's notes, and the paused one is resumed.
        let notes = HandoffNotes { topic: LastTopic::Question, ..paused.notes.clone() };
        return Ok(Some(HandoffSession { notes, ..paused }));
    }
    Ok(None)
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
    /// The route of a run in a thread that never had a handoff; `None` if its task is about a handoff, or if its message may be about
    /// unfinished work in another thread.
    pub(crate) fn decide(&self, agent: &AgentName, task: &RunTask, words: &str) -> Option<RoutingDecision> {
        match task {
            // The store knows more about these.
            RunTask::Answer if may_resume_elsewhere(words) => None,
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
