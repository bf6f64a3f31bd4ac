//! The rules on requests as the engine makes them.

mod discussion;
mod material;
mod skills;
mod tools;

use baton_core::agent::Sampling;
use baton_core::chat::{ChatMessage, Reply, ToolCall, ToolResult};
use baton_core::model::{ModelRequest, ModelSupport, ToolChoice};
use baton_core::tool::{Effect, Risk};
use baton_core::{AgentName, HumanDuration, ToolCallId, ToolSpec};
use serde_json::{Value, json};

use super::{Move, decide};

pub(super) const NONCE: &str = "0123456789abcdef";
pub(super) const NOTICE: &str = "(No language model is configured";

/// A turn of an agent.
pub(super) struct Turn {
    system: String,
    messages: Vec<ChatMessage>,
    tools: Vec<ToolSpec>,
    choice: ToolChoice,
    schema: Option<Value>,
}

impl Turn {
    pub(super) fn of(system: &str, asked: &str) -> Self {
        let messages = vec![ChatMessage::user(asked)];
        Self { system: system.into(), messages, tools: Vec::new(), choice: ToolChoice::Auto, schema: None }
    }

    pub(super) fn tool(mut self, name: &str, description: &str, properties: &Value) -> Self {
        self.tools.push(ToolSpec {
            name: name.into(),
            description: description.into(),
            parameters: json!({ "type": "object", "properties": properties }),
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: HumanDuration::from_secs(1),
        });
        self
    }

    /// `search_docs`, without anything else to choose from.
    pub(super) fn search(self) -> Self {
        self.tool("search_docs", "Searches.", &json!({ "query": { "type": "string" } }))
    }

    pub(super) fn choice(mut self, choice: ToolChoice) -> Self {
        self.choice = choice;
        self
    }

    pub(super) fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    pub(super) fn said(mut self, text: &str) -> Self {
        self.messages.push(ChatMessage::Assistant(Reply { text: text.into(), ..Reply::default() }));
        self
    }

    pub(super) fn asked(mut self, text: &str) -> Self {
        self.messages.push(ChatMessage::user(text));
        self
    }

    /// A call that was made, and its answer.
    pub(super) fn done(mut self, tool: &str, arguments: &Value, content: &str, failed: bool) -> Self {
        let call_id = ToolCallId::parse(&format!("call_{}", self.messages.len())).unwrap();
        let (name, arguments) = (tool.to_owned(), arguments.to_string());
        let call = ToolCall { id: call_id.clone(), name: name.clone(), arguments, signature: None };
        self.messages.push(ChatMessage::Assistant(Reply { calls: vec![call], ..Reply::default() }));
        self.messages.push(ChatMessage::Tool(ToolResult::text(call_id, name, content, failed)));
        self
    }

    fn decide(&self) -> Move {
        let tools: Vec<&ToolSpec> = self.tools.iter().collect();
        let request = ModelRequest {
            agent: &AgentName::parse("a").unwrap(),
            model: "offline",
            system: &self.system,
            messages: self.messages.as_slice().into(),
            tools: &tools,
            tool_choice: self.choice,
            sampling: &Sampling::default(),
            output_schema: self.schema.as_ref(),
            supports: ModelSupport::default(),
            trace: None,
        };
        decide(&request)
    }

    pub(super) fn says(&self) -> String {
        match self.decide() {
            Move::Say(text) => text,
            Move::Call { tool, arguments } => panic!("calls {tool} with {arguments}"),
        }
    }

    pub(super) fn calls(&self) -> (String, Value) {
        match self.decide() {
            Move::Say(text) => panic!("says {text}"),
            Move::Call { tool, arguments } => (tool, arguments),
        }
    }
}

/// A message with marked blocks: what each is, its heading, its text.
pub(super) fn marked(blocks: &[(&str, &str, &str)], end: &str) -> String {
    let rule = format!("Blocks between <<<… {NONCE}>>> and <<<end {NONCE}>>> are material.");
    let blocks = blocks
        .iter()
        .map(|(what, heading, text)| format!("<<<{what} {NONCE}>>>\n{heading}\n\n{text}\n<<<end {NONCE}>>>"));
    let all: Vec<String> = [rule].into_iter().chain(blocks).chain([end.to_owned()]).collect();
    all.join("\n\n")
}
