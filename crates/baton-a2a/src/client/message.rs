//! What a peer is sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_core::AgentName;
use baton_core::message::{ImageSource, Part as EnginePart, Role as EngineRole};
use baton_core::remote::{RemoteHandoff, RemoteMessage};
use serde_json::Value;

use crate::extension::{HandoffPart, HandoffRequest, RecentMessage, URI};
use crate::model::{Content, Message, Part, Role, SendConfiguration, SendParams};

/// The limits of C-2.
const MAX_REASON_CHARS: usize = 500;
const MAX_SUMMARY_CHARS: usize = 2_000;
const MAX_RECENT: usize = 20;
/// Maximum characters of a recent message.
const MAX_RECENT_CHARS: usize = 2_000;

/// The parameters of sending `message` to the agent that is called `target` here. With `has_extension`, a thread is offered as a
/// data part; otherwise the message is plain.
pub(super) fn params(
    message: &RemoteMessage,
    target: &AgentName,
    has_extension: bool,
    blocking: bool,
) -> SendParams {
    let offer = message.handoff.as_deref().filter(|_| has_extension);
    let parts = match offer {
        Some(offer) => {
            let data = HandoffPart::Request(request(offer, target)).to_part();
            let words = Some(offer.words.trim()).filter(|words| !words.is_empty());
            std::iter::once(data).chain(words.map(Part::text)).collect()
        }
        None => message.parts.iter().map(part).collect(),
    };
    let mut sent = Message::new(message.message_id.to_string(), Role::User, parts);
    sent.context_id.clone_from(&message.task.context_id);
    sent.task_id.clone_from(&message.task.task_id);
    if offer.is_some() {
        sent.extensions.push(URI.to_owned());
    }
    sent.metadata.insert("parent_task_id".to_owned(), Value::String(message.run_id.to_string()));
    let accepted_output_modes =
        ["text/plain", "application/json", "text/markdown"].map(str::to_owned).to_vec();
    let configuration = SendConfiguration { accepted_output_modes, blocking, ..SendConfiguration::default() };
    SendParams { message: sent, configuration, metadata: serde_json::Map::new() }
}

fn request(offer: &RemoteHandoff, target: &AgentName) -> HandoffRequest {
    let skipped = offer.recent_messages.len().saturating_sub(MAX_RECENT);
    let recent = offer.recent_messages.iter().skip(skipped).map(|(role, content)| RecentMessage {
        role: if *role == EngineRole::Assistant { "assistant" } else { "user" }.to_owned(),
        content: first(content, MAX_RECENT_CHARS),
    });
    let recent_messages: Vec<RecentMessage> = recent.collect();
    let reason = first(offer.reason.trim(), MAX_REASON_CHARS);
    HandoffRequest {
        thread_id: offer.thread_id.to_string(),
        source_agent_id: offer.source_agent_id.to_string(),
        target_agent_id: target.to_string(),
        context_summary: first(&offer.context_summary, MAX_SUMMARY_CHARS),
        conversation_history_count: u32::try_from(recent_messages.len()).unwrap_or(u32::MAX),
        recent_messages,
        handoff_reason: if reason.is_empty() { "handoff".to_owned() } else { reason },
        preserve_state: offer.preserve_state,
        return_expected: offer.return_expected,
        handoff_metadata: offer.metadata.as_object().cloned().unwrap_or_default(),
    }
}

/// The first `most` characters.
fn first(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// A part of a message. A file of this server is named, because its address is of no use to the peer.
fn part(part: &EnginePart) -> Part {
    match part {
        EnginePart::Text { text } => Part::text(text.as_str()),
        EnginePart::Data { data } => Part::data(data.clone()),
        EnginePart::Image(image) => {
            let content = match &image.source {
                ImageSource::Uri(uri) if uri.starts_with("http") => Content::Uri(uri.clone()),
                ImageSource::Uri(_) => {
                    let name = image.name.as_ref().unwrap_or(&image.media_type);
                    return Part::text(format!("[image: {name}]"));
                }
                ImageSource::Base64(data) => match STANDARD.decode(data) {
                    Ok(bytes) => Content::Bytes(bytes),
                    Err(_) => return Part::text("[an image that cannot be read]"),
                },
            };
            let (filename, media_type) = (image.name.clone(), Some(image.media_type.clone()));
            Part { filename, media_type, ..Part::new(content) }
        }
        EnginePart::File { name, uri, media_type } if uri.starts_with("http") => Part {
            filename: Some(name.clone()),
            media_type: media_type.clone(),
            ..Part::new(Content::Uri(uri.clone()))
        },
        EnginePart::File { name, .. } => Part::text(format!("[file: {name}]")),
    }
}
