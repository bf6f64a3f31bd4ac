//! What an agent's model would be told.

use baton_core::tool::ToolSpec;
use baton_core::{AgentName, ThreadId};
use baton_engine::{Preview, PreviewedSession, Via};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::wire::schema::words;

/// As whom and how the agent is asked.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PromptParams {
    /// In this thread; without it, in one that does not exist yet.
    #[param(value_type = Option<uuid::Uuid>)]
    pub thread_id: Option<ThreadId>,
    /// What the person asks.
    #[param(max_length = 4000)]
    pub message: Option<String>,
    /// As this agent would involve it; without it, it is asked first.
    #[param(value_type = Option<String>, pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    pub from: Option<AgentName>,
    /// How that agent involves it.
    #[param(schema_with = words::<Via>)]
    pub via: Option<Via>,
}

/// The exact prompt and tools of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PromptView {
    #[schema(value_type = String)]
    pub agent: AgentName,
    pub system: String,
    #[serde(flatten)]
    pub asked: AskedView,
    /// A coordinator's decision after a round.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub after_a_round: Option<AskedView>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct AskedView {
    pub message: String,
    pub tools: Vec<ToolView>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ToolView {
    pub name: String,
    pub description: String,
    /// A JSON Schema.
    pub parameters: Value,
}

impl PromptView {
    pub fn of(agent: &AgentName, preview: &Preview) -> Self {
        Self {
            agent: agent.clone(),
            system: preview.system.clone(),
            asked: AskedView::from(&preview.asked),
            after_a_round: preview.deciding.as_ref().map(AskedView::from),
        }
    }
}

impl From<&PreviewedSession> for AskedView {
    fn from(asked: &PreviewedSession) -> Self {
        Self { message: asked.message.clone(), tools: asked.tools.iter().map(ToolView::from).collect() }
    }
}

impl From<&ToolSpec> for ToolView {
    fn from(spec: &ToolSpec) -> Self {
        Self {
            name: spec.name.clone(),
            description: spec.description.clone(),
            parameters: spec.parameters.clone(),
        }
    }
}
