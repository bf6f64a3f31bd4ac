//! What keeps a run finite. Whoever involves another agent comes through [`Scope::enter`]: depth, re-entry, transfers, children
//! at work, budget and time are checked here and nowhere else.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_core::agent::{Agent, Limits};
use baton_core::message::Visibility;
use baton_core::store::{HopKind, Step, StepKind, StepState};
use baton_core::tool::ToolError;
use baton_core::{AgentName, SessionId, choices};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::engine::{Approve, Overrides};
use crate::failure::Failure;
use crate::policy::fingerprint;
use crate::scope::{RunState, Scope};

choices! {
    /// How one agent involves another. The word stands before the agent's name in paths: `…/call:research`.
    pub(crate) enum Edge {
        /// `call_agent`.
        Call = "call",
        /// `delegate`.
        Delegate = "delegate",
        Advisor = "advisor",
        /// A member of a team, in one of its rounds.
        Member = "member",
        /// `handoff:` in the file.
        Chain = "handoff",
        Route = "route",
        Transfer = "transfer",
        /// A thread returns to the agent that gave it away.
        Return = "return",
    }
}

impl Edge {
    /// As the trail calls it.
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

    /// Whether the model decides to go down here, so that only a number keeps it from going on.
    fn goes_deeper(self) -> bool {
        matches!(self, Self::Call | Self::Delegate)
    }

    /// Whether the one who is involved answers in place of the one who involves.
    fn passes_the_baton(self) -> bool {
        matches!(self, Self::Chain | Self::Route | Self::Transfer | Self::Return)
    }

    /// As it is remembered, if the baton changes hands.
    pub(crate) fn hop(self) -> Option<HopKind> {
        match self {
            Self::Chain => Some(HopKind::Chain),
            Self::Route => Some(HopKind::Route),
            Self::Transfer => Some(HopKind::Transfer),
            Self::Call | Self::Delegate | Self::Advisor | Self::Member | Self::Return => None,
        }
    }
}

/// Why an agent is not involved. Told to the model as a tool error, to people as the reason of a failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("agents call each other at most {0} levels deep; finish the work with what you have")]
    TooDeep(u32),
    #[error(
        "`{agent}` is already at work above ({line}); an agent does not get the same matter twice in one run"
    )]
    ReEntry { agent: AgentName, line: String },
    #[error("the baton is passed on at most {0} times in one run; answer yourself with what you have")]
    TooManyTransfers(u32),
    #[error("{0} agents are already at work for this one; wait for them, or ask fewer at once")]
    TooManyChildren(u32),
    #[error("`{0}` may not be involved by other agents")]
    NotOrchestrated(AgentName),
}

impl Refusal {
    /// Stable, for programs.
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

impl From<Refusal> for ToolError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::ReEntry { .. } | Refusal::NotOrchestrated(_) => Self::NotPermitted(refusal.to_string()),
            _ => Self::Limit(refusal.to_string()),
        }
    }
}

/// The bounds of one session, and of everybody above it.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub(crate) path: Arc<str>,
    agent: AgentName,
    /// Only a run's own agent may have nothing to do with its matter, when the caller has others asked.
    is_working: bool,
    /// How it was involved; nobody involved the first.
    pub(crate) edge: Option<Edge>,
    /// The agent's own, lowered by who asked.
    pub(crate) limits: Limits,
    pub(crate) deadline: Instant,
    /// How many levels may follow.
    pub(crate) levels_left: u32,
    /// Somebody called it as a tool, or somebody above it.
    pub(crate) is_sub_agent: bool,
    pub(crate) approve: Approve,
    /// The caller set a limit on money, which needs prices.
    pub(crate) needs_prices: bool,
    /// Places for children at work.
    live: Arc<Semaphore>,
    above: Option<Arc<Bounds>>,
}

impl Bounds {
    pub(crate) fn root(run: &RunState, agent: &Agent, overrides: &Overrides) -> Self {
        let limits = overrides.limits(&agent.limits);
        let path: Arc<str> = agent.name.as_str().into();
        Self {
            deadline: deadline(run, &path, &limits),
            agent: agent.name.clone(),
            is_working: true,
            edge: None,
            levels_left: limits.max_depth,
            is_sub_agent: false,
            approve: overrides.approve,
            needs_prices: overrides.max_cost_usd.is_some(),
            live: places(run),
            above: None,
            limits,
            path,
        }
    }

    /// Itself, then everybody above.
    fn line(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |bounds| bounds.above.as_deref())
    }

    /// Whether somebody from here up has spent what they may.
    pub(crate) fn overspent(&self, run: &RunState) -> Option<crate::Limit> {
        self.line().find_map(|bounds| {
            let limits = &bounds.limits;
            if limits.max_tokens.is_none() && limits.max_cost_usd.is_none() {
                return None;
            }
            let spent = run.ledger.spent(&bounds.path);
            let cost = limits.max_cost_usd.is_some_and(|most| spent.cost.known_part() >= most);
            let tokens = limits.max_tokens.is_some_and(|most| spent.tokens.total() >= most);
            cost.then_some(crate::Limit::Cost).or_else(|| tokens.then_some(crate::Limit::Tokens))
        })
    }

    /// Whether somebody above can go on when this one fails, so that its words are not the last.
    pub(crate) fn is_passed_on(&self) -> bool {
        let is_passed = |bounds: &Self| matches!(bounds.edge, Some(Edge::Route | Edge::Transfer));
        !self.is_working || self.line().any(is_passed)
    }

    /// Whether `agent` is at work here or above.
    pub(crate) fn is_at_work(&self, agent: &AgentName) -> bool {
        self.line().any(|bounds| bounds.is_working && bounds.agent == *agent)
    }
}

/// Transfers that were made before a crash and are not walked again, because the call or session in which they were made has
/// ended. All others count when they are entered again.
pub(crate) fn transfers_behind(steps: &[Step]) -> u32 {
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

/// When its own time is over; time before a crash counts.
fn deadline(run: &RunState, path: &str, limits: &Limits) -> Instant {
    Instant::now() + limits.timeout.get().saturating_sub(run.spent_before(path))
}

/// As many as one session may have at work at once. Children have places of their own, so nobody waits for those who wait for them.
fn places(run: &RunState) -> Arc<Semaphore> {
    let most = run.engine.parts.policy.max_live_children as usize;
    Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))
}

/// One more child at work, until it is dropped.
#[derive(Debug)]
pub(crate) struct Live(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Scope {
    /// The place of `agent`, involved from here by `edge`, or why it may not be, which goes on record. The child has its own session,
    /// the smaller of its own budget and what is left above, and is cancelled with everything above it. Only who gets the baton
    /// speaks to the person.
    pub(crate) async fn enter(&self, agent: &Arc<Agent>, edge: Edge) -> Result<Self, Refusal> {
        let entered = self.try_enter(agent, edge);
        if let Err(refusal) = &entered {
            self.refuse(self.name(), &agent.name, edge, refusal).await;
        }
        entered
    }

    /// The same without a record.
    pub(crate) fn try_enter(&self, agent: &Arc<Agent>, edge: Edge) -> Result<Self, Refusal> {
        self.admits(agent, edge)?;
        let live = self.admit_child()?;
        self.enter_as(agent, edge, live)
    }

    /// The same for one of several that are asked together: when too many are at work, it waits for one of them to end.
    pub(crate) async fn enter_in_turn(&self, agent: &Arc<Agent>, edge: Edge) -> Result<Self, Failure> {
        let place = match self.admits_in_turn(agent, edge) {
            Ok(places) => tokio::select! {
                biased;
                place = places.acquire_owned() => place,
                () = self.cancel.cancelled() => return Err(Failure::Cancelled.or_late(self)),
            },
            Err(refusal) => {
                self.refuse(self.name(), &agent.name, edge, &refusal).await;
                return Err(refusal.into());
            }
        };
        let live = place.map_err(|_| Failure::Cancelled)?;
        Ok(self.enter_as(agent, edge, Live(live))?)
    }

    /// The places that it may wait for.
    fn admits_in_turn(&self, agent: &Agent, edge: Edge) -> Result<Arc<Semaphore>, Refusal> {
        self.admits(agent, edge)?;
        if self.run.engine.parts.policy.max_live_children == 0 {
            return Err(Refusal::TooManyChildren(0));
        }
        Ok(Arc::clone(&self.bounds.live))
    }

    fn enter_as(&self, agent: &Arc<Agent>, edge: Edge, live: Live) -> Result<Self, Refusal> {
        if edge == Edge::Transfer {
            self.count_transfer()?;
        }
        let place = self.at(&format!("{}:{}", edge.word(), agent.name));
        let nonce = fingerprint(place.path());
        let place = if edge.passes_the_baton() { place } else { place.internal() };
        let session_id = self.session_id.child(&agent.name, nonce);
        let bounds = Arc::new(self.bounds_below(agent, edge, &place));
        Ok(place.taken_by(agent, session_id, bounds, live))
    }

    /// The same for the next stage of a chain. Stages that are over are not above it, but do not come again either.
    pub(crate) async fn enter_next(&self, agent: &Arc<Agent>, passed: &[AgentName]) -> Result<Self, Refusal> {
        let entered = if passed.contains(&agent.name) {
            Err(self.re_entry(&agent.name, passed))
        } else {
            self.try_enter(agent, Edge::Chain)
        };
        if let Err(refusal) = &entered {
            let giver = passed.last().unwrap_or(self.name());
            self.refuse(giver, &agent.name, Edge::Chain, refusal).await;
        }
        entered
    }

    fn re_entry(&self, agent: &AgentName, passed: &[AgentName]) -> Refusal {
        let mut line: Vec<&str> = self.bounds.line().map(|bounds| bounds.agent.as_str()).collect();
        line.reverse();
        line.extend(passed.iter().map(AgentName::as_str));
        Refusal::ReEntry { agent: agent.clone(), line: line.join(" → ") }
    }

    /// What can be said before anything is counted. Tools that would be refused are hidden by the same rule.
    pub(crate) fn admits(&self, agent: &Agent, edge: Edge) -> Result<(), Refusal> {
        if !agent.can_be_orchestrated && !matches!(edge, Edge::Transfer | Edge::Return) {
            return Err(Refusal::NotOrchestrated(agent.name.clone()));
        }
        if edge.goes_deeper() && self.bounds.levels_left == 0 {
            let root = self.bounds.line().last().map_or(0, |root| root.limits.max_depth);
            return Err(Refusal::TooDeep(root));
        }
        // Somebody who was made up for one mission is nobody's double, whatever the name.
        let is_known =
            self.run.agents.get(&agent.name).is_some_and(|known| std::ptr::eq(&raw const **known, agent));
        if is_known && self.bounds.is_at_work(&agent.name) {
            return Err(self.re_entry(&agent.name, &[]));
        }
        if edge == Edge::Transfer && self.run.transfers.load(Ordering::Acquire) >= self.most_transfers() {
            return Err(Refusal::TooManyTransfers(self.most_transfers()));
        }
        Ok(())
    }

    /// In the whole run: what the operator allows, lowered by everybody who had the baton.
    fn most_transfers(&self) -> u32 {
        let line = self.bounds.line().map(|bounds| bounds.limits.max_transfers).min();
        self.run.engine.parts.policy.max_transfers.min(line.unwrap_or(0))
    }

    fn count_transfer(&self) -> Result<(), Refusal> {
        let most = self.most_transfers();
        let count = |made| if made < most { Some(made + 1) } else { None };
        match self.run.transfers.fetch_update(Ordering::AcqRel, Ordering::Acquire, count) {
            Ok(_) => Ok(()),
            Err(_) => Err(Refusal::TooManyTransfers(most)),
        }
    }

    fn admit_child(&self) -> Result<Live, Refusal> {
        let most = self.run.engine.parts.policy.max_live_children;
        let place = Arc::clone(&self.bounds.live).try_acquire_owned();
        place.map(Live).map_err(|_| Refusal::TooManyChildren(most))
    }

    fn bounds_below(&self, agent: &Agent, edge: Edge, place: &Self) -> Bounds {
        let above = &self.bounds;
        let mut limits = agent.limits.clone();
        let is_sub_agent = above.is_sub_agent || edge.goes_deeper();
        if is_sub_agent {
            limits.max_turns = limits.max_turns.min(self.run.engine.parts.policy.sub_agent_steps());
        }
        let levels_left = above.levels_left - u32::from(edge.goes_deeper());
        Bounds {
            deadline: deadline(&self.run, place.path(), &limits).min(above.deadline),
            path: place.shared_path(),
            agent: agent.name.clone(),
            is_working: true,
            edge: Some(edge),
            levels_left: levels_left.min(limits.max_depth),
            is_sub_agent,
            approve: above.approve,
            needs_prices: above.needs_prices,
            live: places(&self.run),
            above: Some(Arc::clone(above)),
            limits,
        }
    }

    /// The same place, whose agent does not work on the matter itself: the caller has others asked, and it may be one of them.
    #[must_use]
    pub(crate) fn asking(mut self) -> Self {
        self.bounds = Arc::new(Bounds { is_working: false, ..Bounds::clone(&self.bounds) });
        self
    }

    /// The parent in the session tree, as listeners are told.
    pub(crate) fn parent_session(&self) -> Option<SessionId> {
        self.session_id.parent()
    }

    /// Whether what ends here as an answer is for the person.
    pub(crate) fn is_for_the_person(&self) -> bool {
        self.visibility() == Visibility::User
    }
}
