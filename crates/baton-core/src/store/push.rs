//! Push notifications of A2A tasks: where the state of a run is sent to, and which deliveries are still to be made.
//!
//! A delivery is due while the status of the run differs from the one that was delivered last, so a run's writes know nothing of it.
//! A process takes a delivery for a limited time; if the process dies, it is due again after that time. Each status that lasts is
//! therefore delivered at least once.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{AgentName, RunId, UserId};
use crate::store::{NextNotification, Pending, RunStatus};

/// Where and how a task's state is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushTarget {
    pub url: String,
    /// Sent as `X-A2A-Notification-Token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The value of the `Authorization` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<String>,
    /// Authentication schemes as the client named them, to be shown to it again.
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

/// A delivery that this process makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenPush {
    pub config: PushConfig,
    /// The run that the task is at.
    pub run_id: RunId,
    pub user_id: UserId,
    /// The status to deliver.
    pub status: RunStatus,
    /// Including this one.
    pub attempt: u32,
}

pub trait PushConfigs: Send + Sync {
    /// Adds a configuration, or replaces the one with the same id. [`NotFound`](super::StoreError::NotFound) if the run is unknown,
    /// [`Conflict`](super::StoreError::Conflict) if the task has `most` others.
    fn put_push_config(&self, config: PushConfig, most: u32) -> Pending<'_, ()>;

    /// In the order in which they were added.
    fn push_configs(&self, task: RunId) -> Pending<'_, Vec<PushConfig>>;

    /// Returns whether it existed.
    fn delete_push_config(&self, key: PushKey) -> Pending<'_, bool>;

    /// Takes a delivery that is due. `None` if nothing is to be delivered any more, or another process has it.
    fn take_push(&self, key: PushKey, lease: Duration) -> Pending<'_, Option<TakenPush>>;

    /// Notes that `status` was delivered, or is given up, or when to try again.
    fn settle_push(&self, key: PushKey, status: RunStatus, next: NextNotification) -> Pending<'_, ()>;
}
