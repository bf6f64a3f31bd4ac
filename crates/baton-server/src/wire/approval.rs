//! Decisions that wait for a person.

use baton_core::store::{Approval, ApprovalFilter, ApprovalQuery, ApprovalStatus, Order};
use baton_core::tool::Risk;
use baton_core::{RunId, ThreadId, UserId};
use baton_engine::recorded::agent_of;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::page::Limit;
use super::schema::{moment, order, words};
use super::text::Remark;
use crate::strict::Checked;

/// Which approvals are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ApprovalParams {
    /// Only those; without it, all. `decided` is every status but `pending`.
    #[param(schema_with = words::<ApprovalFilter>)]
    pub status: Option<ApprovalFilter>,
    /// By `created_at`. `asc`: the oldest first. `desc`: the newest first. A cursor is valid in its own order only.
    #[param(schema_with = order)]
    pub order: Option<Order>,
    /// How many at most.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<Limit>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl ApprovalParams {
    pub fn query(&self, user: Option<&UserId>) -> ApprovalQuery {
        ApprovalQuery { status: self.status, user_id: user.cloned(), order: self.order.unwrap_or_default() }
    }
}

/// A call that waits, or waited, for a person's yes.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalView {
    pub approval_id: Uuid,
    #[schema(value_type = Uuid)]
    pub thread_id: ThreadId,
    #[schema(value_type = Uuid)]
    pub run_id: RunId,
    /// Where in the run the call stands, such as `assistant/turn:1/tool:1`.
    pub path: String,
    /// The agent that wants to make the call.
    pub agent: String,
    pub tool: String,
    /// As the tool would get them.
    pub arguments: Value,
    #[schema(schema_with = words::<Risk>)]
    pub risk: Risk,
    #[schema(schema_with = words::<ApprovalStatus>)]
    pub status: ApprovalStatus,
    #[schema(schema_with = moment)]
    pub created_at: Timestamp,
    #[schema(schema_with = moment)]
    pub expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = moment, required = false)]
    pub decided_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub decided_by: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
}

impl From<Approval> for ApprovalView {
    fn from(approval: Approval) -> Self {
        Self {
            approval_id: approval.approval_id,
            thread_id: approval.thread_id,
            run_id: approval.run_id,
            agent: agent_of(&approval.path).to_owned(),
            path: approval.path,
            tool: approval.tool,
            arguments: approval.arguments,
            risk: approval.risk,
            status: approval.status,
            created_at: approval.created_at,
            expires_at: approval.expires_at,
            decided_at: approval.decided_at,
            decided_by: approval.decided_by,
            reason: approval.reason,
        }
    }
}

/// A person's decision.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({ "decision": "approve", "reason": "checked with the owner" })))]
pub struct DecisionBody {
    pub decision: Decision,
    /// Why, for the audit trail and for the agent that asked.
    #[schema(value_type = Option<String>, nullable = false, max_length = 2000)]
    pub reason: Option<Remark>,
}

impl Checked for DecisionBody {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Approve,
    Deny,
}

impl From<Decision> for ApprovalStatus {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Approve => Self::Approved,
            Decision::Deny => Self::Denied,
        }
    }
}
