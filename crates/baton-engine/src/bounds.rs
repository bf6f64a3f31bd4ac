//! Limits that keep a run finite. Every invocation of another agent goes through [`Scope::enter`] or one of its variants. They
//! check depth, re-entry, transfers and live children, and derive the child's time, token and cost limits, which
//! [`crate::budget`] checks before each turn.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_core::agent::{Agent, AgentLimits};
use baton_core::message::Visibility;
use baton_core::store::{HopKind, Step, StepKind, StepState};
use baton_core::tool::ToolError;
use baton_core::{AgentName, HumanDuration, SessionId, choices};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::engine::{Overrides, PreApproval};
use crate::failure::Failure;
use crate::models::ModelCandidate;
use crate::policy::fingerprint;
use crate::scope::{RunState, Scope};

choices! {
    /// How one agent invokes another. In paths, the word precedes the agent's name: `…/call:research`.
    pub(crate) enum InvocationKind {
        /// `call_agent`.
        Call = "call",
        /// `delegate`.
        Delegate = "delegate",
        Advisor = "advisor",
        /// A member of a team, in one of its rounds.
        Member = "member",
        /// `handoff:` in the agent's file.
        Chain = "handoff",
        Route = "route",
        Transfer = "transfer",
        /// The thread returns to the agent that handed it off.
        Return = "return",
    }
}

impl InvocationKind {
    /// The audit action.
    pub(crate) fn action(self) -> &'static str {
        match self {
            Self::Call => "agent.call",
            Self::Delegate => "agent.delegate",
            Self::Advisor => "agent.advise",
            Self::Member => "agent.team",
            Self::Chain => "agent.chain",
            Self::Route => "agent.route",
            Self::Transfer => "agent.transfer",
            Self::Return => "agent.return",
        }
    }

    /// Whether the invocation uses up a level of depth. A model decides on these kinds, so only the depth limit ends the
    /// recursion.
    fn counts_depth(self) -> bool {
        matches!(self, Self::Call | Self::Delegate)
    }

    /// Whether the invoked agent answers in place of the invoking one.
    fn transfers_control(self) -> bool {
        matches!(self, Self::Chain | Self::Route | Self::Transfer | Self::Return)
    }

    /// The kind of hop to record, if the invocation passes the baton.
    pub(crate) fn hop(self) -> Option<HopKind> {
        match self {
            Self::Chain => Some(HopKind::Chain),
            Self::Route => Some(HopKind::Route),
            Self::Transfer => Some(HopKind::Transfer),
            Self::Call | Self::Delegate | Self::Advisor | Self::Member | Self::Return => None,
        }
    }
}

/// Why an agent may not be invoked. Models receive it as a tool error, users as the reason of a failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvocationError {
    #[error("agents call each other at most {0} levels deep; finish the work with what you have")]
    TooDeep(u32),
    #[error("`{agent}` is already active above ({line}); an agent is not entered twice in one run")]
    ReEntry { agent: AgentName, line: String },
    #[error("the baton is passed on at most {0} times in one run; answer yourself with what you have")]
    TooManyTransfers(u32),
    #[error("{0} agents are already active for this one; wait for them, or ask fewer at once")]
    TooManyChildren(u32),
    #[error("`{0}` may not be involved by other agents")]
    NotOrchestrated(AgentName),
}

impl InvocationError {
    /// Stable error code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooDeep(_) => "too_deep",
            Self::ReEntry { .. } => "re_entry",
            Self::TooManyTransfers(_) => "too_many_transfers",
            Self::TooManyChildren(_) => "too_many_children",
            Self::NotOrchestrated(_) => "not_orchestrated",
        }
    }
}

impl From<InvocationError> for ToolError {
    fn from(refusal: InvocationError) -> Self {
        match refusal {
            InvocationError::ReEntry { .. } | InvocationError::NotOrchestrated(_) => {
                Self::NotPermitted(refusal.to_string())
            }
            _ => Self::Limit(refusal.to_string()),
        }
    }
}

/// The limits of one session, linked to those of its ancestors.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub(crate) path: Arc<str>,
    agent: AgentName,
    /// `false` only for a run's own agent that delegates on the caller's behalf and does not work on the request itself.
    is_working: bool,
    /// How the agent was invoked. `None` for the run's own agent.
    pub(crate) invocation: Option<InvocationKind>,
    /// The agent's own limits, lowered by the caller's overrides and the policy for sub-agents.
    pub(crate) limits: AgentLimits,
    pub(crate) deadline: Instant,
    /// How many further levels of calls are allowed.
    pub(crate) levels_left: u32,
    /// Whether the agent or one of its ancestors was invoked by `call_agent` or `delegate`.
    pub(crate) is_sub_agent: bool,
    pub(crate) approve: PreApproval,
    /// Whether the caller, the agent or an ancestor sets a cost limit, which requires models with known prices.
    pub(crate) needs_prices: bool,
    /// Permits for live children.
    live: Arc<Semaphore>,
    above: Option<Arc<Bounds>>,
}

impl Bounds {
    pub(crate) fn root(run: &RunState, agent: &Agent, overrides: &Overrides) -> Self {
        let limits = overrides.limits(&scaled_limits(run, agent));
        let path: Arc<str> = agent.name.as_str().into();
        Self {
            deadline: deadline(run, &path, &limits),
            agent: agent.name.clone(),
            is_working: true,
            invocation: None,
            levels_left: limits.max_depth,
            is_sub_agent: false,
            approve: overrides.approve,
            needs_prices: limits.max_cost_usd.is_some(),
            live: child_permits(run),
            above: None,
            limits,
            path,
        }
    }

    /// Iterates over these bounds, then those of each ancestor.
    fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |bounds| bounds.above.as_deref())
    }

    /// The first used-up token or cost limit, from here up to the root.
    pub(crate) fn exceeded_limit(&self, run: &RunState) -> Option<crate::LimitKind> {
        self.ancestors().find_map(|bounds| {
            let limits = &bounds.limits;
            if limits.max_tokens.is_none() && limits.max_cost_usd.is_none() {
                return None;
            }
            let spent = run.ledger.spent(&bounds.path);
            let cost = limits.max_cost_usd.is_some_and(|most| spent.cost.known_part() >= most);
            let tokens = limits.max_tokens.is_some_and(|most| spent.tokens.total() >= most);
            cost.then_some(crate::LimitKind::Cost).or_else(|| tokens.then_some(crate::LimitKind::Tokens))
        })
    }

    /// Whether an agent above can continue when this one fails, so that its text is not the last.
    pub(crate) fn caller_can_continue(&self) -> bool {
        let is_passed = |bounds: &Self| {
            matches!(bounds.invocation, Some(InvocationKind::Route | InvocationKind::Transfer))
        };
        !self.is_working || self.ancestors().any(is_passed)
    }

    /// Whether `agent` works on the request here or in an ancestor.
    pub(crate) fn is_active(&self, agent: &AgentName) -> bool {
        self.ancestors().any(|bounds| bounds.is_working && bounds.agent == *agent)
    }
}

/// Counts the transfers of earlier attempts that are not replayed, because the tool call or session around them has finished.
/// Other transfers are counted when they are replayed.
pub(crate) fn completed_transfers(steps: &[Step]) -> u32 {
    let over = |step: &&Step| {
        step.state == StepState::Finished && matches!(step.kind, StepKind::Tool | StepKind::Session)
    };
    let over: HashSet<&str> = steps.iter().filter(over).map(|step| step.path.as_str()).collect();
    let is_behind = |step: &&Step| {
        let (above, last) = step.path.rsplit_once('/').unwrap_or_default();
        let is_transfer = last.starts_with("transfer:") && step.kind == StepKind::Session;
        let mut places = std::iter::successors(Some(above), |path| Some(path.rsplit_once('/')?.0));
        is_transfer && places.any(|place| over.contains(place))
    };
    u32::try_from(steps.iter().filter(is_behind).count()).unwrap_or(u32::MAX)
}

/// The limits of an agent's file, with more time if its model is slow.
fn scaled_limits(run: &RunState, agent: &Agent) -> AgentLimits {
    let factor = run.engine.parts.models.time_factor(agent);
    AgentLimits { timeout: agent.limits.timeout.times(factor), ..agent.limits.clone() }
}

/// The deadline of a session by its own timeout. Time spent before a crash counts.
fn deadline(run: &RunState, path: &str, limits: &AgentLimits) -> Instant {
    Instant::now() + limits.timeout.get().saturating_sub(run.prior_duration(path))
}

/// One permit per live child of a session. Each session has its own semaphore, so an agent never waits for a permit that its
/// ancestor holds.
fn child_permits(run: &RunState) -> Arc<Semaphore> {
    let most = run.engine.parts.policy.max_live_children as usize;
    Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))
}

/// RAII permit for one live child.
#[derive(Debug)]
pub(crate) struct ChildPermit(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Scope {
    /// Returns the scope of `agent`, invoked from here. A refusal is recorded in the audit trail.
    ///
    /// The child has its own session and the lower of its own limits and what is left above. It is cancelled with its ancestors.
    /// Only an agent that receives the baton speaks to the user.
    pub(crate) async fn enter(
        &self,
        agent: &Arc<Agent>,
        invocation: InvocationKind,
    ) -> Result<Self, InvocationError> {
        let entered = self.try_enter(agent, invocation);
        if let Err(refusal) = &entered {
            self.refuse(self.name(), &agent.name, invocation, refusal).await;
        }
        entered
    }

    /// Like [`Scope::enter`], without recording a refusal.
    pub(crate) fn try_enter(
        &self,
        agent: &Arc<Agent>,
        invocation: InvocationKind,
    ) -> Result<Self, InvocationError> {
        self.admits(agent, invocation)?;
        let live = self.acquire_child_permit()?;
        self.enter_with_permit(agent, invocation, live)
    }

    /// Like [`Scope::enter`], but waits for a permit while too many children are live. Fails with `Cancelled` or `TimedOut` if
    /// the scope is cancelled meanwhile.
    pub(crate) async fn enter_when_permitted(
        &self,
        agent: &Arc<Agent>,
        invocation: InvocationKind,
    ) -> Result<Self, Failure> {
        let place = match self.admits_when_permitted(agent, invocation) {
            Ok(places) => tokio::select! {
                biased;
                place = places.acquire_owned() => place,
                () = self.cancel.cancelled() => return Err(Failure::Cancelled.or_timeout(self)),
            },
            Err(refusal) => {
                self.refuse(self.name(), &agent.name, invocation, &refusal).await;
                return Err(refusal.into());
            }
        };
        let live = place.map_err(|_| Failure::Cancelled)?;
        Ok(self.enter_with_permit(agent, invocation, ChildPermit(live))?)
    }

    /// Checks everything but the number of live children, and returns the semaphore to wait on.
    fn admits_when_permitted(
        &self,
        agent: &Agent,
        invocation: InvocationKind,
    ) -> Result<Arc<Semaphore>, InvocationError> {
        self.admits(agent, invocation)?;
        if self.run.engine.parts.policy.max_live_children == 0 {
            return Err(InvocationError::TooManyChildren(0));
        }
        Ok(Arc::clone(&self.bounds.live))
    }

    fn enter_with_permit(
        &self,
        agent: &Arc<Agent>,
        invocation: InvocationKind,
        live: ChildPermit,
    ) -> Result<Self, InvocationError> {
        if invocation == InvocationKind::Transfer {
            self.count_transfer()?;
        }
        let place = self.at(&format!("{}:{}", invocation.word(), agent.name));
        let nonce = fingerprint(place.path());
        let place = if invocation.transfers_control() { place } else { place.internal() };
        let session_id = self.session_id.child(&agent.name, nonce);
        let bounds = Arc::new(self.child_bounds(agent, invocation, &place));
        Ok(place.for_agent(agent, session_id, bounds, live))
    }

    /// Like [`Scope::enter`], for the next stage of a chain. The stages in `passed` have finished: they are not ancestors, but
    /// may not run again.
    pub(crate) async fn enter_stage(
        &self,
        agent: &Arc<Agent>,
        passed: &[AgentName],
    ) -> Result<Self, InvocationError> {
        let entered = if passed.contains(&agent.name) {
            Err(self.re_entry(&agent.name, passed))
        } else {
            self.try_enter(agent, InvocationKind::Chain)
        };
        if let Err(refusal) = &entered {
            let giver = passed.last().unwrap_or(self.name());
            self.refuse(giver, &agent.name, InvocationKind::Chain, refusal).await;
        }
        entered
    }

    fn re_entry(&self, agent: &AgentName, passed: &[AgentName]) -> InvocationError {
        let mut line: Vec<&str> = self.bounds.ancestors().map(|bounds| bounds.agent.as_str()).collect();
        line.reverse();
        line.extend(passed.iter().map(AgentName::as_str));
        InvocationError::ReEntry { agent: agent.clone(), line: line.join(" → ") }
    }

    /// Checks what can be checked without taking a permit or counting a transfer. Tools whose call would be refused are hidden by
    /// the same check.
    pub(crate) fn admits(&self, agent: &Agent, invocation: InvocationKind) -> Result<(), InvocationError> {
        if !agent.can_be_orchestrated
            && !matches!(invocation, InvocationKind::Transfer | InvocationKind::Return)
        {
            return Err(InvocationError::NotOrchestrated(agent.name.clone()));
        }
        if invocation.counts_depth() && self.bounds.levels_left == 0 {
            let root = self.bounds.ancestors().last().map_or(0, |root| root.limits.max_depth);
            return Err(InvocationError::TooDeep(root));
        }
        // An agent defined ad hoc for one task may share its name with a different agent of the roster.
        let is_known =
            self.run.agents.get(&agent.name).is_some_and(|known| std::ptr::eq(&raw const **known, agent));
        if is_known && self.bounds.is_active(&agent.name) {
            return Err(self.re_entry(&agent.name, &[]));
        }
        if invocation == InvocationKind::Transfer
            && self.run.transfers.load(Ordering::Acquire) >= self.max_transfers()
        {
            return Err(InvocationError::TooManyTransfers(self.max_transfers()));
        }
        Ok(())
    }

    /// The limit for the whole run: that of the policy, lowered by the agent and its ancestors.
    fn max_transfers(&self) -> u32 {
        let line = self.bounds.ancestors().map(|bounds| bounds.limits.max_transfers).min();
        self.run.engine.parts.policy.max_transfers.min(line.unwrap_or(0))
    }

    fn count_transfer(&self) -> Result<(), InvocationError> {
        let most = self.max_transfers();
        let count = |made| if made < most { Some(made + 1) } else { None };
        match self.run.transfers.fetch_update(Ordering::AcqRel, Ordering::Acquire, count) {
            Ok(_) => Ok(()),
            Err(_) => Err(InvocationError::TooManyTransfers(most)),
        }
    }

    fn acquire_child_permit(&self) -> Result<ChildPermit, InvocationError> {
        let most = self.run.engine.parts.policy.max_live_children;
        let place = Arc::clone(&self.bounds.live).try_acquire_owned();
        place.map(ChildPermit).map_err(|_| InvocationError::TooManyChildren(most))
    }

    fn child_bounds(&self, agent: &Agent, invocation: InvocationKind, place: &Self) -> Bounds {
        let above = &self.bounds;
        let mut limits = scaled_limits(&self.run, agent);
        let is_sub_agent = above.is_sub_agent || invocation.counts_depth();
        if is_sub_agent {
            limits.max_turns = limits.max_turns.min(self.run.engine.parts.policy.sub_agent_steps());
        }
        let levels_left = above.levels_left - u32::from(invocation.counts_depth());
        Bounds {
            deadline: deadline(&self.run, place.path(), &limits).min(above.deadline),
            path: place.shared_path(),
            agent: agent.name.clone(),
            is_working: true,
            invocation: Some(invocation),
            levels_left: levels_left.min(limits.max_depth),
            is_sub_agent,
            approve: above.approve,
            needs_prices: above.needs_prices || limits.max_cost_usd.is_some(),
            live: child_permits(&self.run),
            above: Some(Arc::clone(above)),
            limits,
        }
    }

    /// A time limit for `agents`, multiplied for the slowest of their models.
    pub(crate) fn scaled_timeout<'a>(
        &self,
        limit: HumanDuration,
        agents: impl IntoIterator<Item = &'a Arc<Agent>>,
    ) -> HumanDuration {
        let models = &self.run.engine.parts.models;
        let factor = agents.into_iter().map(|agent| models.time_factor(agent)).max();
        factor.map_or(limit, |factor| limit.times(factor))
    }

    /// Whether the run cannot do without the provider of this model: its own agent uses the same one. A sub-agent with another
    /// provider fails early instead, so that the agent that invoked it can continue.
    pub(crate) fn needs(&self, candidate: &ModelCandidate) -> bool {
        let root = self.bounds.ancestors().last().and_then(|root| self.run.agents.get(&root.agent));
        let candidates = root.and_then(|root| self.run.engine.parts.models.candidates(root).ok());
        let own = candidates.as_ref().and_then(|candidates| candidates.first());
        own.is_none_or(|own| own.provider.provider() == candidate.provider.provider())
    }

    /// Marks the scope's agent as not working on the request itself: it delegates for the caller, who may name it as a target
    /// too.
    #[must_use]
    pub(crate) fn into_dispatcher(mut self) -> Self {
        self.bounds = Arc::new(Bounds { is_working: false, ..Bounds::clone(&self.bounds) });
        self
    }

    pub(crate) fn parent_session(&self) -> Option<SessionId> {
        self.session_id.parent()
    }

    /// Whether an answer given here is addressed to the user.
    pub(crate) fn is_user_facing(&self) -> bool {
        self.visibility() == Visibility::User
    }
}
