//! Time limits for child agents.

use std::sync::{Arc, OnceLock};

use baton_core::HumanDuration;
use baton_core::agent::PlanningStrategy;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::run::{self, Input};
use crate::scope::Scope;

/// Records that the time limit of a scope or of one of its ancestors has expired. The cancellation is then reported as a timeout.
#[derive(Debug, Default)]
pub(crate) struct TimeoutFlag {
    late: OnceLock<HumanDuration>,
    /// The text of the reply that the expiry cut off.
    partial: OnceLock<String>,
    /// The path of the scope that has the time limit.
    path: Arc<str>,
    above: Option<Arc<Self>>,
}

impl TimeoutFlag {
    fn below(above: &Arc<Self>, path: Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            late: OnceLock::new(),
            partial: OnceLock::new(),
            path,
            above: Some(Arc::clone(above)),
        })
    }

    /// Whether `path` is a turn of the session that has the time limit, and not of an agent that the session invoked.
    fn is_own_turn(&self, path: &str) -> bool {
        let turn = path.strip_prefix(&*self.path).and_then(|rest| rest.strip_prefix("/turn:"));
        turn.is_some_and(|turn| !turn.contains('/'))
    }

    fn late(&self) -> Option<HumanDuration> {
        let mut line = std::iter::successors(Some(self), |flag| flag.above.as_deref());
        line.find_map(|flag| flag.late.get().copied())
    }
}

/// Runs a child with a time limit. On expiry the child is cancelled and awaited, so that its usage is in the ledger and no task
/// of it is left. Time spent before a crash counts.
pub(crate) async fn run_with_timeout(
    child: Scope,
    input: Input,
    limit: HumanDuration,
) -> Result<Outcome, Failure> {
    run_until(child, input, limit, None).await
}

/// Like [`run_with_timeout`], with a deadline that several children share.
pub(crate) async fn run_with_deadline(
    child: Scope,
    input: Input,
    limit: HumanDuration,
    latest: Instant,
) -> Result<Outcome, Failure> {
    run_until(child, input, limit, Some(latest)).await
}

async fn run_until(
    child: Scope,
    input: Input,
    limit: HumanDuration,
    latest: Option<Instant>,
) -> Result<Outcome, Failure> {
    let child = child.with_timeout_flag();
    let scope = child.clone();
    let until = Instant::now() + limit.get().saturating_sub(child.run.prior_duration(child.path()));
    let until = latest.map_or(until, |latest| latest.min(until));
    let mut work = run::run(child, input);
    tokio::select! {
        biased;
        result = &mut work => result,
        () = tokio::time::sleep_until(until) => {
            scope.time_out(limit);
            // The recorded result counts: a child that finishes at the moment of expiry has succeeded.
            work.await.map_err(|failure| failure.or_timeout(&scope))
        }
    }
}

impl Scope {
    /// The same scope with its own cancellation token and timeout flag.
    #[must_use]
    pub(crate) fn with_timeout_flag(&self) -> Self {
        let mut timed = self.cancellable();
        timed.timeout_flag = TimeoutFlag::below(&self.timeout_flag, self.shared_path());
        timed
    }

    /// Marks the time limit as expired and cancels everything at and below this scope. `limit` is the duration to report.
    pub(crate) fn time_out(&self, limit: HumanDuration) {
        let _ = self.timeout_flag.late.set(limit);
        self.cancel.cancel();
    }

    /// Keeps the text of a reply that was cut off, if a time limit cut it and it would have been the agent's answer. A plan, or
    /// the draft of an agent that hands off, is not kept.
    pub(crate) fn keep_partial(&self, text: &str) {
        let flag = &self.timeout_flag;
        let is_answer =
            self.agent.handoff.is_empty() && self.agent.planning_strategy == PlanningStrategy::NativeReact;
        if is_answer && flag.late.get().is_some() && flag.is_own_turn(self.path()) && !text.trim().is_empty()
        {
            let _ = flag.partial.set(text.trim().to_owned());
        }
    }
}

impl Failure {
    /// Turns a cancellation that an expired time limit caused into [`Failure::TimedOut`], with the text that was cut off. If the
    /// whole run is cancelled, it stays a cancellation.
    pub(crate) fn or_timeout(self, scope: &Scope) -> Self {
        match (self, scope.timeout_flag.late()) {
            (Self::Cancelled, Some(limit)) if !scope.run.cancel.is_cancelled() => {
                Self::TimedOut { limit, partial: scope.timeout_flag.partial.get().cloned() }
            }
            (failure, _) => failure,
        }
    }
}
