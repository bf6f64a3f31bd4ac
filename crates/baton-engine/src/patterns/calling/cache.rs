//! Caches results of tasks for a limited time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::{Agent, Caching};
use baton_core::{AgentName, SessionId};
use data_encoding::HEXLOWER;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::task::{SubAgentTask, TaskResult, summary_length};
use crate::patterns::read_thread;
use crate::scope::Scope;

/// The cache entry of one task. Disabled if the caller does not cache. Read and write errors are logged and count as a miss.
#[derive(Debug)]
pub(crate) struct ResultCache<'a> {
    scope: &'a Scope,
    /// The key and the time to live.
    slot: Option<(String, Duration)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct CachedResult {
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    full_text: Option<SessionId>,
}

impl<'a> ResultCache<'a> {
    pub(crate) fn of(scope: &'a Scope, task: &SubAgentTask) -> Self {
        let time = match scope.agent().delegation.cache {
            Some(Caching::For(time)) => Some(time.get()),
            Some(Caching::Off) => None,
            None => scope.run.policy.result_cache,
        };
        // What a session that continues answers depends on what was said before.
        let time = time.filter(|_| !scope.agent().delegation.resume);
        Self { scope, slot: time.and_then(|time| Some((key(scope, task)?, time))) }
    }

    pub(crate) async fn find(&self) -> Option<TaskResult> {
        let (key, _) = self.slot.as_ref()?;
        let found = self.scope.run.store.cached(key).await;
        let value =
            found.inspect_err(|error| tracing::warn!(%error, "the result cache cannot be read")).ok()??;
        let kept = serde_json::from_value::<CachedResult>(value);
        let kept =
            kept.inspect_err(|error| tracing::warn!(%error, "a cached result cannot be decoded")).ok()?;
        Some(TaskResult { text: kept.text, full_text: kept.full_text, limit: None, is_cached: true })
    }

    /// Stores a complete result. A result that a limit cut short is not stored.
    pub(crate) async fn keep(&self, result: &TaskResult) {
        let Some((key, time)) = self.slot.as_ref().filter(|_| result.limit.is_none()) else { return };
        let kept = json!(CachedResult { text: result.text.clone(), full_text: result.full_text.clone() });
        let time = SignedDuration::try_from(*time).unwrap_or(SignedDuration::MAX);
        let until = Timestamp::now().checked_add(time).unwrap_or(Timestamp::MAX);
        if let Err(error) = self.scope.run.store.keep(key, kept, until).await {
            tracing::warn!(%error, "the result cache cannot be written");
        }
    }
}

/// The cache key. `None` if an agent involved may read the thread, which differs each time. The key covers the user, the mission,
/// every agent that may be involved, their models, and the sub-agent tools of the policy, so a change of any of them is a miss.
/// Results are never shared between users, because tools can return personal data.
fn key(scope: &Scope, task: &SubAgentTask) -> Option<String> {
    let agent = &task.agent;
    let involved: Vec<Arc<Agent>> = involved(scope, agent).into_values().collect();
    if involved.iter().any(|agent| agent.tools.names(read_thread::NAME)) {
        return None;
    }
    let candidates = involved
        .iter()
        .flat_map(|agent| scope.run.models.for_sub_agents().candidates(agent).unwrap_or_default());
    let models: Vec<String> =
        candidates.map(|one| format!("{}/{}", one.provider.provider(), one.model)).collect();
    let about = json!([
        scope.run.caller.user.as_str(),
        involved,
        models,
        scope.run.policy.sub_agent_tools,
        agent.planning_strategy.word(),
        summary_length(scope),
        task.mission,
    ]);
    let hash = HEXLOWER.encode(&Sha256::digest(about.to_string()));
    Some(format!("agent:{}@{}:{hash}", agent.name, agent.version))
}

/// The agent and all agents that it can involve, directly or indirectly.
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
