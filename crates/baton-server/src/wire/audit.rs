//! Who did what.

use baton_core::store::{AuditEntry, AuditQuery, Audited, Order};
use baton_core::{RunId, TenantId, ThreadId, choices};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::page::Limit;
use super::schema::{moment, order, words};

/// Which entries are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AuditParams {
    /// Only about this thread. It may have been deleted: what was done to it stays on record.
    #[param(value_type = Option<uuid::Uuid>)]
    pub thread_id: Option<ThreadId>,
    /// Only by this user, agent, or `system`.
    pub actor: Option<String>,
    /// Only this action, such as `thread.delete`.
    pub action: Option<String>,
    /// Only entries of this moment or later,
    #[param(schema_with = moment)]
    pub since: Option<Timestamp>,
    /// and before this one.
    #[param(schema_with = moment)]
    pub until: Option<Timestamp>,
    /// `asc`: the oldest first. `desc`: the newest first. A cursor is valid in its own order only.
    #[param(schema_with = order)]
    pub order: Option<Order>,
    /// Whose trail: `tenant`, or `installation` for failed authentications and changes of the configuration, which needs
    /// `system:read`.
    #[param(schema_with = words::<Trail>)]
    pub trail: Option<Trail>,
    /// How many at most.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<Limit>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

choices! {
    /// Whose audit trail.
    #[derive(Default)]
    pub enum Trail {
        /// The caller's tenant.
        #[default]
        Tenant = "tenant",
        /// What belongs to no tenant.
        Installation = "installation",
    }
}

/// What is exported.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ExportParams {
    /// Only entries of this moment or later,
    #[param(schema_with = moment)]
    pub since: Option<Timestamp>,
    /// and before this one.
    #[param(schema_with = moment)]
    pub until: Option<Timestamp>,
    /// Whose trail: `tenant`, or `installation`, which needs `system:read`.
    #[param(schema_with = words::<Trail>)]
    pub trail: Option<Trail>,
}

/// What is verified.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct VerifyParams {
    /// Read every entry, and not only those since the last verification.
    #[param(value_type = Option<bool>)]
    pub full: Option<bool>,
    /// Whose trail: `tenant`, or `installation`, which needs `system:read`.
    #[param(schema_with = words::<Trail>)]
    pub trail: Option<Trail>,
}

impl AuditParams {
    pub fn query(&self) -> AuditQuery {
        AuditQuery {
            thread_id: self.thread_id,
            actor: self.actor.clone(),
            action: self.action.clone(),
            since: self.since,
            until: self.until,
            order: self.order.unwrap_or_default(),
        }
    }
}

/// An entry of the audit trail. `chain` and `number` together identify it.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditView {
    /// All entries of a thread are in the same chain; those without a thread are in chain 0.
    #[schema(maximum = 15)]
    pub chain: u8,
    /// Within the chain: from 1, without gaps.
    #[schema(minimum = 1)]
    pub number: u64,
    #[schema(schema_with = moment)]
    pub at: Timestamp,
    #[schema(value_type = String)]
    pub tenant_id: TenantId,
    /// A user, an agent, or `system`.
    pub actor: String,
    /// On whose behalf, if it was not the actor's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub on_behalf_of: Option<String>,
    /// `thread.delete`, `run.start`, `agent.delegate`, …
    pub action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>, nullable = false)]
    pub thread_id: Option<ThreadId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>, nullable = false)]
    pub run_id: Option<RunId>,
    /// `allowed`, `denied`, or how it ended.
    pub decision: String,
    /// Under which the logs have more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub trace_id: Option<String>,
    /// The client's address, if it was requested over the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub address: Option<String>,
    /// What else there is to know. Never what was said.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schema(required = false, nullable = false)]
    pub detail: Value,
    /// SHA-256 over the hash before it in the chain, the number, the time and the entry.
    pub hash: String,
}

impl AuditView {
    pub fn of(tenant: &TenantId, audited: Audited) -> Self {
        let Audited { chain, number, at, entry, hash } = audited;
        let AuditEntry {
            actor,
            on_behalf_of,
            action,
            thread_id,
            run_id,
            decision,
            trace_id,
            address,
            detail,
        } = entry;
        Self {
            chain,
            number,
            at,
            tenant_id: tenant.clone(),
            actor,
            on_behalf_of,
            action,
            thread_id,
            run_id,
            decision,
            trace_id,
            address,
            detail,
            hash,
        }
    }
}

/// Result of verifying the trail, as [`baton_core::store::Verdict`] is written.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum VerdictBody {
    /// All entries and seals are there and as they were written.
    Intact {
        entries: u64,
        /// Merkle root over the ends of all chains. Empty if there are no entries.
        head: String,
        /// The newest seal; absent until the first one. Kept elsewhere, it shows later that nothing it covers was changed.
        #[schema(nullable = false)]
        seal: Option<SealBody>,
        /// Verification began after this seal; absent if every entry was read.
        #[schema(nullable = false)]
        since_seal: Option<u64>,
        /// The number of seals from the first one on that no configured key has signed; absent if there are none.
        #[schema(nullable = false)]
        unsigned_seals: Option<u64>,
        /// What retention has removed from the beginning of the trail; absent if nothing was.
        #[schema(nullable = false)]
        truncation: Option<TruncationBody>,
    },
    /// The first place that is not as it was written.
    Broken {
        /// The chain of the entry; absent if `number` is that of a seal.
        #[schema(nullable = false)]
        chain: Option<u8>,
        number: u64,
        reason: String,
    },
}

/// What retention has removed, as a signed record says. Verification began after it.
#[derive(Debug, Serialize, ToSchema)]
pub struct TruncationBody {
    /// The last seal that was removed.
    pub seal: u64,
    /// Entries that were removed, in total.
    pub entries: u64,
    /// When entries were last removed.
    #[schema(schema_with = moment)]
    pub at: Timestamp,
}

/// A seal: the ends of all chains at one moment, bound to the seal before.
#[derive(Debug, Serialize, ToSchema)]
pub struct SealBody {
    #[schema(minimum = 1)]
    pub number: u64,
    #[schema(schema_with = moment)]
    pub at: Timestamp,
    /// How many entries it covers, in all chains together.
    pub entries: u64,
    /// HMAC-SHA-256 over the hash of the seal before, the number, the time and the Merkle root of all chains; SHA-256 without a key.
    pub hash: String,
    /// The id of the key; absent without one.
    #[schema(nullable = false)]
    pub key_id: Option<String>,
}
