//! The body of a chat completion. Borrowed throughout: a long conversation is written once, straight into the body.

use std::borrow::Cow;

use baton_core::agent::Effort;
use baton_core::chat::{Messages, Reasoning};
use baton_core::message::Image;
use baton_core::model::ToolChoice;
use baton_core::{ModelRequest, Part, Reply, ToolCall};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Dialect;
use crate::fault::ModelFault;
use crate::function::FunctionTool;
use crate::history::{AssistantEntry, HistoryEntry, IdRule, Results, argument_text, entries};
use crate::parts::{IMAGES_OF_RESULTS, MessagePiece, Picture, TextLines, has_picture, picture, pieces};
use crate::schema::{is_enforceable, with_instruction};
use crate::sequence::{Sequence, written};
use crate::tool_names::ToolNames;

#[derive(Serialize)]
struct OpenAiBody<'a, M, T> {
    model: &'a str,
    messages: M,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<OpenAiResponseFormat<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum OpenAiMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: OpenAiContent<'a>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "OpenAiCalls::is_empty")]
        tool_calls: OpenAiCalls<'a>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: &'a str,
    },
}

/// Plain text wherever possible: many servers understand nothing else.
enum OpenAiContent<'a> {
    Parts(&'a [Part]),
    /// Of tool results, which are text on this wire.
    Images(Vec<&'a Image>),
}

impl Serialize for OpenAiContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Parts(parts) if has_picture(parts) => {
                serializer.collect_seq(pieces(parts).map(content_piece))
            }
            Self::Parts(parts) => serializer.collect_str(&TextLines(parts)),
            Self::Images(images) => {
                let title = std::iter::once(MessagePiece::Text(IMAGES_OF_RESULTS.into()));
                let images = images.iter().map(|image| MessagePiece::Picture(picture(image)));
                serializer.collect_seq(title.chain(images).map(content_piece))
            }
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPiece<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    #[serde(serialize_with = "as_url")]
    url: Picture<'a>,
}

fn as_url<S: Serializer>(picture: &Picture<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(picture)
}

/// The calls of a reply.
#[derive(Clone, Copy)]
struct OpenAiCalls<'a> {
    of_reply: &'a [ToolCall],
    names: &'a ToolNames,
    ids: IdRule,
}

impl OpenAiCalls<'_> {
    fn is_empty(&self) -> bool {
        self.of_reply.is_empty()
    }
}

impl Serialize for OpenAiCalls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.of_reply.iter().map(|call| OpenAiCall {
            id: self.ids.spell(call.id.as_str()),
            r#type: "function",
            function: OpenAiCalledFunction {
                name: self.names.wire(&call.name),
                arguments: argument_text(call),
            },
        }))
    }
}

#[derive(Serialize)]
struct OpenAiCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: OpenAiCalledFunction<'a>,
}

#[derive(Serialize)]
struct OpenAiCalledFunction<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

#[derive(Serialize)]
struct OpenAiResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    schema: &'a Value,
    strict: bool,
}

pub(super) fn body(
    request: &ModelRequest<'_>,
    names: &ToolNames,
    dialect: Dialect,
) -> Result<Vec<u8>, ModelFault> {
    let sampling = request.sampling;
    // A gateway to OpenAI's models is known by their names only.
    let is_openai = match dialect {
        Dialect::OpenAi | Dialect::Azure => true,
        Dialect::Compatible => thinks(request.model),
        Dialect::Mistral | Dialect::DeepSeek => false,
    };
    let samples = !(is_openai && thinks(request.model));
    let keeps_to_schemas = keeps_to_schemas(dialect) && request.supports.structured_output;
    let system = with_instruction(request.system, request.output_schema.filter(|_| !keeps_to_schemas));
    let tools = || request.tools.iter().map(|tool| FunctionTool::of(tool, names));
    let body = OpenAiBody {
        model: request.model,
        messages: Sequence(|| messages(&system, request, names, dialect)),
        stream: true,
        stream_options: (dialect != Dialect::Mistral).then_some(StreamOptions { include_usage: true }),
        tools: (!request.tools.is_empty()).then_some(Sequence(tools)),
        tool_choice: tool_choice(request),
        parallel_tool_calls: (!request.supports.parallel_calls && !request.tools.is_empty()).then_some(false),
        temperature: sampling.temperature.filter(|_| samples),
        top_p: sampling.top_p.filter(|_| samples),
        max_tokens: sampling.max_output_tokens.filter(|_| !is_openai),
        max_completion_tokens: sampling.max_output_tokens.filter(|_| is_openai),
        reasoning_effort: sampling
            .effort
            .filter(|_| dialect != Dialect::Mistral)
            .map(|e| effort(e, is_openai)),
        response_format: request.output_schema.filter(|_| keeps_to_schemas).map(|schema| {
            OpenAiResponseFormat {
                r#type: "json_schema",
                json_schema: JsonSchema { name: "answer", schema, strict: is_enforceable(schema) },
            }
        }),
    };
    written(&body, system.len())
}

fn keeps_to_schemas(dialect: Dialect) -> bool {
    dialect != Dialect::DeepSeek
}

/// Reasoning models refuse a temperature. An agent's file should not have to know which ones are.
fn thinks(model: &str) -> bool {
    let families = ["o1", "o3", "o4", "gpt-5", "gpt-6"];
    families.iter().any(|family| model.starts_with(family)) && !model.contains("-chat")
}

/// Others know three levels.
fn effort(effort: Effort, is_openai: bool) -> &'static str {
    match effort {
        Effort::Minimal if is_openai => "minimal",
        Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::Xhigh | Effort::Max if is_openai => "xhigh",
        Effort::High | Effort::Xhigh | Effort::Max => "high",
    }
}

/// A choice without tools is refused.
fn tool_choice(request: &ModelRequest<'_>) -> Option<&'static str> {
    match request.tool_choice {
        _ if request.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none"),
        ToolChoice::Required => Some("required"),
    }
}

fn messages<'a>(
    system: &'a str,
    request: &ModelRequest<'a>,
    names: &'a ToolNames,
    dialect: Dialect,
) -> impl Iterator<Item = OpenAiMessage<'a>> {
    let (conversation, accepts_images) = (request.messages, request.supports.images);
    let ids = if dialect == Dialect::Mistral { IdRule::NineAlphanumeric } else { IdRule::Plain };
    let echoes_after = if dialect == Dialect::DeepSeek { turn_begins(conversation) } else { usize::MAX };
    let system =
        Some(system).filter(|system| !system.is_empty()).map(|content| OpenAiMessage::System { content });
    let said = entries(conversation).enumerate().flat_map(move |(at, entry)| {
        let (own, results) = match entry {
            HistoryEntry::User(parts) => (user(parts), None),
            HistoryEntry::Assistant(reply) => (Some(assistant(reply, names, ids, at > echoes_after)), None),
            HistoryEntry::Results(results) => (None, Some(results)),
        };
        let images = results.filter(|_| accepts_images).and_then(images);
        let results = results.into_iter().flat_map(Results::answers).map(move |answer| result(answer, ids));
        own.into_iter().chain(results).chain(images)
    });
    system.into_iter().chain(said)
}

/// Reasoning is wanted back only for the turn that is still going on.
fn turn_begins(conversation: Messages<'_>) -> usize {
    let is_user = |entry: &(usize, HistoryEntry<'_>)| matches!(entry.1, HistoryEntry::User(_));
    entries(conversation).enumerate().filter(is_user).last().map_or(0, |(at, _)| at)
}

/// The images of a reply's results, as a message that follows them.
fn images(results: Results<'_>) -> Option<OpenAiMessage<'_>> {
    let images: Vec<&Image> = results.answers().flat_map(|answer| answer.images).collect();
    (!images.is_empty()).then_some(OpenAiMessage::User { content: OpenAiContent::Images(images) })
}

fn user(parts: &[Part]) -> Option<OpenAiMessage<'_>> {
    pieces(parts).next().is_some().then_some(OpenAiMessage::User { content: OpenAiContent::Parts(parts) })
}

fn content_piece(piece: MessagePiece<'_>) -> ContentPiece<'_> {
    match piece {
        MessagePiece::Text(text) => ContentPiece::Text { text },
        MessagePiece::Picture(picture) => ContentPiece::ImageUrl { image_url: ImageUrl { url: picture } },
    }
}

fn assistant<'a>(reply: &'a Reply, names: &'a ToolNames, ids: IdRule, echoes: bool) -> OpenAiMessage<'a> {
    OpenAiMessage::Assistant {
        content: Some(reply.text.as_str()).filter(|text| !text.is_empty()),
        reasoning_content: echoes.then(|| reasoning(&reply.reasoning)).filter(|text| !text.is_empty()),
        tool_calls: OpenAiCalls { of_reply: &reply.calls, names, ids },
    }
}

fn reasoning(reasoning: &[Reasoning]) -> String {
    reasoning.iter().map(|piece| piece.text.as_str()).collect()
}

fn result(answer: AssistantEntry<'_>, ids: IdRule) -> OpenAiMessage<'_> {
    OpenAiMessage::Tool { tool_call_id: ids.spell(answer.call.id.as_str()), content: answer.content }
}
