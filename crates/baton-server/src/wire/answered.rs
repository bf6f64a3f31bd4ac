//! The end of a run, for a caller that waited for it.

use baton_core::{AgentName, RunId, ThreadId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::wire::approval::ApprovalView;
use crate::wire::handoff::HeldBy;
use crate::wire::message::MessageView;
use crate::wire::run::{RunErrorView, SubAgentResult};
use crate::wire::usage::UsageView;

#[derive(Debug, Serialize, ToSchema)]
pub struct Answered {
    #[schema(value_type = String, format = Uuid)]
    pub run_id: RunId,
    #[schema(value_type = String, format = Uuid)]
    pub thread_id: ThreadId,
    /// `completed`, `failed`, `cancelled`, `interrupted` or `waiting`.
    pub status: String,
    /// The answer, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub message: Option<MessageView>,
    /// Who gave it.
    #[schema(value_type = String)]
    pub agent: AgentName,
    /// Who has the thread now, if that is by a handoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub handoff: Option<HeldBy>,
    /// What sub-agents answered, each by itself.
    pub results: Vec<SubAgentResult>,
    pub usage: UsageView,
    /// What the run waits for, if its status is `waiting`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub approvals: Vec<ApprovalView>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<RunErrorView>,
}
