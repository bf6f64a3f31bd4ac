//! The audit trail: append-only, per tenant. Entries form several hash chains, and seals bind the chains together. Seals are signed
//! with a key that is not in the store, if one is configured.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{RunId, ThreadId};
use crate::store::{Order, Page, PageRequest, Pending};

/// An action. Never contains message content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// The client's address, if the action was requested over the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
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
    /// HMAC-SHA-256 over the previous seal's hash, the number, the time and the Merkle root of all chains, in hexadecimal. SHA-256
    /// without a key.
    pub hash: String,
    /// The id of the key; `None` without a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
}

/// How much of a trail is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditScope {
    /// Everything since the newest seal of the last successful verification.
    #[default]
    Incremental,
    /// Every entry and seal.
    Full,
}

/// What retention has removed from the beginning of a trail, as a signed record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditTruncation {
    /// The last seal that was removed.
    pub seal: u64,
    /// Entries that were removed, in total.
    pub entries: u64,
    /// When entries were last removed.
    pub at: Timestamp,
}

/// Result of verifying a trail.
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
        /// Verification began after this seal, which an earlier verification had reached; `None` if everything was read.
        #[serde(skip_serializing_if = "Option::is_none")]
        since_seal: Option<u64>,
        /// The number of seals that were not signed with a configured key, from the first one on. A later seal covers them.
        #[serde(skip_serializing_if = "is_zero")]
        unsigned_seals: u64,
        /// What was removed from the beginning of the trail. Verification began after it.
        #[serde(skip_serializing_if = "Option::is_none")]
        truncation: Option<AuditTruncation>,
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

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Operations on the audit trail. Entries cannot be changed or deleted.
pub trait Audit: Send + Sync {
    fn record(&self, entry: AuditEntry) -> Pending<'_, ()>;

    /// In the order of the query: by time, then chain, then number. The cost depends on the page size and not on the length of
    /// the trail, with two exceptions: a second filter is applied to the entries that the first one finds, and `message.send`,
    /// `run.start` and `run.end` are filtered from the entries of all actions.
    fn audit(&self, query: AuditQuery, page: PageRequest) -> Pending<'_, Page<Audited>>;

    /// An intact trail is remembered up to its newest seal, so that the next incremental verification begins there.
    fn verify_audit(&self, scope: AuditScope) -> Pending<'_, AuditVerdict>;

    /// Verifies the whole trail, and seals it with the current key even if its seals were made with another key or without one. For the
    /// first use of a key: from then on, only seals of configured keys are accepted.
    fn sign_audit(&self) -> Pending<'_, AuditVerdict>;
}
