//! Who did what: append-only, per tenant, each entry bound to the one before by a hash.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{RunId, ThreadId};
use crate::store::{Order, Page, PageRequest, Pending};

/// Something that somebody did. Never holds what was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// A user, an agent, or `system`.
    pub actor: String,
    /// On whose behalf, when that is somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    /// `thread.delete`, `run.start`, `agent.delegate`, …
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// `allowed`, `denied`, or how it ended.
    pub decision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub detail: Value,
}

/// An entry in its place in the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Audited {
    /// From 1, without gaps.
    pub number: u64,
    pub at: Timestamp,
    #[serde(flatten)]
    pub entry: AuditEntry,
    /// SHA-256 over the hash before, the number, the time and the entry.
    pub hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditQuery {
    pub thread_id: Option<ThreadId>,
    pub actor: Option<String>,
    pub action: Option<String>,
    /// Only entries of this time or later,
    pub since: Option<Timestamp>,
    /// and before this one.
    pub until: Option<Timestamp>,
    pub order: Order,
}

/// What reading the whole chain found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// All entries are there and as they were written. The hash of the last one can be kept elsewhere and compared later.
    Intact { entries: u64, head: String },
    /// The first place where the chain does not hold.
    Broken { number: u64, reason: String },
}

/// What can be done with the trail. There is no change and no deletion.
pub trait Audit: Send + Sync {
    fn record(&self, entry: AuditEntry) -> Pending<'_, ()>;

    /// In the order of the query. The cost depends on the page and not on the length of the trail.
    fn audit(&self, query: AuditQuery, page: PageRequest) -> Pending<'_, Page<Audited>>;

    fn verify_audit(&self) -> Pending<'_, Verdict>;
}
