//! Suggestions from experience: a hint at the end of the prompt of a router or of the run's agent, which says how well the agents that
//! it may choose from have served requests like this one.
//!
//! A hint never decides: triggers, fallbacks, approvals and permissions apply as without it, and only agents that the model may choose
//! anyway are named. It is recorded as a step, so that a crash repeats the same one, and so that the run can be explained.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baton_core::learning::{Evidence, Experience, Suggestion, suggest};
use baton_core::message::Part;
use baton_core::store::StepKind;
use baton_core::{AgentName, TenantId, TenantStore};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::bounds::InvocationKind;
use crate::failure::Failure;
use crate::input::Input;
use crate::invocation;
use crate::patterns::calling::targets::CallableAgents;
use crate::scope::Scope;

/// The segment of the step that records a suggestion.
pub const SUGGESTION: &str = "experience";

/// How long what was read from the store is used.
const MAX_AGE: Duration = Duration::from_secs(30);
/// Tenants whose experience is kept in memory. With more, all are read again.
const MAX_TENANTS: usize = 1000;

/// When something was read, and what.
type CachedExperience = (Instant, Arc<Vec<Experience>>);

/// What the tenants of this process have learnt, as it was read last.
#[derive(Debug, Default)]
pub(crate) struct ExperienceCache(Mutex<HashMap<TenantId, CachedExperience>>);

impl ExperienceCache {
    async fn get(&self, store: &dyn TenantStore) -> Option<Arc<Vec<Experience>>> {
        let tenant = store.tenant();
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned();
        if let Some((read_at, known)) = found
            && read_at.elapsed() < MAX_AGE
        {
            return Some(known);
        }
        // Without the lock. Two runs may read the same.
        let known = match store.experience().await {
            Ok(known) => Arc::new(known),
            Err(error) => {
                tracing::warn!(%tenant, %error, "cannot read what was learnt; the run goes on without a suggestion");
                return None;
            }
        };
        let mut tenants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tenants.len() >= MAX_TENANTS {
            tenants.clear();
        }
        tenants.insert(tenant.clone(), (Instant::now(), Arc::clone(&known)));
        Some(known)
    }
}

/// Adds the hint for a router that chooses among `candidates` to the end of its input.
pub(crate) async fn add_hint(
    scope: &Scope,
    candidates: &[AgentName],
    input: &mut Input,
) -> Result<(), Failure> {
    if !scope.run.policy.learning.is_on(&scope.run.caller.tenant) {
        return Ok(());
    }
    if let Some(suggestion) = suggestion(scope, candidates).await? {
        Arc::make_mut(&mut input.parts).push(Part::text(hint(&suggestion)));
    }
    Ok(())
}

/// Adds the hint for the run's own agent, if it may choose among others and does not hold the thread by a handoff.
pub(crate) async fn add_hint_for_main(scope: &Scope, input: &mut Input) -> Result<(), Failure> {
    if !scope.session.is_root() || scope.session.lease.is_some() {
        return Ok(());
    }
    add_hint(scope, &colleagues(scope), input).await
}

/// The agents that the scope's agent may give work or the baton to, in the order of its file.
fn colleagues(scope: &Scope) -> Vec<AgentName> {
    let callable = CallableAgents::of(scope, InvocationKind::Call);
    let called = callable.agents().iter().map(|agent| agent.name.clone());
    let has_transfers = scope.run.policy.transfers.is_on(&scope.run.caller.tenant);
    let passed = scope.agent().collaborations.iter().filter(|_| has_transfers).filter_map(|collaboration| {
        let agent = scope.run.agents.get(&collaboration.agent)?;
        invocation::admits(scope, agent, InvocationKind::Transfer).ok().map(|()| agent.name.clone())
    });
    let mut seen = BTreeSet::new();
    called.chain(passed).filter(|name| seen.insert(name.clone())).collect()
}

async fn suggestion(scope: &Scope, candidates: &[AgentName]) -> Result<Option<Suggestion>, Failure> {
    let place = scope.at(SUGGESTION);
    if let Some(recorded) = place.step().finished::<Suggestion>()? {
        return Ok(Some(recorded));
    }
    if candidates.len() < 2 {
        return Ok(None);
    }
    let Some(known) = scope.run.experience.get(&*scope.run.store).await else { return Ok(None) };
    let class = scope.run.query_class();
    let seed = u64::from_be_bytes(place.uuid().as_bytes()[8..].try_into().unwrap_or_default());
    let Some(found) = suggest(class, candidates, &known, Timestamp::now(), seed) else { return Ok(None) };
    place.step().finish(StepKind::Note, &found, Vec::new(), Vec::new()).await?;
    Ok(Some(found))
}

/// The sentence for the model.
fn hint(suggestion: &Suggestion) -> String {
    let Suggestion { query_class, agent, is_exploration, evidence } = suggestion;
    let known = evidence.iter().map(Evidence::text).collect::<Vec<_>>().join(", ");
    let why = if *is_exploration { " (less is known about it)" } else { "" };
    format!(
        "(Experience with requests like this one, about {query_class}: {known} served well. Suggested: {agent}{why}. Your instructions \
         come first.)"
    )
}
