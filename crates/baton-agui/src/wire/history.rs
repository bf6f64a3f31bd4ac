//! Converts stored messages to AG-UI messages.

use baton_core::message::{Image, ImageSource, Message, Part, Role, Visibility};
use serde_json::json;

use super::message::{
    AguiMessage, Author, ContentPart, Media, MediaSource, MessageBody, MessageContent, Provenance,
};
use crate::{AgentProfiles, Detail};

impl AguiMessage {
    /// Converts a stored message. Returns `None` if the subscriber may not see it.
    pub fn of(message: &Message, detail: Detail, profiles: &AgentProfiles) -> Option<Self> {
        if message.visibility == Visibility::Internal && detail == Detail::Person {
            return None;
        }
        let body = match message.role {
            Role::User => MessageBody::User { content: MessageContent::of(&message.parts) },
            Role::System => MessageBody::System { content: words(&message.parts) },
            Role::Assistant => MessageBody::Assistant {
                name: message.agent.as_ref().map(|agent| profiles.name_of(agent).to_owned()),
                content: Some(words(&message.parts)),
                tool_calls: Vec::new(),
            },
        };
        let author = Author { run_id: message.run_id, agent: message.agent.clone() };
        let metadata = Some(Provenance::Kept { baton: author });
        Some(Self { id: message.id.to_string(), body, subagent: None, metadata })
    }
}

impl MessageContent {
    fn of(parts: &[Part]) -> Self {
        let is_words = |part: &Part| matches!(part, Part::Text { .. } | Part::Data { .. });
        if parts.iter().all(is_words) {
            return Self::Text(words(parts));
        }
        Self::Parts(parts.iter().map(ContentPart::of).collect())
    }
}

impl ContentPart {
    fn of(part: &Part) -> Self {
        match part {
            Part::Text { .. } | Part::Data { .. } => Self::Text { text: word(part) },
            Part::Image(image) => Self::Image(Media::of(image)),
            Part::File { name, uri, media_type } => {
                let source = MediaSource::Url { value: uri.clone(), mime_type: media_type.clone() };
                let media = Media { source, metadata: Some(json!({ "name": name })) };
                match media_type.as_deref().and_then(|kind| kind.split_once('/')) {
                    Some(("image", _)) => Self::Image(media),
                    Some(("audio", _)) => Self::Audio(media),
                    Some(("video", _)) => Self::Video(media),
                    _ => Self::Document(media),
                }
            }
        }
    }
}

impl Media {
    fn of(image: &Image) -> Self {
        let mime_type = image.media_type.clone();
        let source = match &image.source {
            ImageSource::Base64(data) => MediaSource::Data { value: data.clone(), mime_type },
            ImageSource::Uri(uri) => MediaSource::Url { value: uri.clone(), mime_type: Some(mime_type) },
        };
        Self { source, metadata: image.name.as_ref().map(|name| json!({ "name": name })) }
    }
}

/// The parts as text, one line each. In AG-UI only user and tool messages carry anything but text.
fn words(parts: &[Part]) -> String {
    parts.iter().map(word).collect::<Vec<_>>().join("\n")
}

fn word(part: &Part) -> String {
    match part {
        Part::Text { text } => text.clone(),
        Part::Data { data } => data.to_string(),
        Part::File { name, uri, .. } => format!("[{name}]({uri})"),
        Part::Image(Image { source: ImageSource::Uri(uri), name, .. }) => {
            format!("![{}]({uri})", name.as_deref().unwrap_or_default())
        }
        Part::Image(Image { media_type, .. }) => format!("[{media_type}]"),
    }
}

#[cfg(test)]
mod tests;
