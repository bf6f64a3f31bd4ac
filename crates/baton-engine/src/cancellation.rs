//! Cancels a part of a run, and remembers whether an expired time limit was the reason.

use std::sync::{Arc, OnceLock};

use baton_core::HumanDuration;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::failure::Failure;

/// The tokens of a run. Cloned into the registry of active runs.
#[derive(Debug, Clone)]
pub(crate) struct CancelTokens {
    /// Requests a closing turn: an answer from what is there.
    pub(crate) stop: CancellationToken,
    pub(crate) cancel: CancellationToken,
}

/// Cancels everything at and below a path of a run.
#[derive(Debug, Clone)]
pub(crate) struct Cancellation {
    pub(crate) token: CancellationToken,
    /// Set if the token was cancelled because a time limit expired.
    timeout: Arc<TimeoutFlag>,
}

/// Records that the time limit of a path or of one of its ancestors has expired. The cancellation is then reported as a timeout.
#[derive(Debug, Default)]
struct TimeoutFlag {
    late: OnceLock<HumanDuration>,
    /// The text of the reply that the expiry cut off.
    partial: OnceLock<String>,
    /// The path that has the time limit.
    path: Arc<str>,
    above: Option<Arc<Self>>,
}

impl Cancellation {
    pub(crate) fn new(token: CancellationToken) -> Self {
        Self { token, timeout: Arc::default() }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    pub(crate) fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.token.cancelled()
    }

    pub(crate) fn cancel(&self) {
        self.token.cancel();
    }

    /// A cancellation of its own, below this one.
    #[must_use]
    pub(crate) fn child(&self) -> Self {
        Self { token: self.token.child_token(), timeout: Arc::clone(&self.timeout) }
    }

    /// Like [`Cancellation::child`], for a path with its own time limit.
    #[must_use]
    pub(crate) fn with_time_limit(&self, path: Arc<str>) -> Self {
        let above = Some(Arc::clone(&self.timeout));
        let flag = TimeoutFlag { path, above, ..TimeoutFlag::default() };
        Self { token: self.token.child_token(), timeout: Arc::new(flag) }
    }

    /// Marks the time limit as expired and cancels. `limit` is the duration to report.
    pub(crate) fn time_out(&self, limit: HumanDuration) {
        let _ = self.timeout.late.set(limit);
        self.cancel();
    }

    /// Keeps the text of a reply that was cut off, if a time limit cut it and `turn` is a turn of the session that has the limit.
    pub(crate) fn keep_partial(&self, turn: &str, text: &str) {
        let flag = &self.timeout;
        if flag.late.get().is_some() && flag.is_own_turn(turn) && !text.trim().is_empty() {
            let _ = flag.partial.set(text.trim().to_owned());
        }
    }

    /// Turns a cancellation that an expired time limit caused into [`Failure::TimedOut`], with the text that was cut off. If the
    /// whole run is cancelled, it stays a cancellation.
    pub(crate) fn or_timeout(&self, failure: Failure, run: &CancellationToken) -> Failure {
        match (failure, self.timeout.late()) {
            (Failure::Cancelled, Some(limit)) if !run.is_cancelled() => {
                Failure::TimedOut { limit, partial: self.timeout.partial.get().cloned() }
            }
            (failure, _) => failure,
        }
    }
}

impl TimeoutFlag {
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
