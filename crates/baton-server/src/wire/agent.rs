//! Agents, as the API shows them.

mod definition;
mod diagnostic;
mod excerpt;
mod prompt;
mod remote;

use baton_agents::Graph;
use baton_agents::graph::EdgeKind;
use baton_core::AgentName;
use baton_core::agent::{Agent, Badge, Button, ModelName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::page::Limit;

pub use definition::definition;
pub use diagnostic::{DiagnosticView, PlaceView, within};
pub use excerpt::LineView;
pub use prompt::{AskedView, PromptParams, PromptView, ToolView};
pub use remote::RemoteView;

/// Which agents are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AgentParams {
    /// Also those that are not offered to people (`badge.hidden`).
    #[param(default = false)]
    pub all: Option<bool>,
    /// How many at most.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<Limit>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// An agent in the list.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentView {
    /// As messages, files and other routes name it.
    pub id: String,
    pub display_name: String,
    pub description: String,
    pub version: String,
    pub kind: KindView,
    /// In order of preference; empty means the configured default.
    pub model: Vec<String>,
    pub badge: BadgeView,
    /// May hold a thread across messages.
    pub holds_threads: bool,
    /// May be used by other agents.
    pub can_be_orchestrated: bool,
    /// Whether users see that it takes part. Absent if its file does not say: they see the holder of a thread, and sub-agents as
    /// `stream_sub_agent_events` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub visible: Option<bool>,
    /// Buttons that its file offers after an answer.
    pub handoffs: Vec<ButtonView>,
    /// Names and patterns of the tools that it may use, as its file writes them.
    pub tools: Vec<String>,
    /// Agents that it can involve by itself, in any way.
    pub related: Vec<String>,
    /// Sentences that ask for it: the triggers of its file.
    pub trigger_examples: Vec<String>,
}

/// A button that passes the conversation on.
#[derive(Debug, Serialize, ToSchema)]
pub struct ButtonView {
    pub label: String,
    /// Who answers then.
    #[schema(value_type = String)]
    pub agent: AgentName,
    /// What is said then; empty where the file says nothing.
    pub prompt: String,
    /// Sent at once, instead of being placed in the composer.
    pub send: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KindView {
    Local,
    /// Runs elsewhere, with a model, a prompt and tools of its own.
    Remote,
}

/// How people recognise it.
#[derive(Debug, Serialize, ToSchema)]
pub struct BadgeView {
    pub color: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub icon: Option<String>,
    pub hidden: bool,
}

impl AgentView {
    pub fn of(agent: &Agent, graph: &Graph) -> Self {
        let accepts = agent.accepts_handoff.as_ref();
        Self {
            id: agent.name.to_string(),
            display_name: agent.display_name.clone(),
            description: agent.description.clone(),
            version: agent.version.to_string(),
            kind: if agent.kind.is_remote() { KindView::Remote } else { KindView::Local },
            model: agent.model.iter().map(ModelName::to_string).collect(),
            badge: BadgeView::from(&agent.badge),
            holds_threads: accepts.is_some(),
            can_be_orchestrated: agent.can_be_orchestrated,
            visible: agent.visible,
            handoffs: agent.handoffs.iter().map(Into::into).collect(),
            tools: agent.tools.allow.iter().map(|pattern| pattern.as_str().to_owned()).collect(),
            related: related(agent, graph),
            trigger_examples: accepts.map(|terms| terms.triggers.clone()).unwrap_or_default(),
        }
    }
}

/// Each once. A button is the person's choice, so it is not among them.
fn related(agent: &Agent, graph: &Graph) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let own = graph.edges.iter().filter(|edge| edge.from == agent.name && edge.kind != EdgeKind::Button);
    for edge in own {
        if !found.contains(&edge.to) {
            found.push(edge.to.clone());
        }
    }
    found
}

impl From<&Button> for ButtonView {
    fn from(button: &Button) -> Self {
        Self {
            label: button.label.clone(),
            agent: button.agent.clone(),
            prompt: button.prompt.clone().unwrap_or_default(),
            send: button.send,
        }
    }
}

impl From<&Badge> for BadgeView {
    fn from(badge: &Badge) -> Self {
        Self { color: badge.color.clone(), icon: badge.icon.clone(), hidden: badge.hidden }
    }
}

/// An agent with everything that is known about it.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentDetail {
    #[serde(flatten)]
    pub agent: AgentView,
    /// Where it was read from, within the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub file: Option<String>,
    /// Every key of an agent file with its value or its default, and the body as `prompt`. What could be a secret is masked.
    #[schema(value_type = Object)]
    pub definition: Value,
    /// What is worth knowing about its file. There are no errors: with those it would not be here.
    pub diagnostics: Vec<DiagnosticView>,
    /// Of an agent on another server: whether it can be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub remote: Option<RemoteView>,
}
