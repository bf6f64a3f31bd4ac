//! Limits that keep a run finite: depth, re-entry, transfers, live children, and the time, token and cost limits that
//! [`crate::budget`] checks before each turn. [`crate::invocation`] derives the bounds of a child.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_core::agent::{Agent, AgentLimits, ApprovalRules, Strategy};
use baton_core::budget::{Amount, BudgetLimit, BudgetUnit};
use baton_core::store::{HopKind, Step, StepKind, StepState};
use baton_core::tool::ToolError;
use baton_core::{AgentName, choices};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::ledger::Ledger;
use crate::request::{Overrides, PreApproval};

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
        /// A guardrail asks whether a text is allowed.
        Judge = "judge",
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
            Self::Judge => "agent.judge",
        }
    }

    /// Whether the invocation uses up a level of depth. A model decides on these kinds, so only the depth limit ends the
    /// recursion.
    pub(crate) fn counts_depth(self) -> bool {
        matches!(self, Self::Call | Self::Delegate)
    }

    /// Whether the invoked agent answers in place of the invoking one.
    pub(crate) fn transfers_control(self) -> bool {
        matches!(self, Self::Chain | Self::Route | Self::Transfer | Self::Return)
    }

    /// The kind of hop to record. A return and the judge of a guardrail are none.
    pub(crate) fn hop(self) -> Option<HopKind> {
        match self {
            Self::Call | Self::Delegate => Some(HopKind::Delegation),
            Self::Advisor => Some(HopKind::Advice),
            Self::Member => Some(HopKind::Team),
            Self::Chain => Some(HopKind::Chain),
            Self::Route => Some(HopKind::Route),
            Self::Transfer => Some(HopKind::Transfer),
            Self::Return | Self::Judge => None,
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
    #[error(
        "`{agent}` does not delegate with the strategy `{strategy}`; its file allows {}",
        strategy_words(.supported)
    )]
    UnsupportedStrategy { agent: AgentName, strategy: Strategy, supported: Vec<Strategy> },
}

fn strategy_words(strategies: &[Strategy]) -> String {
    strategies.iter().map(|strategy| format!("`{strategy}`")).collect::<Vec<_>>().join(", ")
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
            Self::UnsupportedStrategy { .. } => "unsupported_strategy",
        }
    }
}

impl From<InvocationError> for ToolError {
    fn from(refusal: InvocationError) -> Self {
        match refusal {
            InvocationError::ReEntry { .. }
            | InvocationError::NotOrchestrated(_)
            | InvocationError::UnsupportedStrategy { .. } => Self::NotPermitted(refusal.to_string()),
            _ => Self::Limit(refusal.to_string()),
        }
    }
}

choices! {
    /// The limit that ended a session.
    pub enum LimitKind {
        Turns = "turns",
        Time = "time",
        Tokens = "tokens",
        Cost = "cost",
        /// The caller asked for an answer now.
        Stopped = "stopped",
        /// The model's own limit on the length of a reply.
        Length = "length",
    }
}

impl LimitKind {
    /// The reason as a clause, for models and users.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Stopped => "a stop was requested".to_owned(),
            limit => format!("the limit of {limit} was met"),
        }
    }
}

impl From<BudgetUnit> for LimitKind {
    fn from(unit: BudgetUnit) -> Self {
        match unit {
            BudgetUnit::Cost => Self::Cost,
            BudgetUnit::Tokens => Self::Tokens,
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
    pub(crate) approve: PreApproval,
    /// The approval rules of the agent's file.
    rules: ApprovalRules,
    permits: ChildPermits,
    /// Whether the warning that the budget is nearly used up was published.
    is_warned: Arc<AtomicBool>,
    above: Option<Arc<Bounds>>,
}

/// One permit per live child of a session. Each session has its own, so an agent never waits for a permit that its ancestor holds.
#[derive(Debug, Clone)]
struct ChildPermits {
    semaphore: Arc<Semaphore>,
    max: u32,
}

/// A budget of a run or an agent of which most is used.
#[derive(Debug)]
pub(crate) struct NearlyExhausted {
    pub(crate) path: Arc<str>,
    /// Whether it is the budget of the run.
    pub(crate) is_root: bool,
    pub(crate) unit: BudgetUnit,
    pub(crate) percent: u32,
}

/// RAII permit for one live child.
#[derive(Debug)]
pub(crate) struct ChildPermit(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl ChildPermits {
    fn new(max: u32) -> Self {
        Self { semaphore: Arc::new(Semaphore::new((max as usize).min(Semaphore::MAX_PERMITS))), max }
    }
}

impl Bounds {
    /// The bounds of a run's own agent. `scaled` are the limits of its file, and `prior` is the time spent before a crash.
    pub(crate) fn root(
        agent: &Agent,
        scaled: &AgentLimits,
        overrides: &Overrides,
        prior: Duration,
        max_children: u32,
    ) -> Self {
        let limits = overrides.limits(scaled);
        Self {
            path: agent.name.as_str().into(),
            agent: agent.name.clone(),
            is_working: true,
            invocation: None,
            deadline: deadline(&limits, prior),
            levels_left: limits.max_depth,
            approve: overrides.approve,
            rules: agent.approvals.clone(),
            permits: ChildPermits::new(max_children),
            is_warned: Arc::default(),
            above: None,
            limits,
        }
    }

    /// The bounds of an agent that is invoked from here: the lower of its own limits and what is left above.
    pub(crate) fn child(
        self: &Arc<Self>,
        agent: &Agent,
        invocation: InvocationKind,
        path: Arc<str>,
        limits: AgentLimits,
        prior: Duration,
    ) -> Self {
        let levels_left = self.levels_left - u32::from(invocation.counts_depth());
        Self {
            path,
            agent: agent.name.clone(),
            is_working: true,
            invocation: Some(invocation),
            deadline: deadline(&limits, prior).min(self.deadline),
            levels_left: levels_left.min(limits.max_depth),
            approve: self.approve,
            rules: agent.approvals.clone(),
            permits: ChildPermits::new(self.permits.max),
            is_warned: Arc::default(),
            above: Some(Arc::clone(self)),
            limits,
        }
    }

    /// The same bounds for an agent that does not work on the request itself: it delegates for the caller, who may name it as a
    /// target too.
    #[must_use]
    pub(crate) fn for_dispatcher(&self) -> Self {
        Self { is_working: false, ..self.clone() }
    }

    /// Iterates over these bounds, then those of each ancestor.
    fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |bounds| bounds.above.as_deref())
    }

    /// The agent and those that invoked it, directly or through others.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &AgentName> {
        self.ancestors().map(|bounds| &bounds.agent)
    }

    /// The bounds of the run's own agent.
    fn root_bounds(&self) -> &Self {
        self.ancestors().last().unwrap_or(self)
    }

    /// The run's own agent.
    pub(crate) fn root_agent(&self) -> &AgentName {
        &self.root_bounds().agent
    }

    /// The approval rules of the agent and of all agents that called it, directly or through others. An agent that passed the
    /// baton on is not a caller.
    pub(crate) fn approval_rules(&self) -> impl Iterator<Item = &ApprovalRules> {
        let calls = |bounds: &Self| bounds.invocation.is_some_and(|kind| !kind.transfers_control());
        let callers = self.ancestors().filter(move |bounds| calls(bounds));
        std::iter::once(&self.rules).chain(callers.filter_map(|bounds| Some(&bounds.above.as_ref()?.rules)))
    }

    /// Whether the agent or one of its ancestors was invoked by `call_agent` or `delegate`.
    pub(crate) fn is_sub_agent(&self) -> bool {
        self.ancestors().any(|bounds| bounds.invocation.is_some_and(InvocationKind::counts_depth))
    }

    /// Whether the caller, the agent or an ancestor sets a cost limit, which requires models with known prices.
    pub(crate) fn needs_prices(&self) -> bool {
        self.ancestors().any(|bounds| bounds.limits.max_cost_usd.is_some())
    }

    fn budget(&self) -> BudgetLimit {
        BudgetLimit { max_cost_usd: self.limits.max_cost_usd, max_tokens: self.limits.max_tokens }
    }

    /// Whether the agent or an ancestor has a token or cost limit.
    pub(crate) fn has_budget(&self) -> bool {
        self.ancestors().any(|bounds| bounds.budget().is_set())
    }

    /// The token and cost limits from here up to the root, with the paths that they are for.
    pub(crate) fn budgets(&self) -> Vec<(Arc<str>, BudgetLimit)> {
        let limited = self.ancestors().filter(|bounds| bounds.budget().is_set());
        limited.map(|bounds| (Arc::clone(&bounds.path), bounds.budget())).collect()
    }

    /// The first used-up token or cost limit, from here up to the root.
    pub(crate) fn exceeded_limit(&self, ledger: &Ledger) -> Option<LimitKind> {
        self.ancestors().filter(|bounds| bounds.budget().is_set()).find_map(|bounds| {
            let spent = Amount::from(ledger.spent(&bounds.path));
            bounds.budget().reached(spent).map(LimitKind::from)
        })
    }

    /// The budgets from here up to the root that are nearly used up. Each is returned once.
    pub(crate) fn nearly_exhausted(&self, ledger: &Ledger) -> Vec<NearlyExhausted> {
        let unwarned = self
            .ancestors()
            .filter(|bounds| bounds.budget().is_set() && !bounds.is_warned.load(Ordering::Acquire));
        let near = unwarned.filter_map(|bounds| {
            let spent = Amount::from(ledger.spent(&bounds.path));
            let unit = bounds.budget().nearly_reached(spent)?;
            let is_first = !bounds.is_warned.swap(true, Ordering::AcqRel);
            let (path, is_root) = (Arc::clone(&bounds.path), bounds.above.is_none());
            let percent = bounds.budget().percent(spent);
            is_first.then_some(NearlyExhausted { path, is_root, unit, percent })
        });
        near.collect()
    }

    /// Whether an agent above can continue when this one fails, so that its text is not the last.
    pub(crate) fn caller_can_continue(&self) -> bool {
        let is_passed = |bounds: &Self| {
            matches!(bounds.invocation, Some(InvocationKind::Route | InvocationKind::Transfer))
        };
        !self.is_working || self.ancestors().any(is_passed)
    }

    /// Fails if a call from here would be too deep.
    pub(crate) fn check_depth(&self, invocation: InvocationKind) -> Result<(), InvocationError> {
        if invocation.counts_depth() && self.levels_left == 0 {
            return Err(InvocationError::TooDeep(self.root_bounds().limits.max_depth));
        }
        Ok(())
    }

    /// Whether `agent` works on the request here or in an ancestor.
    fn is_active(&self, agent: &AgentName) -> bool {
        self.ancestors().any(|bounds| bounds.is_working && bounds.agent == *agent)
    }

    /// Whether a transfer from here may enter `agent` again, if `most` revisits are allowed. Only the transfers that led here are
    /// the chain: an agent above them waits for a result, and is never entered again.
    fn may_revisit(&self, agent: &AgentName, most: u32) -> bool {
        let mut chain = self.ancestors();
        let mut entries = 0;
        for bounds in chain.by_ref() {
            entries += u32::from(bounds.is_working && bounds.agent == *agent);
            if bounds.invocation != Some(InvocationKind::Transfer) {
                break;
            }
        }
        entries <= most && !chain.any(|bounds| bounds.is_working && bounds.agent == *agent)
    }

    /// Fails if `agent` is active here or above. A transfer may enter it again at most `revisits` times.
    pub(crate) fn check_re_entry(
        &self,
        agent: &AgentName,
        invocation: InvocationKind,
        revisits: u32,
    ) -> Result<(), InvocationError> {
        let is_allowed = invocation == InvocationKind::Transfer && self.may_revisit(agent, revisits);
        if self.is_active(agent) && !is_allowed { Err(self.re_entry(agent, &[])) } else { Ok(()) }
    }

    /// The refusal to enter `agent` again. `passed` are the finished stages of a chain.
    pub(crate) fn re_entry(&self, agent: &AgentName, passed: &[AgentName]) -> InvocationError {
        let mut line: Vec<&str> = self.ancestors().map(|bounds| bounds.agent.as_str()).collect();
        line.reverse();
        line.extend(passed.iter().map(AgentName::as_str));
        InvocationError::ReEntry { agent: agent.clone(), line: line.join(" → ") }
    }

    /// The limit for the whole run: that of the policy, lowered by the agent and its ancestors.
    pub(crate) fn max_transfers(&self, policy: u32) -> u32 {
        self.ancestors().map(|bounds| bounds.limits.max_transfers).fold(policy, u32::min)
    }

    /// Takes a permit for a live child, if one is left.
    pub(crate) fn child_permit(&self) -> Result<ChildPermit, InvocationError> {
        let permit = Arc::clone(&self.permits.semaphore).try_acquire_owned();
        permit.map(ChildPermit).map_err(|_| InvocationError::TooManyChildren(self.permits.max))
    }

    /// Waits for a permit for a live child. Fails at once if the policy allows none. Cancel safe.
    pub(crate) fn next_child_permit(
        &self,
    ) -> Result<impl Future<Output = Result<ChildPermit, AcquireError>> + use<>, InvocationError> {
        if self.permits.max == 0 {
            return Err(InvocationError::TooManyChildren(0));
        }
        let semaphore = Arc::clone(&self.permits.semaphore);
        Ok(async { semaphore.acquire_owned().await.map(ChildPermit) })
    }
}

/// The deadline of a session by its own timeout. Time spent before a crash counts.
fn deadline(limits: &AgentLimits, prior: Duration) -> Instant {
    Instant::now() + limits.timeout.get().saturating_sub(prior)
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
