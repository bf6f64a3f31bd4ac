//! The audit trail: append-only, per tenant. Entries form several hash chains, and seals bind the chains together.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{RunId, ThreadId};
use crate::store::{Order, Page, PageRequest, Pending};

/// An action. Never contains message content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// A user, an agent, or `system`. Stored without NUL characters.
    pub actor: String,
    /// The principal, if it differs from the actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    /// `thread.delete`, `run.start`, `agent.delegate`, … Stored without NUL characters.
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// `allowed`, `denied`, or the outcome.
    pub decision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub detail: Value,
}

/// An entry with its position. `chain` and `number` identify it within its tenant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Audited {
    /// 0 to 15. All entries of a thread are in the same chain; those without a thread are in chain 0.
    pub chain: u8,
    /// Position in the chain: from 1, without gaps.
    pub number: u64,
    pub at: Timestamp,
    #[serde(flatten)]
    pub entry: AuditEntry,
    /// SHA-256 over the previous hash of the chain, the number, the time and the entry, as 64 hexadecimal digits.
    pub hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditQuery {
    pub thread_id: Option<ThreadId>,
    pub actor: Option<String>,
    pub action: Option<String>,
    /// Inclusive lower bound.
    pub since: Option<Timestamp>,
    /// Exclusive upper bound.
    pub until: Option<Timestamp>,
    pub order: Order,
}

/// One hash over the ends of all chains of a tenant, chained to the previous seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Seal {
    /// From 1, without gaps.
    pub number: u64,
    pub at: Timestamp,
    /// Number of entries covered, over all chains.
    pub entries: u64,
    /// SHA-256 over the previous seal's hash, the number, the time and the Merkle root of all chains, in hexadecimal.
    pub hash: String,
}

/// Result of verifying the whole trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum AuditVerdict {
    /// All entries and seals are present and unchanged.
    Intact {
        entries: u64,
        /// Merkle root over the ends of all chains. Empty if there are no entries.
        head: String,
        /// The newest seal. A copy kept elsewhere later proves that nothing it covers was changed or removed.
        #[serde(skip_serializing_if = "Option::is_none")]
        seal: Option<Seal>,
    },
    /// The first position that fails verification.
    Broken {
        /// The chain of the entry; `None` if `number` is a seal's.
        #[serde(skip_serializing_if = "Option::is_none")]
        chain: Option<u8>,
        number: u64,
        reason: String,
    },
}

/// Operations on the audit trail. Entries cannot be changed or deleted.
pub trait Audit: Send + Sync {
    fn record(&self, entry: AuditEntry) -> Pending<'_, ()>;

    /// In the order of the query: by time, then chain, then number. The cost depends on the page size and not on the length of
    /// the trail, with two exceptions: a second filter is applied to the entries that the first one finds, and `message.send`,
    /// `run.start` and `run.end` are filtered from the entries of all actions.
    fn audit(&self, query: AuditQuery, page: PageRequest) -> Pending<'_, Page<Audited>>;

    fn verify_audit(&self) -> Pending<'_, AuditVerdict>;
}
