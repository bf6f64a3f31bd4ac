//! Leases of threads to agents, as the API shows them. What people send about them is in [`request`]; [`past`] is for histories.

pub mod past;
pub mod request;

use baton_core::store::{HandoffSession, HandoffState};
use baton_core::{AgentName, HandoffId, RunId, TenantId, ThreadId, UserId};
use baton_engine::handoff::returning_message;
use baton_engine::{Agents, ReturnStatus};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::schema::{moment, words};
use super::thread::ProgressView;

/// What became of a request.
#[derive(Debug, Serialize, ToSchema)]
pub struct HandoffAccept {
    #[schema(value_type = Uuid)]
    pub thread_id: ThreadId,
    /// Who gives the thread away, and gets it back.
    #[schema(value_type = String)]
    pub source_agent_id: AgentName,
    #[schema(value_type = String)]
    pub target_agent_id: AgentName,
    /// Whether the target takes the thread. One that does not is a problem with the code `handoff_rejected`
    /// and a `rejection_reason`.
    pub accepted: bool,
    /// It begins when the one that is open has ended.
    pub queued: bool,
    /// How long it will probably take: the median of the newest completed handoffs to the target in this tenant, of 3 to 50. Absent
    /// with fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub estimated_duration_seconds: Option<u64>,
    /// Absent while it is queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>, nullable = false)]
    pub handoff_id: Option<HandoffId>,
    /// The run in which the target greets the person. Absent while it is queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>, nullable = false)]
    pub run_id: Option<RunId>,
}

/// A handoff as it stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HandoffSession)]
pub struct HandoffView {
    #[schema(value_type = Uuid)]
    pub handoff_id: HandoffId,
    #[schema(value_type = Uuid)]
    pub thread_id: ThreadId,
    #[schema(value_type = String)]
    pub tenant_id: TenantId,
    #[schema(value_type = String)]
    pub user_id: UserId,
    #[schema(value_type = String)]
    pub source_agent_id: AgentName,
    /// Who has the thread, or is about to.
    #[schema(value_type = String)]
    pub target_agent_id: AgentName,
    /// What people call that agent.
    pub display_name: String,
    #[schema(schema_with = words::<HandoffState>)]
    pub state: HandoffState,
    pub context_summary: String,
    pub handoff_reason: String,
    #[schema(schema_with = moment)]
    pub started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = moment, required = false)]
    pub completed_at: Option<Timestamp>,
    /// When the target loses the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = moment, required = false)]
    pub expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub result_summary: Option<String>,
    pub artifacts_created: Vec<String>,
    /// Where the target stands, as its file calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub workflow_state: Option<String>,
    /// What it has collected so far.
    #[schema(value_type = Object)]
    pub workflow_metadata: Value,
    /// What the request said for its caller to find again.
    #[schema(value_type = Object)]
    pub handoff_metadata: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub progress: Option<ProgressView>,
}

/// One that goes on.
#[derive(Debug, Serialize, ToSchema)]
pub struct HandoffResumed {
    #[serde(flatten)]
    pub handoff: HandoffView,
    /// The run in which its agent takes up the conversation.
    #[schema(value_type = Uuid)]
    pub run_id: RunId,
}

/// The thread is back.
#[derive(Debug, Serialize, ToSchema)]
pub struct HandoffReturn {
    #[schema(value_type = Uuid)]
    pub handoff_id: HandoffId,
    #[schema(value_type = Uuid)]
    pub thread_id: ThreadId,
    #[schema(value_type = String)]
    pub tenant_id: TenantId,
    /// Who had the thread.
    #[schema(value_type = String)]
    pub source_agent_id: AgentName,
    /// Who has it again.
    #[schema(value_type = String)]
    pub target_agent_id: AgentName,
    #[schema(schema_with = words::<ReturnStatus>)]
    pub completion_status: ReturnStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub result_summary: Option<String>,
    pub artifacts_created: Vec<String>,
    /// The sentence for the person.
    pub message: String,
}

/// Who has a thread after a run.
#[derive(Debug, Serialize, ToSchema)]
pub struct HeldBy {
    #[schema(value_type = Uuid)]
    pub handoff_id: HandoffId,
    #[schema(value_type = String)]
    pub agent: AgentName,
    /// What people call that agent.
    pub display_name: String,
    #[schema(schema_with = words::<HandoffState>)]
    pub state: HandoffState,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub progress: Option<ProgressView>,
}

impl HandoffAccept {
    /// The target has the thread.
    pub fn now(handoff: &HandoffSession, run_id: RunId) -> Self {
        Self {
            thread_id: handoff.thread_id,
            source_agent_id: handoff.source_agent_id.clone(),
            target_agent_id: handoff.target_agent_id.clone(),
            accepted: true,
            queued: false,
            estimated_duration_seconds: handoff.notes.estimated_seconds,
            handoff_id: Some(handoff.handoff_id),
            run_id: Some(run_id),
        }
    }

    /// It gets the thread later.
    pub fn queued(thread_id: ThreadId, source_agent_id: AgentName, target_agent_id: AgentName) -> Self {
        Self {
            thread_id,
            source_agent_id,
            target_agent_id,
            accepted: true,
            queued: true,
            estimated_duration_seconds: None,
            handoff_id: None,
            run_id: None,
        }
    }
}

impl HandoffView {
    pub fn of(tenant: &TenantId, handoff: HandoffSession, agents: &Agents) -> Self {
        let progress = ProgressView::of(&handoff, agents);
        let (workflow_state, collected) = handoff.workflow.map(|at| (at.state, at.data)).unzip();
        Self {
            display_name: called(&handoff.target_agent_id, agents),
            progress,
            handoff_id: handoff.handoff_id,
            thread_id: handoff.thread_id,
            tenant_id: tenant.clone(),
            user_id: handoff.user_id,
            source_agent_id: handoff.source_agent_id,
            target_agent_id: handoff.target_agent_id,
            state: handoff.state,
            context_summary: handoff.context_summary,
            handoff_reason: handoff.handoff_reason,
            started_at: handoff.started_at,
            completed_at: handoff.completed_at,
            expires_at: handoff.expires_at,
            result_summary: handoff.result_summary,
            artifacts_created: handoff.artifacts_created,
            workflow_state,
            workflow_metadata: object(collected.unwrap_or_default()),
            handoff_metadata: object(handoff.metadata),
        }
    }
}

impl HandoffReturn {
    pub fn of(tenant: &TenantId, handoff: HandoffSession, agents: &Agents) -> Self {
        Self {
            message: returning_message(agents, &handoff),
            handoff_id: handoff.handoff_id,
            thread_id: handoff.thread_id,
            tenant_id: tenant.clone(),
            source_agent_id: handoff.target_agent_id,
            target_agent_id: handoff.source_agent_id,
            completion_status: match handoff.state {
                HandoffState::Completed => ReturnStatus::Completed,
                HandoffState::Error => ReturnStatus::Error,
                _ => ReturnStatus::Cancelled,
            },
            result_summary: handoff.result_summary,
            artifacts_created: handoff.artifacts_created,
        }
    }
}

impl HeldBy {
    pub fn of(handoff: HandoffSession, agents: &Agents) -> Self {
        Self {
            display_name: called(&handoff.target_agent_id, agents),
            progress: ProgressView::of(&handoff, agents),
            handoff_id: handoff.handoff_id,
            state: handoff.state,
            agent: handoff.target_agent_id,
        }
    }
}

/// What people call an agent; its name if it is gone.
pub fn called(agent: &AgentName, agents: &Agents) -> String {
    agents.get(agent).map_or_else(|| agent.to_string(), |agent| agent.display_name.clone())
}

/// Nothing is an object without anything in it.
fn object(value: Value) -> Value {
    if value.is_object() { value } else { json!({}) }
}
