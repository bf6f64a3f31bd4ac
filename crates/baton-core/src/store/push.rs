//! Push notifications of A2A tasks: where the state of a task is sent to, and which deliveries are still to be made.
//!
//! A configuration is due when the status of the task's run is not the one that was looked at last, so a run's writes know nothing of
//! it. A process takes it for a limited time; if the process dies, it is due again after that time. Each state that lasts is
//! therefore delivered at least once.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{AgentName, RunId, UserId};
use crate::store::{Pending, RunStatus};

/// Where and how a task's state is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushTarget {
    pub url: String,
    /// Sent as `X-A2A-Notification-Token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Sent in the `Authorization` header, after the first scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
    /// Authentication schemes as the client named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemes: Vec<String>,
    /// The version of the protocol that the client speaks, such as `0.3`.
    pub version: String,
    /// The agent whose address the client used.
    pub agent: AgentName,
}

/// A push notification configuration of a task. A task has the id of its first run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfig {
    pub task: RunId,
    /// Unique within the task.
    pub id: String,
    pub target: PushTarget,
}

/// Names a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PushKey {
    pub task: RunId,
    pub id: String,
}

/// A configuration that this process looks at, and delivers if the state has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenPush {
    pub config: PushConfig,
    /// Who owns the task.
    pub user_id: UserId,
    /// The state that was delivered last, as it was given to [`PushConfigs::settle_push`]; empty at first.
    pub delivered: String,
    /// Including this one, since the last success.
    pub attempt: u32,
    /// When the process loses it. Identifies this look.
    pub until: Timestamp,
}

/// What follows a look at a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushOutcome {
    /// `state` was delivered, is given up or was known. The next look is due when the status of `run` is not `status`, and after
    /// `recheck` if that is set.
    Done { run: RunId, status: RunStatus, state: String, recheck: Option<Duration> },
    /// The delivery failed and is tried again.
    Retry(Duration),
    /// The task has ended, and its last state was delivered or is given up.
    Ended,
}

pub trait PushConfigs: Send + Sync {
    /// Adds a configuration, or replaces the one with the same id. [`NotFound`](super::StoreError::NotFound) if the run is unknown,
    /// [`Conflict`](super::StoreError::Conflict) if the task has `most` others.
    fn put_push_config(&self, config: PushConfig, most: u32) -> Pending<'_, ()>;

    /// In the order in which they were added.
    fn push_configs(&self, task: RunId) -> Pending<'_, Vec<PushConfig>>;

    /// Returns whether it existed.
    fn delete_push_config(&self, key: PushKey) -> Pending<'_, bool>;

    /// Takes a configuration that is due. `None` if it is not any more, or another process has it.
    fn take_push(&self, key: PushKey, lease: Duration) -> Pending<'_, Option<TakenPush>>;

    /// Ends the look that lasts `until`. Has no effect if the configuration was replaced or taken by another process meanwhile.
    fn settle_push(&self, key: PushKey, until: Timestamp, outcome: PushOutcome) -> Pending<'_, ()>;
}
