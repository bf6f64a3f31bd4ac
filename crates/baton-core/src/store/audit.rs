//! Who did what: append-only, per tenant. Entries form several hash chains, and seals bind the chains together.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{RunId, ThreadId};
use crate::store::{Order, Page, PageRequest, Pending};

/// Something that somebody did. Never holds what was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// A user, an agent, or `system`. Stored without NUL characters.
    pub actor: String,
    /// On whose behalf, when that is somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    /// `thread.delete`, `run.start`, `agent.delegate`, … Stored without NUL characters.
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

/// An entry in its place in the trail. `chain` and `number` together identify it within its tenant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Audited {
    /// 0 to 15. All entries of a thread are in the same chain; those without a thread are in chain 0.
    pub chain: u8,
    /// Within the chain: from 1, without gaps.
    pub number: u64,
    pub at: Timestamp,
    #[serde(flatten)]
    pub entry: AuditEntry,
    /// SHA-256 over the hash before it in the chain, the number, the time and the entry, as 64 hexadecimal digits.
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

/// The ends of all chains of a tenant at one moment, bound to the seal before by its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Seal {
    /// From 1, without gaps.
    pub number: u64,
    pub at: Timestamp,
    /// How many entries it covers, in all chains together.
    pub entries: u64,
    /// SHA-256 over the hash of the seal before, the number, the time and the Merkle root of all chains, in hexadecimal.
    pub hash: String,
}

/// Result of reading the whole trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// All entries and seals are there and as they were written.
    Intact {
        entries: u64,
        /// Merkle root over the ends of all chains. Empty if there are no entries.
        head: String,
        /// The newest seal. Kept elsewhere, it shows later that nothing it covers was changed or removed.
        #[serde(skip_serializing_if = "Option::is_none")]
        seal: Option<Seal>,
    },
    /// The first place that is not as it was written.
    Broken {
        /// The chain of the entry; `None` if `number` is that of a seal.
        #[serde(skip_serializing_if = "Option::is_none")]
        chain: Option<u8>,
        number: u64,
        reason: String,
    },
}

/// What can be done with the trail. There is no change and no deletion.
pub trait Audit: Send + Sync {
    fn record(&self, entry: AuditEntry) -> Pending<'_, ()>;

    /// In the order of the query: by time, then chain, then number. The cost depends on the page and not on the length of the
    /// trail, with two exceptions: a second filter is applied to the entries that the first one finds, and `message.send`,
    /// `run.start` and `run.end` are picked from the entries of all actions.
    fn audit(&self, query: AuditQuery, page: PageRequest) -> Pending<'_, Page<Audited>>;

    fn verify_audit(&self) -> Pending<'_, Verdict>;
}
