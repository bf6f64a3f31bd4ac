//! How several agents are asked: all at once, one after the other, or until one succeeds.

use std::pin::pin;
use std::sync::Arc;

use baton_core::HumanDuration;
use baton_core::agent::{Agent, Strategy};
use futures_util::{StreamExt as _, stream};

use super::PREVIEW;
use super::buffer::Buffer;
use crate::bounds::Edge;
use crate::failure::Failure;
use crate::patterns::calling::errand::{self, Batch, Errand, Report};
use crate::patterns::handover::head;
use crate::scope::Scope;

/// Under which terms they are asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) strategy: Strategy,
    /// For each of them.
    pub(super) limit: HumanDuration,
    pub(super) at_once: usize,
    pub(super) hearer: Hearer,
}

/// Who had them asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hearer {
    /// Hears of all results together, as the answer to its call.
    Model,
    /// Hears of each when it is there.
    Caller,
}

/// Asks all of them. One that fails is a result like any other. When this returns, nobody is at work any more: those who lost, and
/// everybody when the run ends, are told to end and waited for, so that all they spent is on the books.
pub(super) async fn out(
    scope: &Scope,
    agents: &[Arc<Agent>],
    message: &str,
    terms: Terms,
) -> Result<Buffer, Failure> {
    let is_race = terms.strategy == Strategy::FirstSuccess;
    let batch = &Batch { scope: scope.cancellable(), is_race };
    let mut buffer = Buffer::new(agents.len());
    let mut over = None;
    let ask = |at: usize| async move {
        let errand = Errand {
            agent: Arc::clone(&agents[at]),
            edge: Edge::Delegate,
            mission: message.to_owned(),
            reason: head(message, PREVIEW),
            limit: Some(terms.limit),
            batch: Some(batch.clone()),
        };
        (at, hear(scope, errand, terms.hearer).await)
    };
    let at_once = if terms.strategy == Strategy::Sequential { 1 } else { terms.at_once };
    let (ended, others) = by_record(scope, agents, is_race);
    let ended = stream::iter(ended.into_iter().map(ask)).buffer_unordered(1);
    let others = stream::iter(others.into_iter().map(ask)).buffer_unordered(at_once);
    let mut work = pin!(ended.chain(others));
    while let Some((at, done)) = work.next().await {
        match done {
            Ok(report) => {
                if is_race && report.result.is_ok() {
                    buffer.won_by(at);
                }
                buffer.put(at, report.to_result());
            }
            Err(failure) => {
                batch.scope.cancel.cancel();
                over.get_or_insert(failure);
            }
        }
    }
    over.map_or(Ok(buffer), Err)
}

async fn hear(scope: &Scope, errand: Errand, hearer: Hearer) -> Result<Report, Failure> {
    let report = errand::run(scope, errand).await?;
    if hearer == Hearer::Caller {
        scope.tell_result(&report.to_result()).await?;
    }
    Ok(report)
}

/// Where the first success counts, those who came to an end before a crash are looked at before anybody else begins: one of them
/// may have won already.
fn by_record(scope: &Scope, agents: &[Arc<Agent>], is_race: bool) -> (Vec<usize>, Vec<usize>) {
    let place = |at: usize| scope.at(&format!("{}:{}", Edge::Delegate.word(), agents[at].name));
    (0..agents.len()).partition(|at| is_race && place(*at).is_finished())
}
