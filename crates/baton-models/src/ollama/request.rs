//! The body of a chat request.

use std::borrow::Cow;

use baton_core::agent::Effort;
use baton_core::model::ToolChoice;
use baton_core::{ModelRequest, Part, Reply};
use serde::Serialize;
use serde_json::{Value, json};

use crate::fault::ModelFault;
use crate::function::FunctionTool;
use crate::history::{AssistantEntry, CallArguments, HistoryEntry, Results, arguments, entries};
use crate::parts::{IMAGES_OF_RESULTS, MessagePiece, Picture, picture, pieces};
use crate::schema::with_instruction;
use crate::sequence::written;
use crate::tool_names::ToolNames;

#[derive(Serialize)]
struct OllamaBody<'a> {
    model: &'a str,
    messages: Vec<OllamaMessage<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<FunctionTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Value>,
    #[serde(skip_serializing_if = "Options::is_empty")]
    options: Options,
}

#[derive(Serialize)]
struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_ctx: Option<u64>,
}

impl Options {
    fn is_empty(&self) -> bool {
        let Self { temperature, top_p, num_predict, num_ctx } = self;
        temperature.is_none() && top_p.is_none() && num_predict.is_none() && num_ctx.is_none()
    }
}

#[derive(Serialize)]
struct OllamaMessage<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<OllamaCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
}

impl<'a> OllamaMessage<'a> {
    fn new(role: &'static str, content: impl Into<Cow<'a, str>>) -> Self {
        let (images, tool_calls) = (Vec::new(), Vec::new());
        Self { role, content: content.into(), images, thinking: String::new(), tool_calls, tool_name: None }
    }
}

#[derive(Serialize)]
struct OllamaCall<'a> {
    function: OllamaCalledFunction<'a>,
}

#[derive(Serialize)]
struct OllamaCalledFunction<'a> {
    name: &'a str,
    arguments: CallArguments<'a>,
}

/// `context_window` is the size of the context that the server is asked to load the model with. Without it the server uses a small
/// default, and silently drops the beginning of longer conversations.
pub(super) fn body(
    request: &ModelRequest<'_>,
    names: &ToolNames,
    context_window: Option<u64>,
) -> Result<Vec<u8>, ModelFault> {
    let sampling = request.sampling;
    let tools = tools(request, names);
    // A format binds every token, so that a model which has one cannot call tools.
    let keeps_to_schemas = request.supports.structured_output && tools.is_empty();
    let format = request.output_schema.filter(|_| keeps_to_schemas);
    let system = with_instruction(request.system, request.output_schema.filter(|_| format.is_none()));
    let body = OllamaBody {
        model: request.model,
        messages: messages(request, system, names),
        stream: true,
        tools,
        format,
        think: sampling.effort.map(|effort| think(effort, request.model)),
        options: Options {
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            num_predict: sampling.max_output_tokens,
            num_ctx: context_window,
        },
    };
    written(&body, request.system.len())
}

/// There is no tool choice on this wire; only the wish for none can be kept.
fn tools<'a>(request: &ModelRequest<'a>, names: &'a ToolNames) -> Vec<FunctionTool<'a>> {
    if request.tool_choice == ToolChoice::None {
        return Vec::new();
    }
    request.tools.iter().map(|tool| FunctionTool::of(tool, names)).collect()
}

/// Most models can only think or not; one family has levels.
fn think(effort: Effort, model: &str) -> Value {
    match effort {
        _ if !model.contains("gpt-oss") => json!(effort != Effort::Minimal),
        Effort::Minimal | Effort::Low => json!("low"),
        Effort::Medium => json!("medium"),
        Effort::High | Effort::Xhigh | Effort::Max => json!("high"),
    }
}

fn messages<'a>(
    request: &ModelRequest<'a>,
    system: Cow<'a, str>,
    names: &'a ToolNames,
) -> Vec<OllamaMessage<'a>> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !system.is_empty() {
        messages.push(OllamaMessage::new("system", system));
    }
    for entry in entries(request.messages) {
        match entry {
            HistoryEntry::User(parts) => messages.push(user(parts)),
            HistoryEntry::Assistant(reply) => messages.push(assistant(reply, names)),
            HistoryEntry::Results(results) => {
                messages.extend(results.answers().map(|answer| result(answer, names)));
                messages.extend(Some(results).filter(|_| request.supports.images).and_then(images));
            }
        }
    }
    messages
}

/// The images of a reply's results, as a message that follows them: templates read those of users.
fn images(results: Results<'_>) -> Option<OllamaMessage<'_>> {
    let images = results.answers().flat_map(|answer| answer.images).map(picture);
    let images = images.filter_map(|picture| match picture {
        Picture::Inline { base64, .. } => Some(base64),
        Picture::Linked { .. } => None,
    });
    let images: Vec<&str> = images.collect();
    (!images.is_empty()).then(|| OllamaMessage { images, ..OllamaMessage::new("user", IMAGES_OF_RESULTS) })
}

/// Pictures are given by value only; of others the model learns where they are.
fn user(parts: &[Part]) -> OllamaMessage<'_> {
    let mut images = Vec::new();
    let mut texts: Vec<Cow<'_, str>> = Vec::new();
    for piece in pieces(parts) {
        match piece {
            MessagePiece::Text(text) => texts.push(text),
            MessagePiece::Picture(Picture::Inline { base64, .. }) => images.push(base64),
            MessagePiece::Picture(Picture::Linked { uri, .. }) => {
                texts.push(format!("[image: {uri}]").into());
            }
        }
    }
    OllamaMessage { images, ..OllamaMessage::new("user", texts.join("\n")) }
}

fn assistant<'a>(reply: &'a Reply, names: &'a ToolNames) -> OllamaMessage<'a> {
    let call = |call: &'a baton_core::ToolCall| OllamaCall {
        function: OllamaCalledFunction { name: names.wire(&call.name), arguments: arguments(call) },
    };
    OllamaMessage {
        // Wanted back by models that think between calls, and dropped by the others' templates.
        thinking: reply.reasoning.iter().map(|thought| thought.text.as_str()).collect(),
        tool_calls: reply.calls.iter().map(call).collect(),
        ..OllamaMessage::new("assistant", &reply.text)
    }
}

fn result<'a>(answer: AssistantEntry<'a>, names: &'a ToolNames) -> OllamaMessage<'a> {
    OllamaMessage {
        tool_name: Some(names.wire(&answer.call.name)),
        ..OllamaMessage::new("tool", answer.content)
    }
}
