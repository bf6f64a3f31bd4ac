//! The body of a `streamGenerateContent` request.

use std::borrow::Cow;

use baton_core::agent::Effort;
use baton_core::model::ToolChoice;
use baton_core::{ModelRequest, Reply, ToolCall};
use serde::Serialize;
use serde_json::{Value, json};

use super::schema::cleaned;
use super::signer;
use crate::fault::ModelFault;
use crate::history::{AssistantEntry, CallArguments, HistoryEntry, arguments, entries};
use crate::parts::{MessagePiece, Picture, picture, pieces};
use crate::schema::with_instruction;
use crate::sequence::written;
use crate::signature;
use crate::tool_names::ToolNames;

/// What the API accepts in place of a signature for a call that another model made.
const FOREIGN_CALL: &str = "skip_thought_signature_validator";
/// A conversation begins with the user; one whose beginning was dropped may not.
const BEGINNING: &str = "(the beginning of the conversation is left out)";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<GeminiContent<'a>>,
    contents: Vec<GeminiContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[GeminiTools<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    generation_config: GenerationConfig<'a>,
}

#[derive(Serialize)]
struct GeminiContent<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    role: &'static str,
    parts: Vec<GeminiPart<'a>>,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum GeminiPart<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    Inline {
        inline_data: Inline<'a>,
    },
    Linked {
        file_data: Linked<'a>,
    },
    Call {
        function_call: GeminiCall<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    Response {
        function_response: FunctionResponse<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inline<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Linked<'a> {
    mime_type: &'a str,
    file_uri: &'a str,
}

#[derive(Serialize)]
struct GeminiCall<'a> {
    id: &'a str,
    name: &'a str,
    args: CallArguments<'a>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    id: &'a str,
    name: &'a str,
    response: GeminiFunctionResponse<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum GeminiFunctionResponse<'a> {
    Output(&'a str),
    Error(&'a str),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiTools<'a> {
    function_declarations: Vec<GeminiFunction<'a>>,
}

#[derive(Serialize)]
struct GeminiFunction<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
}

pub(super) fn body(request: &ModelRequest<'_>, names: &ToolNames) -> Result<Vec<u8>, ModelFault> {
    let sampling = request.sampling;
    let is_third = generation(request.model) >= 3;
    // Before the third generation a request has tools or a schema, not both.
    let keeps_to_schemas = request.supports.structured_output && (is_third || request.tools.is_empty());
    let enforced = request.output_schema.filter(|_| keeps_to_schemas);
    let system = with_instruction(request.system, request.output_schema.filter(|_| enforced.is_none()));
    let body = GeminiBody {
        system_instruction: (!system.is_empty())
            .then(|| GeminiContent { role: "", parts: vec![text(system)] }),
        contents: contents(request, names),
        tools: (!request.tools.is_empty()).then(|| [tools(request, names)]),
        tool_config: tool_config(request),
        generation_config: GenerationConfig {
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            max_output_tokens: sampling.max_output_tokens,
            thinking_config: sampling.effort.map(|effort| thinking(effort, is_third)),
            response_mime_type: enforced.map(|_| "application/json"),
            response_json_schema: enforced,
        },
    };
    written(&body, request.system.len())
}

/// 2 for `gemini-2.5-flash`; 0 for a name that does not say.
fn generation(model: &str) -> u32 {
    let version = model.trim_start_matches("models/").strip_prefix("gemini-").unwrap_or_default();
    version.split(['.', '-']).next().and_then(|major| major.parse().ok()).unwrap_or(0)
}

fn thinking(effort: Effort, is_third: bool) -> Value {
    if is_third {
        let level = match effort {
            Effort::Minimal | Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High | Effort::Xhigh | Effort::Max => "high",
        };
        return json!({"includeThoughts": true, "thinkingLevel": level});
    }
    // Every model of the second generation accepts these.
    let budget = match effort {
        Effort::Minimal => 512,
        Effort::Low => 1_024,
        Effort::Medium => 8_192,
        Effort::High => 16_384,
        Effort::Xhigh | Effort::Max => 24_576,
    };
    json!({"includeThoughts": true, "thinkingBudget": budget})
}

fn tools<'a>(request: &ModelRequest<'a>, names: &'a ToolNames) -> GeminiTools<'a> {
    let function = |tool: &&'a baton_core::ToolSpec| GeminiFunction {
        name: names.wire(&tool.name),
        description: &tool.description,
        parameters: cleaned(&tool.parameters),
    };
    GeminiTools { function_declarations: request.tools.iter().map(function).collect() }
}

fn tool_config(request: &ModelRequest<'_>) -> Option<Value> {
    let config = match request.tool_choice {
        _ if request.tools.is_empty() => return None,
        ToolChoice::Auto => return None,
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
    };
    Some(json!({"functionCallingConfig": config}))
}

/// Roles alternate: what follows in the same role is joined.
fn contents<'a>(request: &ModelRequest<'a>, names: &'a ToolNames) -> Vec<GeminiContent<'a>> {
    let mut contents: Vec<GeminiContent<'a>> = Vec::new();
    for entry in entries(request.messages) {
        let (role, parts) = match entry {
            HistoryEntry::User(parts) => ("user", pieces(parts).map(part).collect()),
            HistoryEntry::Assistant(reply) => ("model", model(reply, names, request.model)),
            HistoryEntry::Results(results) => {
                let mut parts: Vec<_> = results.answers().map(|answer| response(answer, names)).collect();
                if request.supports.images {
                    let images = results.answers().flat_map(|answer| answer.images);
                    parts.extend(images.map(|image| part(MessagePiece::Picture(picture(image)))));
                }
                ("user", parts)
            }
        };
        match contents.last_mut() {
            _ if parts.is_empty() => {}
            Some(last) if last.role == role => last.parts.extend(parts),
            _ => contents.push(GeminiContent { role, parts }),
        }
    }
    if contents.first().is_some_and(|first| first.role == "model") {
        contents.insert(0, GeminiContent { role: "user", parts: vec![text(BEGINNING.into())] });
    }
    contents
}

fn text(text: Cow<'_, str>) -> GeminiPart<'_> {
    GeminiPart::Text { text, thought_signature: None }
}

fn part(piece: MessagePiece<'_>) -> GeminiPart<'_> {
    match piece {
        MessagePiece::Text(words) => text(words),
        MessagePiece::Picture(Picture::Inline { media_type, base64 }) => {
            GeminiPart::Inline { inline_data: Inline { mime_type: media_type, data: base64 } }
        }
        MessagePiece::Picture(Picture::Linked { media_type, uri }) => {
            GeminiPart::Linked { file_data: Linked { mime_type: media_type, file_uri: uri } }
        }
    }
}

/// Thoughts are summaries and are not wanted back; the signatures stand for them.
fn model<'a>(reply: &'a Reply, names: &'a ToolNames, model: &str) -> Vec<GeminiPart<'a>> {
    let signer = signer(model);
    let of_text = reply.reasoning.iter().rev().find_map(|r| signature::open(&signer, r.signature.as_deref()));
    let mut parts = Vec::new();
    if !reply.text.is_empty() {
        parts.push(GeminiPart::Text { text: reply.text.as_str().into(), thought_signature: of_text });
    }
    // Of calls made together only the first is signed, and from the third generation on it must be.
    let is_third = generation(model) >= 3;
    let call = |(at, call): (usize, &'a ToolCall)| GeminiPart::Call {
        function_call: GeminiCall {
            id: call.id.as_str(),
            name: names.wire(&call.name),
            args: arguments(call),
        },
        thought_signature: signature::open(&signer, call.signature.as_deref())
            .or((is_third && at == 0).then_some(FOREIGN_CALL)),
    };
    parts.extend(reply.calls.iter().enumerate().map(call));
    parts
}

fn response<'a>(answer: AssistantEntry<'a>, names: &'a ToolNames) -> GeminiPart<'a> {
    let response = if answer.failed { GeminiFunctionResponse::Error } else { GeminiFunctionResponse::Output };
    GeminiPart::Response {
        function_response: FunctionResponse {
            id: answer.call.id.as_str(),
            name: names.wire(&answer.call.name),
            response: response(answer.content),
        },
    }
}
