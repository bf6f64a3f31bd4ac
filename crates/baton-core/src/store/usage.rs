//! Usage reports.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::choices;
use crate::id::UserId;
use crate::store::Pending;
use crate::usage::Usage;

choices! {
    /// The grouping of a report.
    pub enum UsageBy {
        Agent = "agent",
        User = "user",
        /// `provider/model`.
        Model = "model",
        /// UTC date, such as `2026-11-16`.
        Day = "day",
    }
}

/// Selects the calls of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageQuery {
    pub by: UsageBy,
    /// Only calls of this user's runs.
    pub user_id: Option<UserId>,
    /// Inclusive lower bound of the start time.
    pub since: Option<Timestamp>,
    /// Exclusive upper bound of the start time.
    pub until: Option<Timestamp>,
}

/// One row of a report. Days are in order, other rows by descending cost.
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
    /// Sums over the ledger. Tool calls belong to no model.
    fn usage(&self, query: UsageQuery) -> Pending<'_, Vec<UsageLine>>;
}
