//! How one agent invokes another. Every invocation goes through [`enter`] or one of its variants. They check depth, re-entry,
//! transfers and live children, and derive the child's session and limits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_core::AgentName;
use baton_core::agent::{Agent, AgentLimits};
use baton_core::budget::BudgetLimit;

use crate::audit;
use crate::bounds::{Bounds, ChildPermit, InvocationError, InvocationKind};
use crate::failure::Failure;
use crate::models::ModelRegistry;
use crate::patterns::calling::resume::SubSession;
use crate::policy::fingerprint;
use crate::request::Overrides;
use crate::run_state::RunState;
use crate::scope::Scope;

/// The bounds of a run's own agent.
pub(crate) fn root_bounds(run: &RunState, agent: &Agent, overrides: &Overrides) -> Bounds {
    let prior = run.recorder.prior_durations.at(agent.name.as_str());
    let limits = scaled_limits(&run.models, agent);
    let own = BudgetLimit { max_cost_usd: limits.max_cost_usd, max_tokens: limits.max_tokens };
    let BudgetLimit { max_cost_usd, max_tokens } = own.lower(run.policy.budgets.run);
    let limits = AgentLimits { max_cost_usd, max_tokens, ..limits };
    Bounds::root(agent, &limits, overrides, prior, run.policy.max_live_children)
}

/// The limits of an agent's file, with more time if its model is slow.
fn scaled_limits(models: &ModelRegistry, agent: &Agent) -> AgentLimits {
    AgentLimits { timeout: agent.limits.timeout.times(models.time_factor(agent)), ..agent.limits.clone() }
}

/// Returns the scope of `agent`, invoked from `scope`. A refusal is recorded in the audit trail.
///
/// The child has its own session and the lower of its own limits and what is left above. It is cancelled with its ancestors. Only
/// an agent that receives the baton speaks to the user.
pub(crate) async fn enter(
    scope: &Scope,
    agent: &Arc<Agent>,
    invocation: InvocationKind,
) -> Result<Scope, InvocationError> {
    let entered = try_enter(scope, agent, invocation);
    if let Err(refusal) = &entered {
        audit::refuse(scope, scope.name(), &agent.name, invocation, refusal).await;
    }
    entered
}

/// Like [`enter`], without recording a refusal.
pub(crate) fn try_enter(
    scope: &Scope,
    agent: &Arc<Agent>,
    invocation: InvocationKind,
) -> Result<Scope, InvocationError> {
    admits(scope, agent, invocation)?;
    let permit = scope.session.bounds.child_permit()?;
    enter_with_permit(scope, agent, invocation, permit)
}

/// Like [`enter`], but waits for a permit while too many children are live. Fails with `Cancelled` or `TimedOut` if the scope is
/// cancelled meanwhile.
pub(crate) async fn enter_when_permitted(
    scope: &Scope,
    agent: &Arc<Agent>,
    invocation: InvocationKind,
) -> Result<Scope, Failure> {
    let admitted = admits(scope, agent, invocation);
    let permit = match admitted.and_then(|()| scope.session.bounds.next_child_permit()) {
        Ok(permit) => tokio::select! {
            biased;
            permit = permit => permit,
            () = scope.cancel.cancelled() => return Err(scope.or_timeout(Failure::Cancelled)),
        },
        Err(refusal) => {
            audit::refuse(scope, scope.name(), &agent.name, invocation, &refusal).await;
            return Err(refusal.into());
        }
    };
    Ok(enter_with_permit(scope, agent, invocation, permit.map_err(|_| Failure::Cancelled)?)?)
}

/// Like [`enter_when_permitted`], for the judge of a guardrail. It invokes nothing, so it may also be active above.
pub(crate) async fn enter_judge(scope: &Scope, agent: &Arc<Agent>) -> Result<Scope, Failure> {
    let permit = tokio::select! {
        biased;
        permit = scope.session.bounds.next_child_permit()? => permit,
        () = scope.cancel.cancelled() => return Err(scope.or_timeout(Failure::Cancelled)),
    };
    Ok(enter_with_permit(scope, agent, InvocationKind::Judge, permit.map_err(|_| Failure::Cancelled)?)?)
}

/// Like [`enter`], for the next stage of a chain. The stages in `passed` have finished: they are not ancestors, but may not run
/// again.
pub(crate) async fn enter_stage(
    scope: &Scope,
    agent: &Arc<Agent>,
    passed: &[AgentName],
) -> Result<Scope, InvocationError> {
    let entered = if passed.contains(&agent.name) {
        Err(scope.session.bounds.re_entry(&agent.name, passed))
    } else {
        try_enter(scope, agent, InvocationKind::Chain)
    };
    if let Err(refusal) = &entered {
        let giver = passed.last().unwrap_or(scope.name());
        audit::refuse(scope, giver, &agent.name, InvocationKind::Chain, refusal).await;
    }
    entered
}

fn enter_with_permit(
    scope: &Scope,
    agent: &Arc<Agent>,
    invocation: InvocationKind,
    permit: ChildPermit,
) -> Result<Scope, InvocationError> {
    if invocation == InvocationKind::Transfer {
        count_transfer(scope)?;
    }
    let place = scope.at(&format!("{}:{}", invocation.word(), agent.name));
    let nonce = match SubSession::of(scope, agent, invocation) {
        Some(session) => session.nonce(scope),
        None => fingerprint(place.path()),
    };
    let id = scope.session.id.child(&agent.name, nonce);
    let place = if invocation.transfers_control() { place } else { place.internal() };
    let bounds = child_bounds(&scope.session.bounds, &place, agent, invocation);
    Ok(place.for_agent(agent, id, bounds, permit))
}

fn child_bounds(above: &Arc<Bounds>, place: &Scope, agent: &Agent, invocation: InvocationKind) -> Bounds {
    let run = &place.run;
    let is_sub_agent = above.is_sub_agent() || invocation.counts_depth();
    let models = if is_sub_agent { run.models.for_sub_agents() } else { &run.models };
    let mut limits = scaled_limits(models, agent);
    if is_sub_agent {
        limits.max_turns = limits.max_turns.min(run.policy.sub_agent_steps());
        let own = BudgetLimit { max_cost_usd: limits.max_cost_usd, max_tokens: limits.max_tokens };
        let BudgetLimit { max_cost_usd, max_tokens } = own.lower(run.policy.sub_agent_budget);
        limits = AgentLimits { max_cost_usd, max_tokens, ..limits };
    }
    let prior = run.recorder.prior_durations.at(place.path());
    above.child(agent, invocation, place.shared_path(), limits, prior)
}

/// Checks what can be checked without taking a permit or counting a transfer. Tools whose call would be refused are hidden by the
/// same check.
pub(crate) fn admits(
    scope: &Scope,
    agent: &Agent,
    invocation: InvocationKind,
) -> Result<(), InvocationError> {
    let bounds = &scope.session.bounds;
    if !agent.can_be_orchestrated && !matches!(invocation, InvocationKind::Transfer | InvocationKind::Return)
    {
        return Err(InvocationError::NotOrchestrated(agent.name.clone()));
    }
    bounds.check_depth(invocation)?;
    // An agent defined ad hoc for one task may share its name with a different agent of the roster.
    let is_known =
        scope.run.agents.get(&agent.name).is_some_and(|known| std::ptr::eq(&raw const **known, agent));
    if is_known {
        bounds.check_re_entry(&agent.name, invocation, revisits(scope.agent(), &agent.name))?;
    }
    let most = bounds.max_transfers(scope.run.policy.max_transfers);
    if invocation == InvocationKind::Transfer && scope.run.progress.transfers.load(Ordering::Acquire) >= most
    {
        return Err(InvocationError::TooManyTransfers(most));
    }
    Ok(())
}

/// `allow_revisit` of the giver's collaboration with the target.
fn revisits(giver: &Agent, target: &AgentName) -> u32 {
    let declared = giver.collaborations.iter().find(|collaboration| collaboration.agent == *target);
    declared.map_or(0, |collaboration| collaboration.allow_revisit)
}

fn count_transfer(scope: &Scope) -> Result<(), InvocationError> {
    let most = scope.session.bounds.max_transfers(scope.run.policy.max_transfers);
    let count = |made| if made < most { Some(made + 1) } else { None };
    match scope.run.progress.transfers.fetch_update(Ordering::AcqRel, Ordering::Acquire, count) {
        Ok(_) => Ok(()),
        Err(_) => Err(InvocationError::TooManyTransfers(most)),
    }
}
