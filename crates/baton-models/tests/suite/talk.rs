//! Conversations to send.

use baton_core::agent::{Effort, Sampling};
use baton_core::chat::Reasoning;
use baton_core::message::{Image, ImageSource};
use baton_core::model::{ModelSupport, ReplyStream, ToolChoice};
use baton_core::tool::{Effect, Risk};
use baton_core::{
    AgentName, ChatMessage, HumanDuration, Model, ModelRequest, Part, Reply, ToolCall, ToolCallId,
    ToolResult, ToolSpec, TraceParent,
};
use serde_json::{Value, json};

#[derive(Debug)]
pub struct Talk {
    pub model: &'static str,
    pub system: &'static str,
    pub messages: Vec<ChatMessage>,
    pub tools: Vec<ToolSpec>,
    pub tool_choice: ToolChoice,
    pub sampling: Sampling,
    pub output_schema: Option<Value>,
    pub supports: ModelSupport,
    pub trace: Option<TraceParent>,
}

impl Talk {
    pub fn hello() -> Self {
        Self {
            model: "test-model",
            system: "",
            messages: vec![ChatMessage::user("hello")],
            tools: vec![tool("search_docs"), tool("mcp:github/create_issue")],
            tool_choice: ToolChoice::Auto,
            sampling: Sampling::default(),
            output_schema: None,
            supports: ModelSupport::default(),
            trace: None,
        }
    }

    /// System, picture, file, two calls of which one has no result, an orphan, a signature, a schema.
    pub fn full(model: &'static str, signature: &str) -> Self {
        let reasoning = vec![
            Reasoning { text: "unsigned".into(), signature: None },
            Reasoning { text: "Two things.".into(), signature: Some(signature.into()) },
            Reasoning { text: "foreign".into(), signature: Some("elsewhere/model\nabc".into()) },
        ];
        let calls = vec![
            call("call_a", "search_docs", r#"{"query":"x"}"#),
            call("b.2", "mcp:github/create_issue", "{oops"),
        ];
        Self {
            model,
            system: "Be brief.",
            messages: vec![
                orphan(),
                ChatMessage::User { parts: picture_and_file() },
                ChatMessage::Assistant(Reply { text: "Let me look. ".into(), reasoning, calls }),
                result("call_a", "found it"),
                ChatMessage::user("and then?"),
            ],
            tool_choice: ToolChoice::Auto,
            sampling: Sampling {
                temperature: Some(0.2),
                top_p: Some(0.9),
                max_output_tokens: Some(4_000),
                effort: Some(Effort::Medium),
            },
            output_schema: Some(json!({
                "type": "object",
                "properties": {"answer": {"type": "string"}},
                "required": ["answer"],
                "additionalProperties": false
            })),
            ..Self::hello()
        }
    }

    pub fn stream(&self, model: &dyn Model) -> ReplyStream {
        let tools: Vec<&ToolSpec> = self.tools.iter().collect();
        model.stream(&ModelRequest {
            agent: &AgentName::parse("tester").unwrap(),
            model: self.model,
            system: self.system,
            messages: self.messages.as_slice().into(),
            tools: &tools,
            tool_choice: self.tool_choice,
            sampling: &self.sampling,
            output_schema: self.output_schema.as_ref(),
            supports: self.supports,
            trace: self.trace.as_ref(),
        })
    }
}

fn picture_and_file() -> Vec<Part> {
    let image = |source| Part::Image(Image { source, media_type: "image/png".into(), name: None });
    vec![
        Part::text("What is this?"),
        image(ImageSource::Base64("aGk=".into())),
        image(ImageSource::Uri("https://example.com/a.png".into())),
        Part::File {
            name: "a.pdf".into(),
            uri: "/artifacts/1".into(),
            media_type: Some("application/pdf".into()),
        },
        Part::Data { data: json!({"n": 1}) },
        Part::text(" "),
    ]
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: format!("Does {name}."),
        parameters: json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"query": {"type": ["string", "null"]}},
            "additionalProperties": false
        }),
        effect: Effect::ReadOnly,
        risk: Risk::Low,
        timeout: HumanDuration::parse("30s").unwrap(),
    }
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    let id = ToolCallId::parse(id).unwrap();
    ToolCall { id, name: name.into(), arguments: arguments.into(), signature: None }
}

fn result(id: &str, content: &str) -> ChatMessage {
    let call_id = ToolCallId::parse(id).unwrap();
    ChatMessage::Tool(ToolResult::text(call_id, "search_docs", content, false))
}

fn orphan() -> ChatMessage {
    result("nobody", "asked for this")
}
