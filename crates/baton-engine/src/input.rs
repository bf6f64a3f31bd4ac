//! What an agent works on.

mod prompt_envelope;

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::chat::ChatMessage;
use baton_core::message::{IncludedParts, Part, parts_to_text};
use serde_json::Value;

use crate::engine_tool::EngineTool;
use crate::outcome::Outcome;
use crate::patterns::calling::resume::SubSession;
pub(crate) use prompt_envelope::{BlockKind, PromptEnvelope, RenderedPrompt};

/// What an agent works on. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Input {
    /// The earlier messages that the agent may see.
    pub(crate) history: Arc<Vec<ChatMessage>>,
    pub(crate) parts: Arc<Vec<Part>>,
    /// The prompt that `parts` was rendered from, if other agents wrote some of it.
    pub(crate) rendered: Option<Arc<RenderedPrompt>>,
    /// The JSON Schema of the answer, if the caller set one.
    pub(crate) output_schema: Option<Arc<Value>>,
    pub(crate) sent: Option<InputSource>,
    /// Additional tools for the session, from the invoking agent.
    pub(crate) engine_tools: Vec<Arc<dyn EngineTool>>,
    /// The answer of the previous stage of a chain.
    pub(crate) draft: Option<Arc<Outcome>>,
    /// The session that this call of a sub-agent continues.
    pub(crate) sub_session: Option<SubSession>,
    /// Whether the receiver's guardrails have been checked.
    pub(crate) is_guarded: bool,
}

/// The agent that sent an input, and its reason.
#[derive(Debug, Clone)]
pub(crate) struct InputSource {
    pub(crate) by: AgentName,
    pub(crate) reason: Arc<str>,
}

impl Input {
    /// A text without history.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { parts: Arc::new(vec![Part::text(text)]), ..Self::default() }
    }

    /// The text of the parts, without other kinds of parts.
    pub(crate) fn words(&self) -> String {
        text_of(&self.parts)
    }
}

/// The text of a message, one line for each part.
pub(crate) fn text_of(parts: &[Part]) -> String {
    parts_to_text(parts, IncludedParts::Text)
}
