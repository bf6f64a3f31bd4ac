//! The handoffs that a thread has had, for dividers in its history.

use baton_core::store::{HandoffSession, HandoffState};
use baton_core::{AgentName, HandoffId};
use baton_engine::Agents;
use baton_engine::handoff::{connected_message, held_mode_message, returning_message};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::called;
use crate::wire::schema::{moment, words};
use crate::wire::thread::ProgressView;

/// A handoff in the history of its thread, open or ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct PastHandoff {
    #[schema(value_type = Uuid)]
    pub handoff_id: HandoffId,
    /// Who gave the thread away.
    #[schema(value_type = String)]
    pub from: AgentName,
    /// Who got it.
    #[schema(value_type = String)]
    pub to: AgentName,
    /// What people call the agent that got it.
    pub display_name: String,
    #[schema(schema_with = words::<HandoffState>)]
    pub state: HandoffState,
    pub reason: String,
    #[schema(schema_with = moment)]
    pub started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = moment, required = false)]
    pub completed_at: Option<Timestamp>,
    /// The sentence for the person when it began.
    pub message: String,
    /// The line before the first words of the agent that got it: `[Skill Creation Mode]`. Empty if that agent is gone.
    pub mode: String,
    /// The sentence for the person when it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub end_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub progress: Option<ProgressView>,
}

impl PastHandoff {
    pub fn of(handoff: HandoffSession, agents: &Agents) -> Self {
        Self {
            display_name: called(&handoff.target_agent_id, agents),
            message: connected_message(agents, &handoff),
            mode: held_mode_message(agents, &handoff),
            end_message: (!handoff.state.is_open()).then(|| returning_message(agents, &handoff)),
            progress: ProgressView::of(&handoff, agents),
            handoff_id: handoff.handoff_id,
            from: handoff.source_agent_id,
            to: handoff.target_agent_id,
            state: handoff.state,
            reason: handoff.handoff_reason,
            started_at: handoff.started_at,
            completed_at: handoff.completed_at,
        }
    }
}
