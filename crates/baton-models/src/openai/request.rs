//! The body of a chat completion. Borrowed throughout: a long conversation is written once, straight into the body.

use std::borrow::Cow;

use baton_core::agent::Effort;
use baton_core::chat::Reasoning;
use baton_core::model::ToolChoice;
use baton_core::{ModelRequest, Part, Reply};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::Dialect;
use crate::fault::Fault;
use crate::function::FunctionTool;
use crate::history::{Answer, Entry, IdRule, argument_text, entries};
use crate::parts::{Picture, Piece, as_text, pieces};
use crate::schema::{is_enforceable, with_instruction};
use crate::tool_names::ToolNames;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<FunctionTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
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
    response_format: Option<ResponseFormat<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: Cow<'a, str>,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: &'a str,
    },
}

/// Plain text wherever possible: many servers understand nothing else.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Pieces(Vec<ContentPiece<'a>>),
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

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
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
) -> Result<Vec<u8>, Fault> {
    let sampling = request.sampling;
    // A gateway to OpenAI's models is known by their names only.
    let is_openai = match dialect {
        Dialect::OpenAi | Dialect::Azure => true,
        Dialect::Compatible => thinks(request.model),
        Dialect::Mistral | Dialect::DeepSeek => false,
    };
    let samples = !(is_openai && thinks(request.model));
    let body = Body {
        model: request.model,
        messages: messages(request, names, dialect),
        stream: true,
        stream_options: (dialect != Dialect::Mistral).then(|| json!({"include_usage": true})),
        tools: request.tools.iter().map(|tool| FunctionTool::of(tool, names)).collect(),
        tool_choice: tool_choice(request, names),
        temperature: sampling.temperature.filter(|_| samples),
        top_p: sampling.top_p.filter(|_| samples),
        max_tokens: sampling.max_output_tokens.filter(|_| !is_openai),
        max_completion_tokens: sampling.max_output_tokens.filter(|_| is_openai),
        reasoning_effort: sampling
            .effort
            .filter(|_| dialect != Dialect::Mistral)
            .map(|e| effort(e, is_openai)),
        response_format: request.output_schema.filter(|_| keeps_to_schemas(dialect)).map(|schema| {
            ResponseFormat {
                r#type: "json_schema",
                json_schema: JsonSchema { name: "answer", schema, strict: is_enforceable(schema) },
            }
        }),
    };
    serde_json::to_vec(&body).map_err(|error| Fault::not_json(&error))
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
fn tool_choice(request: &ModelRequest<'_>, names: &ToolNames) -> Option<Value> {
    if request.tools.is_empty() {
        return None;
    }
    match request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Named(name) => Some(json!({"type": "function", "function": {"name": names.wire(name)}})),
    }
}

fn messages<'a>(request: &ModelRequest<'a>, names: &'a ToolNames, dialect: Dialect) -> Vec<Message<'a>> {
    let ids = if dialect == Dialect::Mistral { IdRule::NineAlphanumeric } else { IdRule::Plain };
    let entries = entries(request.messages);
    // Reasoning is wanted back only for the turn that is still going on.
    let is_user = |entry: &Entry<'_>| matches!(entry, Entry::User(_));
    let turn_begins = entries.iter().rposition(is_user).unwrap_or(0);
    let mut messages = Vec::with_capacity(entries.len() + 1);
    let system =
        with_instruction(request.system, request.output_schema.filter(|_| !keeps_to_schemas(dialect)));
    if !system.is_empty() {
        messages.push(Message::System { content: system });
    }
    for (at, entry) in entries.into_iter().enumerate() {
        match entry {
            Entry::User(parts) => messages.extend(user(parts)),
            Entry::Assistant(reply) => {
                let echoes = dialect == Dialect::DeepSeek && at > turn_begins;
                messages.push(assistant(reply, names, ids, echoes));
            }
            Entry::Results(answers) => messages.extend(answers.into_iter().map(|answer| result(answer, ids))),
        }
    }
    messages
}

fn user(parts: &[Part]) -> Option<Message<'_>> {
    let pieces: Vec<Piece<'_>> = pieces(parts).collect();
    if pieces.is_empty() {
        return None;
    }
    let content = match as_text(&pieces) {
        Some(text) => Content::Text(text),
        None => Content::Pieces(pieces.into_iter().map(content_piece).collect()),
    };
    Some(Message::User { content })
}

fn content_piece(piece: Piece<'_>) -> ContentPiece<'_> {
    match piece {
        Piece::Text(text) => ContentPiece::Text { text },
        Piece::Picture(picture) => ContentPiece::ImageUrl { image_url: ImageUrl { url: picture } },
    }
}

fn assistant<'a>(reply: &'a Reply, names: &'a ToolNames, ids: IdRule, echoes: bool) -> Message<'a> {
    let call = |call: &'a baton_core::ToolCall| Call {
        id: ids.spell(call.id.as_str()),
        r#type: "function",
        function: CalledFunction { name: names.wire(&call.name), arguments: argument_text(call) },
    };
    Message::Assistant {
        content: Some(reply.text.as_str()).filter(|text| !text.is_empty()),
        reasoning_content: echoes.then(|| reasoning(&reply.reasoning)).filter(|text| !text.is_empty()),
        tool_calls: reply.calls.iter().map(call).collect(),
    }
}

fn reasoning(reasoning: &[Reasoning]) -> String {
    reasoning.iter().map(|piece| piece.text.as_str()).collect()
}

fn result(answer: Answer<'_>, ids: IdRule) -> Message<'_> {
    Message::Tool { tool_call_id: ids.spell(answer.call.id.as_str()), content: answer.content }
}
