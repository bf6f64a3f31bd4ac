//! The body of a message request.

use std::borrow::Cow;

use baton_core::model::ToolChoice;
use baton_core::{ModelRequest, Reply};
use serde::Serialize;
use serde_json::{Value, json};

use super::abilities::Abilities;
use super::thinking::Thinking;
use super::{redacted_signer, signer};
use crate::fault::ModelFault;
use crate::history::{AssistantEntry, CallArguments, HistoryEntry, IdRule, arguments, entries};
use crate::parts::{MessagePiece, Picture, picture, pieces};
use crate::schema::{is_enforceable, with_instruction};
use crate::sequence::written;
use crate::signature;
use crate::tool_names::ToolNames;

/// A conversation begins with the user; one whose beginning was dropped may not.
const BEGINNING: &str = "(the beginning of the conversation is left out)";

#[derive(Serialize)]
struct AnthropicBody<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Placed<AnthropicBlock<'a>>; 1]>,
    messages: Vec<AnthropicMessage<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Placed<AnthropicTool<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "OutputConfig::is_empty")]
    output_config: OutputConfig<'a>,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<AnthropicFormat<'a>>,
}

impl OutputConfig<'_> {
    fn is_empty(&self) -> bool {
        self.effort.is_none() && self.format.is_none()
    }
}

#[derive(Serialize)]
struct AnthropicFormat<'a> {
    r#type: &'static str,
    schema: &'a Value,
}

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

#[derive(Serialize)]
struct AnthropicMessage<'a> {
    role: &'static str,
    content: Vec<Placed<AnthropicBlock<'a>>>,
}

/// Something that may end a part of the request which the provider keeps.
#[derive(Serialize)]
struct Placed<T> {
    #[serde(flatten)]
    it: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl<T> From<T> for Placed<T> {
    fn from(it: T) -> Self {
        Self { it, cache_control: None }
    }
}

#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

/// Kept for five minutes, and five more with each use.
const EPHEMERAL: CacheControl = CacheControl { r#type: "ephemeral" };

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AnthropicBlock<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: AnthropicSource<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: CallArguments<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: AnthropicResult<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// Plain text, or the text and its images.
#[derive(Serialize)]
#[serde(untagged)]
enum AnthropicResult<'a> {
    Text(&'a str),
    Blocks(Vec<AnthropicBlock<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum AnthropicSource<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

pub(super) fn body(request: &ModelRequest<'_>, names: &ToolNames) -> Result<Vec<u8>, ModelFault> {
    let abilities = Abilities::of(request.model);
    let mut messages = messages(request, names);
    let thinking =
        Thinking::plan(request, abilities, is_forced(request, abilities), lacks_thoughts(&messages));
    let samples = abilities.samples() && !thinking.is_on();
    let keeps_to_schemas = abilities.keeps_to_schemas() && request.supports.structured_output;
    let enforced = request.output_schema.filter(|schema| keeps_to_schemas && is_enforceable(schema));
    let instructed = request.output_schema.filter(|_| enforced.is_none());
    let system = with_instruction(request.system, instructed);
    set_cache_points(&mut messages);
    let body = AnthropicBody {
        model: request.model,
        max_tokens: thinking.max_tokens,
        system: (!system.is_empty())
            .then(|| [Placed { it: AnthropicBlock::Text { text: system }, cache_control: Some(EPHEMERAL) }]),
        messages,
        stream: true,
        tools: tools(request, names),
        tool_choice: tool_choice(request, abilities),
        temperature: request.sampling.temperature.filter(|_| samples).map(|degree| degree.min(1.0)),
        top_p: request.sampling.top_p.filter(|_| samples),
        output_config: OutputConfig {
            effort: thinking.effort,
            format: enforced.map(|schema| AnthropicFormat { r#type: "json_schema", schema }),
        },
        thinking: thinking.setting,
    };
    written(&body, request.system.len())
}

fn tools<'a>(request: &ModelRequest<'a>, names: &'a ToolNames) -> Vec<Placed<AnthropicTool<'a>>> {
    let tool = |tool: &&'a baton_core::ToolSpec| AnthropicTool {
        name: names.wire(&tool.name),
        description: &tool.description,
        input_schema: &tool.parameters,
    };
    let mut tools: Vec<_> = request.tools.iter().map(|one| Placed::from(tool(one))).collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(EPHEMERAL);
    }
    tools
}

/// A request may have four cache points: one is on the tools, one on the system prompt, and two are here. The end of the
/// conversation is kept for the next turn. The point before, at the end of the person's or the tools' message before, is
/// where the last turn's ended: the provider looks back only 20 blocks for it, and one turn may add more.
fn set_cache_points(messages: &mut [AnthropicMessage<'_>]) {
    for message in messages.iter_mut().rev().step_by(2).take(2) {
        let is_cacheable = |placed: &&mut Placed<AnthropicBlock<'_>>| {
            !matches!(placed.it, AnthropicBlock::Thinking { .. } | AnthropicBlock::RedactedThinking { .. })
        };
        if let Some(last) = message.content.iter_mut().rev().find(is_cacheable) {
            last.cache_control = Some(EPHEMERAL);
        }
    }
}

fn is_forced(request: &ModelRequest<'_>, abilities: Abilities) -> bool {
    let forces = request.tool_choice == ToolChoice::Required;
    forces && !request.tools.is_empty() && abilities.can_be_forced_to_call()
}

/// A choice without tools is refused, and so is force by the newest models: they get the wish as the default.
fn tool_choice(request: &ModelRequest<'_>, abilities: Abilities) -> Option<Value> {
    let is_single = !request.supports.parallel_calls;
    let kind = match request.tool_choice {
        _ if request.tools.is_empty() => return None,
        ToolChoice::None => return Some(json!({"type": "none"})),
        ToolChoice::Required if is_forced(request, abilities) => "any",
        ToolChoice::Auto | ToolChoice::Required if is_single => "auto",
        ToolChoice::Auto | ToolChoice::Required => return None,
    };
    let mut choice = json!({"type": kind});
    if is_single {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    Some(choice)
}

/// Thinking cannot begin in the middle of a turn: its first reply must have begun with a thought.
fn lacks_thoughts(messages: &[AnthropicMessage<'_>]) -> bool {
    fn first<'a, 'b>(message: &'b AnthropicMessage<'a>) -> Option<&'b AnthropicBlock<'a>> {
        message.content.first().map(|placed| &placed.it)
    }
    match messages {
        [.., before, last] if matches!(first(last), Some(AnthropicBlock::ToolResult { .. })) => !matches!(
            first(before),
            Some(AnthropicBlock::Thinking { .. } | AnthropicBlock::RedactedThinking { .. })
        ),
        _ => false,
    }
}

/// Roles alternate: what follows in the same role is joined. Results stand first, because history puts them there.
fn messages<'a>(request: &ModelRequest<'a>, names: &'a ToolNames) -> Vec<AnthropicMessage<'a>> {
    let mut messages: Vec<AnthropicMessage<'a>> = Vec::new();
    let signers = (signer(request.model), redacted_signer(request.model));
    for entry in entries(request.messages) {
        let (role, content) = match entry {
            HistoryEntry::User(parts) => ("user", pieces(parts).map(block).collect()),
            HistoryEntry::Assistant(reply) => ("assistant", assistant(reply, names, &signers)),
            HistoryEntry::Results(results) => (
                "user",
                results.answers().map(|answer| result(answer, request.supports.images)).collect::<Vec<_>>(),
            ),
        };
        if content.is_empty() {
            continue;
        }
        match messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(content.into_iter().map(Placed::from)),
            _ => messages
                .push(AnthropicMessage { role, content: content.into_iter().map(Placed::from).collect() }),
        }
    }
    if messages.first().is_some_and(|first| first.role == "assistant") {
        let content = vec![AnthropicBlock::Text { text: BEGINNING.into() }.into()];
        messages.insert(0, AnthropicMessage { role: "user", content });
    }
    messages
}

fn block(piece: MessagePiece<'_>) -> AnthropicBlock<'_> {
    match piece {
        MessagePiece::Text(text) => AnthropicBlock::Text { text },
        MessagePiece::Picture(Picture::Inline { media_type, base64 }) => {
            AnthropicBlock::Image { source: AnthropicSource::Base64 { media_type, data: base64 } }
        }
        MessagePiece::Picture(Picture::Linked { uri, .. }) => {
            AnthropicBlock::Image { source: AnthropicSource::Url { url: uri } }
        }
    }
}

fn assistant<'a>(
    reply: &'a Reply,
    names: &'a ToolNames,
    (legible, redacted): &(String, String),
) -> Vec<AnthropicBlock<'a>> {
    let thoughts = reply.reasoning.iter().filter_map(|thought| {
        let sealed = thought.signature.as_deref();
        let thinking = signature::open(legible, sealed)
            .map(|signature| AnthropicBlock::Thinking { thinking: &thought.text, signature });
        thinking.or_else(|| {
            signature::open(redacted, sealed).map(|data| AnthropicBlock::RedactedThinking { data })
        })
    });
    let mut blocks: Vec<AnthropicBlock<'a>> = thoughts.collect();
    if !reply.text.trim().is_empty() {
        // The API refuses a last text that ends with a space.
        blocks.push(AnthropicBlock::Text { text: reply.text.trim_end().into() });
    }
    blocks.extend(reply.calls.iter().map(|call| AnthropicBlock::ToolUse {
        id: IdRule::Plain.spell(call.id.as_str()),
        name: names.wire(&call.name),
        input: arguments(call),
    }));
    blocks
}

fn result(answer: AssistantEntry<'_>, accepts_images: bool) -> AnthropicBlock<'_> {
    let content = if accepts_images && !answer.images.is_empty() {
        let text = AnthropicBlock::Text { text: answer.content.into() };
        let images = answer.images.iter().map(|image| block(MessagePiece::Picture(picture(image))));
        // A text without a word is refused.
        let text = Some(text).filter(|_| !answer.content.trim().is_empty());
        AnthropicResult::Blocks(text.into_iter().chain(images).collect())
    } else {
        AnthropicResult::Text(answer.content)
    };
    AnthropicBlock::ToolResult {
        tool_use_id: IdRule::Plain.spell(answer.call.id.as_str()),
        content,
        is_error: answer.failed,
    }
}
