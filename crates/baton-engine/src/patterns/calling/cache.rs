//! Results of missions that are used again for a while.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::{Agent, Caching};
use baton_core::{AgentName, SessionId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::errand::{Brought, Errand, summary_length};
use crate::patterns::reading;
use crate::scope::Scope;

/// Where the result of one mission is kept, if its caller wants that. A cache that is away or holds nonsense holds nothing.
#[derive(Debug)]
pub(crate) struct ResultCache<'a> {
    scope: &'a Scope,
    /// The key, and how long a result may be used.
    place: Option<(String, Duration)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    full_text: Option<SessionId>,
}

impl<'a> ResultCache<'a> {
    pub(crate) fn of(scope: &'a Scope, errand: &Errand) -> Self {
        let time = match scope.agent.delegation.cache {
            Some(Caching::For(time)) => Some(time.get()),
            Some(Caching::Off) => None,
            None => scope.run.engine.parts.policy.result_cache,
        };
        Self { scope, place: time.and_then(|time| Some((key(scope, errand)?, time))) }
    }

    pub(crate) async fn find(&self) -> Option<Brought> {
        let (key, _) = self.place.as_ref()?;
        let found = self.scope.run.store.cached(key).await;
        let value =
            found.inspect_err(|error| tracing::warn!(%error, "the result cache cannot be read")).ok()??;
        let kept = serde_json::from_value::<Kept>(value);
        let kept =
            kept.inspect_err(|error| tracing::warn!(%error, "the result cache holds nonsense")).ok()?;
        Some(Brought { text: kept.text, full_text: kept.full_text, limit: None, is_cached: true })
    }

    /// Only what is whole is used again.
    pub(crate) async fn keep(&self, brought: &Brought) {
        let Some((key, time)) = self.place.as_ref().filter(|_| brought.limit.is_none()) else { return };
        let kept = json!(Kept { text: brought.text.clone(), full_text: brought.full_text.clone() });
        let time = SignedDuration::try_from(*time).unwrap_or(SignedDuration::MAX);
        let until = Timestamp::now().checked_add(time).unwrap_or(Timestamp::MAX);
        if let Err(error) = self.scope.run.store.keep(key, kept, until).await {
            tracing::warn!(%error, "the result cache cannot be written");
        }
    }
}

/// The same for the same mission of the same agent for the same person, as long as nobody who may work on it has changed, nor the
/// model that thinks for them, nor what they may use. What tools find for one person is not for another, so results are never
/// shared between people. There is none for whoever reads the conversation: it is another one each time.
fn key(scope: &Scope, errand: &Errand) -> Option<String> {
    let agent = &errand.agent;
    let parts = &scope.run.engine.parts;
    let involved: Vec<Arc<Agent>> = involved(scope, agent).into_values().collect();
    if involved.iter().any(|agent| agent.tools.names(reading::NAME)) {
        return None;
    }
    let candidates = involved.iter().flat_map(|agent| parts.models.candidates(agent).unwrap_or_default());
    let models: Vec<String> =
        candidates.map(|one| format!("{}/{}", one.provider.provider(), one.model)).collect();
    let about = json!([
        scope.run.caller.user.as_str(),
        involved,
        models,
        parts.policy.sub_agent_tools,
        agent.planning_strategy.word(),
        summary_length(scope),
        errand.mission,
    ]);
    let hash: String = Sha256::digest(about.to_string()).iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("agent:{}@{}:{hash}", agent.name, agent.version))
}

/// The agent and everybody who may come to work for it.
fn involved(scope: &Scope, first: &Arc<Agent>) -> BTreeMap<AgentName, Arc<Agent>> {
    let mut found = BTreeMap::from([(first.name.clone(), Arc::clone(first))]);
    let mut open = vec![Arc::clone(first)];
    while let Some(agent) = open.pop() {
        for name in colleagues(&agent) {
            let Some(next) = scope.run.agents.get(name).filter(|_| !found.contains_key(name)) else {
                continue;
            };
            found.insert(name.clone(), Arc::clone(next));
            open.push(Arc::clone(next));
        }
    }
    found
}

fn colleagues(agent: &Agent) -> impl Iterator<Item = &AgentName> {
    let routes = agent.router.iter().flat_map(|router| router.destinations.iter().chain(&router.fallback));
    agent
        .agents
        .iter()
        .chain(agent.advisors.agents.iter().map(|advisor| &advisor.agent))
        .chain(routes)
        .chain(agent.team.iter().flat_map(|team| &team.members))
        .chain(agent.handoff.iter().map(|destination| &destination.to))
        .chain(agent.collaborations.iter().map(|collaboration| &collaboration.agent))
}
