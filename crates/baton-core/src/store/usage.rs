//! What was spent, added up.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::choices;
use crate::id::UserId;
use crate::store::Pending;
use crate::usage::Usage;

choices! {
    /// What sums are made for.
    pub enum UsageBy {
        Agent = "agent",
        User = "user",
        /// `provider/model`.
        Model = "model",
        /// In UTC, as `2026-11-16`.
        Day = "day",
    }
}

/// Which calls are added up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageQuery {
    pub by: UsageBy,
    /// Only what was done for this user.
    pub user_id: Option<UserId>,
    /// Only calls that began at this time or later,
    pub since: Option<Timestamp>,
    /// and before this one.
    pub until: Option<Timestamp>,
}

/// One sum. Those that cost most come first, days in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageLine {
    /// The agent, user, model or day.
    pub key: String,
    pub runs: u64,
    pub model_calls: u64,
    pub tool_calls: u64,
    #[serde(flatten)]
    pub usage: Usage,
}

pub trait Usages: Send + Sync {
    /// Sums over the ledger. Calls of tools belong to no model.
    fn usage(&self, query: UsageQuery) -> Pending<'_, Vec<UsageLine>>;
}
