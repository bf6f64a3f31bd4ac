//! One mission of another agent, from its start to its result.

use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::ledger::Called;
use baton_core::{AgentName, HumanDuration, SessionId, SubAgentResult};
use tokio::time::Instant;

use super::cache::ResultCache;
use super::told::pointer;
use crate::bounds::Edge;
use crate::budget::Limit;
use crate::children;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::patterns::handover::shared;
use crate::patterns::summary;
use crate::run::{self, Input, Sent};
use crate::scope::Scope;

/// What somebody is to do.
#[derive(Debug)]
pub(crate) struct Errand {
    pub(crate) agent: Arc<Agent>,
    pub(crate) edge: Edge,
    /// All that the agent sees. Masked already.
    pub(crate) mission: String,
    pub(crate) reason: String,
    /// After which it is cut off. Without one, the agent's own time counts.
    pub(crate) limit: Option<HumanDuration>,
    /// Those it runs with, if any.
    pub(crate) batch: Option<Batch>,
}

/// Errands that end together.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    /// The place of the call, with a token that ends all of them.
    pub(crate) scope: Scope,
    /// The first one that succeeds ends the others.
    pub(crate) is_race: bool,
}

impl Errand {
    /// From where the agent is involved.
    fn origin<'a>(&'a self, scope: &'a Scope) -> &'a Scope {
        self.batch.as_ref().map_or(scope, |batch| &batch.scope)
    }

    /// There is a result. In a race that is durable before the others are cancelled, so that a crash does not start it again.
    async fn succeeded(&self) -> Result<(), Failure> {
        if let Some(batch) = self.batch.as_ref().filter(|batch| batch.is_race) {
            batch.scope.run.journal.flush().await?;
            batch.scope.cancel.cancel();
        }
        Ok(())
    }
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) agent: Arc<Agent>,
    /// Where it was worked on. Nowhere, if it never began or the result was there already.
    pub(crate) session_id: Option<SessionId>,
    pub(crate) latency_ms: u64,
    /// Turns that were taken.
    pub(crate) steps: u32,
    pub(crate) result: Result<Brought, Failure>,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Brought {
    pub(crate) text: String,
    /// The session that has the whole text, if this is a summary.
    pub(crate) full_text: Option<SessionId>,
    /// The limit that made the agent end early.
    pub(crate) limit: Option<Limit>,
    /// It was there already.
    pub(crate) is_cached: bool,
}

impl Report {
    fn not_begun(errand: &Errand, result: Result<Brought, Failure>) -> Self {
        let agent = Arc::clone(&errand.agent);
        Self { agent, session_id: None, latency_ms: 0, steps: 0, result }
    }

    /// Why there is no result, as the caller may hear it: the words of an error are often those of the agent.
    pub(crate) fn error(&self) -> Option<String> {
        self.result.as_ref().err().map(|failure| shared(&self.agent, &failure.to_string()))
    }

    /// The same as it is kept and told.
    pub(crate) fn to_result(&self) -> SubAgentResult {
        let brought = self.result.as_ref().ok();
        SubAgentResult {
            agent_id: self.agent.name.clone(),
            success: brought.is_some(),
            response: brought.map(|brought| brought.text.clone()),
            error: self.error(),
            error_type: self.result.as_ref().err().map(|failure| failure.code().to_owned()),
            latency_ms: self.latency_ms,
            session_id: self.session_id.clone(),
            cached: brought.is_some_and(|brought| brought.is_cached),
            limit: brought.and_then(|brought| brought.limit).map(|limit| limit.word().to_owned()),
            full_text: brought.and_then(|brought| brought.full_text.as_ref()).map(pointer),
        }
    }
}

/// Has it done, at the place of a call. The outer error ends the run; whatever else goes wrong is in the report. When this returns,
/// nothing of it goes on.
pub(crate) async fn run(scope: &Scope, errand: Errand) -> Result<Report, Failure> {
    let child = match enter(scope, &errand).await {
        Ok(child) => child,
        Err(failure) if failure.ends_the_run(scope) => return Err(failure),
        Err(failure) => return Ok(Report::not_begun(&errand, Err(failure))),
    };
    let cache = ResultCache::of(scope, &errand);
    // What was begun before a crash goes on: it has its session, and somebody paid for it.
    let is_begun = scope.run.steps.contains_key(child.path());
    if let Some(result) = if is_begun { None } else { instead(scope, &errand, &cache).await? } {
        return Ok(Report::not_begun(&errand, result));
    }
    let (started, before) = (Instant::now(), scope.run.spent_before(child.path()));
    let session_id = child.session_id.clone();
    let (steps, result) = match work(scope, child, &errand).await {
        Ok(outcome) => {
            errand.succeeded().await?;
            let steps = outcome.answer.turns;
            let brought = conclude(scope, &errand, &session_id, outcome).await?;
            cache.keep(&brought).await;
            (steps, Ok(brought))
        }
        Err(failure) if failure.ends_the_run(scope) => return Err(failure),
        Err(failure) => (turns_taken(scope, &session_id), Err(failure)),
    };
    log(scope, &errand.agent.name, steps, result.as_ref().err());
    let agent = Arc::clone(&errand.agent);
    let latency_ms = u64::try_from((before + started.elapsed()).as_millis()).unwrap_or(u64::MAX);
    Ok(Report { agent, session_id: Some(session_id), latency_ms, steps, result })
}

/// Those who are asked together wait for each other. One that is called alone is refused when too many are at work: whoever calls
/// decides what to do then.
async fn enter(scope: &Scope, errand: &Errand) -> Result<Scope, Failure> {
    let origin = errand.origin(scope);
    match errand.batch {
        Some(_) => origin.enter_in_turn(&errand.agent, errand.edge).await,
        None => Ok(origin.enter(&errand.agent, errand.edge).await?),
    }
}

/// What there is in place of beginning: a result from before, or no need any more.
async fn instead(
    scope: &Scope,
    errand: &Errand,
    cache: &ResultCache<'_>,
) -> Result<Option<Result<Brought, Failure>>, Failure> {
    if scope.run.cancel.is_cancelled() {
        return Err(Failure::Cancelled);
    }
    if errand.origin(scope).cancel.is_cancelled() {
        return Ok(Some(Err(Failure::Cancelled)));
    }
    let found = cache.find().await;
    if found.is_some() {
        errand.succeeded().await?;
    }
    Ok(found.map(Ok))
}

async fn work(scope: &Scope, child: Scope, errand: &Errand) -> Result<Outcome, Failure> {
    let caller = &scope.run.caller;
    tracing::info!(
        thread_id = %caller.thread_id, source_agent = %scope.name(), target_agent = %errand.agent.name,
        tenant_id = %caller.tenant, sanitized = scope.agent.sanitize, "Delegation started"
    );
    let sent = Sent { by: scope.name().clone(), reason: errand.reason.as_str().into() };
    let input = Input { sent: Some(sent), ..Input::text(errand.mission.clone()) };
    match errand.limit {
        Some(limit) => children::within(child, input, limit).await,
        None => run::run(child, input).await,
    }
}

/// The result as the caller gets it: a long one as a summary, if that is wanted.
async fn conclude(
    scope: &Scope,
    errand: &Errand,
    session_id: &SessionId,
    outcome: Outcome,
) -> Result<Brought, Failure> {
    let limit = outcome.answer.limit;
    let text = shared(speaker(scope, errand, &outcome), &outcome.answer.text);
    let most = summary_length(scope).filter(|most| text.chars().count() > *most);
    let Some(most) = most else {
        return Ok(Brought { text, full_text: None, limit, is_cached: false });
    };
    // The caller wants it shorter, so it is the caller's model that shortens it, at the place of the one who wrote it.
    let place = scope.at(&format!("{}:{}", errand.edge.word(), errand.agent.name));
    let text = summary::summarize(&place, &text, most).await?;
    Ok(Brought { text, full_text: Some(session_id.clone()), limit, is_cached: false })
}

/// Whose words a result is: what goes back to the caller leaves their hands, so it is their file that says what is masked.
fn speaker<'a>(scope: &'a Scope, errand: &'a Errand, outcome: &Outcome) -> &'a Agent {
    let other = (outcome.agent != errand.agent.name).then(|| scope.run.agents.get(&outcome.agent)).flatten();
    other.unwrap_or(&errand.agent)
}

/// How long a result may be before it is summarised, in characters. `None`: as long as it likes.
pub(super) fn summary_length(scope: &Scope) -> Option<usize> {
    let (own, policy) = (&scope.agent.delegation, &scope.run.engine.parts.policy);
    if own.summarize_results {
        Some(own.summary_max_length as usize)
    } else {
        policy.summarize_results.then_some(policy.summary_max_length as usize)
    }
}

/// Of a session that came to nothing.
fn turns_taken(scope: &Scope, session_id: &SessionId) -> u32 {
    let rows = scope.run.ledger.rows();
    let turns = rows.iter().filter(|row| row.session_id == *session_id);
    let turns = turns.filter(|row| matches!(row.call, Called::Model { .. })).count();
    u32::try_from(turns).unwrap_or(u32::MAX)
}

fn log(scope: &Scope, agent: &AgentName, steps_taken: u32, failure: Option<&Failure>) {
    let thread_id = scope.run.caller.thread_id;
    match failure {
        None => {
            tracing::info!(%thread_id, specialist = %agent, success = true, steps_taken, "sub_agent_completed");
        }
        Some(failure) => tracing::info!(
            %thread_id, specialist = %agent, error = %failure, error_type = failure.code(), "sub_agent_failed"
        ),
    }
}
