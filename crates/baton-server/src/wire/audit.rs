//! Who did what.

use baton_core::store::{AuditEntry, AuditQuery, Audited, Order};
use baton_core::{RunId, TenantId, ThreadId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::page::Limit;
use super::schema::{moment, order};

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
    /// How many at most.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<Limit>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
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

/// An entry of the audit trail, in its place in the chain.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditView {
    /// From 1, without gaps.
    #[schema(minimum = 1)]
    pub number: u64,
    #[schema(schema_with = moment)]
    pub at: Timestamp,
    #[schema(value_type = String)]
    pub tenant_id: TenantId,
    /// A user, an agent, or `system`.
    pub actor: String,
    /// For whom, when that is somebody else.
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
    /// What else there is to know. Never what was said.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schema(required = false, nullable = false)]
    pub detail: Value,
    /// SHA-256 over the hash before, the number, the time and the entry.
    pub hash: String,
}

impl AuditView {
    pub fn of(tenant: &TenantId, audited: Audited) -> Self {
        let Audited { number, at, entry, hash } = audited;
        let AuditEntry { actor, on_behalf_of, action, thread_id, run_id, decision, trace_id, detail } = entry;
        Self {
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
            detail,
            hash,
        }
    }
}

/// What reading the whole trail found, as [`baton_core::store::Verdict`] is written.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum VerdictBody {
    /// Every entry is there and as it was written. The hash of the last one can be kept elsewhere and compared later.
    Intact { entries: u64, head: String },
    /// The first place where the chain does not hold.
    Broken { number: u64, reason: String },
}
