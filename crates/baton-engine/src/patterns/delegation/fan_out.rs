//! Runs several agents on the same message: in parallel, in sequence, or until the first success.

use std::pin::pin;
use std::sync::Arc;

use baton_core::agent::{Agent, Strategy};
use baton_core::message::Visibility;
use baton_core::{HumanDuration, SubAgentResult};
use futures_util::{StreamExt as _, stream};

use super::MAX_PREVIEW_CHARS;
use super::buffer::ResultBuffer;
use crate::approvals::parking;
use crate::bounds::InvocationKind;
use crate::failure::Failure;
use crate::patterns::calling::task::{self, SubAgentTask, TaskBatch, TaskReport};
use crate::redaction::head;
use crate::results;
use crate::scope::Scope;

/// Options of a fan-out.
#[derive(Debug, Clone, Copy)]
pub(super) struct FanOutOptions {
    pub(super) strategy: Strategy,
    /// Timeout of each agent.
    pub(super) limit: HumanDuration,
    pub(super) max_parallel: usize,
    pub(super) audience: ResultAudience,
}

/// Receiver of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultAudience {
    /// Gets all results together, as the result of its tool call.
    Model,
    /// Gets an event for each result as soon as it is there.
    Caller,
}

/// Runs all agents. A failed agent is a result; an `Err` ends the run. Agents that lost the race, and all agents when the run
/// ends, are cancelled and awaited, so that their whole cost is billed before this returns.
pub(super) async fn run(
    scope: &Scope,
    agents: &[Arc<Agent>],
    message: &str,
    options: FanOutOptions,
) -> Result<ResultBuffer, Failure> {
    let is_race = options.strategy == Strategy::FirstSuccess;
    let batch = &TaskBatch { scope: scope.cancellable(), is_race };
    let mut buffer = ResultBuffer::new(agents.len());
    let (mut over, mut waiting) = (None, Vec::new());
    let ask = |at: usize| async move {
        let task = SubAgentTask {
            agent: Arc::clone(&agents[at]),
            invocation: InvocationKind::Delegate,
            mission: message.to_owned(),
            reason: head(message, MAX_PREVIEW_CHARS),
            limit: Some(options.limit),
            batch: Some(batch.clone()),
        };
        (at, run_task(scope, task, options.audience).await)
    };
    let max_parallel = if options.strategy == Strategy::Sequential { 1 } else { options.max_parallel };
    let (ended, others) = finished_first(scope, agents, is_race);
    let ended = stream::iter(ended.into_iter().map(ask)).buffer_unordered(1);
    let others = stream::iter(others.into_iter().map(ask)).buffer_unordered(max_parallel);
    let mut work = pin!(ended.chain(others));
    while let Some((at, done)) = work.next().await {
        match done {
            Ok(report) => {
                if is_race && report.result.is_ok() {
                    buffer.set_winner(at);
                }
                buffer.put(at, report.to_result());
            }
            // The others continue, and may even win the race.
            Err(Failure::Waiting) => waiting.push(at),
            Err(failure) => {
                batch.scope.cancel.cancel();
                over.get_or_insert(failure);
            }
        }
    }
    match over {
        Some(failure) => Err(failure),
        None if waiting.is_empty() => Ok(buffer),
        None if is_race && buffer.has_winner() => {
            for at in waiting {
                withdraw(scope, &agents[at]).await;
                let name = agents[at].name.clone();
                let cancelled = Failure::Cancelled;
                buffer.put(at, SubAgentResult::failed(name, cancelled.to_string(), cancelled.code()));
            }
            Ok(buffer)
        }
        None => Err(Failure::Waiting),
    }
}

/// Closes the approvals of an agent that lost the race while it waited.
async fn withdraw(scope: &Scope, agent: &Agent) {
    let place = scope.at(&format!("{}:{}", InvocationKind::Delegate.word(), agent.name));
    let requests = scope.run.waits.withdraw(place.path());
    let closed = parking::withdraw(requests, |kind| place.event(Visibility::User, kind));
    scope.run.recorder.journal.commit_soon(closed).await;
}

async fn run_task(
    scope: &Scope,
    task: SubAgentTask,
    audience: ResultAudience,
) -> Result<TaskReport, Failure> {
    let report = task::run(scope, task).await?;
    if audience == ResultAudience::Caller {
        results::emit_result(scope, &report.to_result()).await?;
    }
    Ok(report)
}

/// In a race, agents that finished before a crash come first, because one of them may have won already.
fn finished_first(scope: &Scope, agents: &[Arc<Agent>], is_race: bool) -> (Vec<usize>, Vec<usize>) {
    let place = |at: usize| scope.at(&format!("{}:{}", InvocationKind::Delegate.word(), agents[at].name));
    (0..agents.len()).partition(|at| is_race && place(*at).step().is_finished())
}
