//! The ledger: one row per model or tool call, including failed and cancelled calls.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::choices;
use crate::id::{AgentName, RunId, SessionId};
use crate::usage::{Cost, Tokens, Usage};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerRow {
    pub run_id: RunId,
    pub session_id: SessionId,
    pub agent: AgentName,
    /// Position in the run's tree, such as `assistant/turn:2/tool:1`. The total of a subtree is the sum over a prefix.
    pub path: String,
    #[serde(flatten)]
    pub call: Called,
    pub tokens: Tokens,
    /// The provider reported no usage, for example because the call was cut off: the tokens are estimated from the text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    pub cost: Cost,
    pub started_at: Timestamp,
    pub latency_ms: u64,
    pub outcome: CallOutcome,
    /// The stable code of the error, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Called {
    Model { provider: String, model: String },
    Tool { tool: String },
}

choices! {
    pub enum CallOutcome {
        Ok = "ok",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

impl LedgerRow {
    pub fn usage(&self) -> Usage {
        Usage { tokens: self.tokens, cost: self.cost, estimated: self.estimated }
    }
}

/// Total usage of one agent within a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentUsage {
    pub agent: AgentName,
    pub usage: Usage,
}

/// Totals per agent, ordered by name.
pub fn by_agent<'a>(rows: impl IntoIterator<Item = &'a LedgerRow>) -> Vec<AgentUsage> {
    let mut totals: BTreeMap<&AgentName, Usage> = BTreeMap::new();
    for row in rows {
        *totals.entry(&row.agent).or_default() += row.usage();
    }
    totals.into_iter().map(|(agent, usage)| AgentUsage { agent: agent.clone(), usage }).collect()
}

/// Total of all rows at or below `path`.
pub fn subtree<'a>(rows: impl IntoIterator<Item = &'a LedgerRow>, path: &str) -> Usage {
    let below = |row: &&LedgerRow| {
        row.path
            .strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || path.is_empty())
    };
    rows.into_iter().filter(below).fold(Usage::default(), |mut total, row| {
        total += row.usage();
        total
    })
}
