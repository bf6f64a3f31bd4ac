//! Messages of a thread, and their parts.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::choices;
use crate::id::{AgentName, MessageId, RunId};

/// One entry of a thread's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub id: MessageId,
    pub run_id: RunId,
    pub role: Role,
    /// The author; `None` for a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    pub visibility: Visibility,
    pub parts: Vec<Part>,
    pub created_at: Timestamp,
}

impl Message {
    /// The text parts, one per line, as an agent that reads only text sees the message.
    pub fn text(&self) -> String {
        parts_to_text(&self.parts, IncludedParts::Text)
    }
}

choices! {
    /// Author of a message.
    pub enum Role {
        User = "user",
        Assistant = "assistant",
        System = "system",
    }
}

choices! {
    /// Whether the user sees it, or only callers that may read traces.
    pub enum Visibility {
        User = "user",
        Internal = "internal",
    }
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Part {
    Text {
        text: String,
    },
    Image(Image),
    /// A stored file; `uri` is its download address.
    File {
        name: String,
        uri: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
    Data {
        data: Value,
    },
}

impl Part {
    /// Bytes of the content, for limits of what is stored.
    pub fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Text { text } => text.len(),
            other => serde_json::to_vec(other).map_or(0, |json| json.len()),
        };
        bytes as u64
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// Which parts [`parts_to_text`] includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncludedParts {
    /// Text alone.
    Text,
    /// Text, and data as JSON.
    TextAndData,
    /// All parts. Images and files are represented by their media type or name.
    All,
}

/// Converts parts to text, one per line.
pub fn parts_to_text(parts: &[Part], included: IncludedParts) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(Cow::Borrowed(text.as_str())),
        Part::Data { data } if included != IncludedParts::Text => Some(data.to_string().into()),
        Part::Image(image) if included == IncludedParts::All => {
            Some(format!("[image: {}]", image.name.as_ref().unwrap_or(&image.media_type)).into())
        }
        Part::File { name, .. } if included == IncludedParts::All => Some(format!("[file: {name}]").into()),
        Part::Data { .. } | Part::Image(_) | Part::File { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ImageWire", into = "ImageWire")]
pub struct Image {
    pub source: ImageSource,
    pub media_type: String,
    /// The name of its file, which stands for it where it cannot be shown.
    pub name: Option<String>,
}

/// The bytes or their address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageSource {
    Base64(String),
    Uri(String),
}

/// The JSON format, in which the source is one of two optional fields.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageWire {
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl TryFrom<ImageWire> for Image {
    type Error = &'static str;
    fn try_from(wire: ImageWire) -> Result<Self, Self::Error> {
        let source = match (wire.data, wire.uri) {
            (Some(data), None) => ImageSource::Base64(data),
            (None, Some(uri)) => ImageSource::Uri(uri),
            _ => return Err("an image has either `data` (base64) or `uri`"),
        };
        Ok(Self { source, media_type: wire.media_type, name: wire.name })
    }
}

impl From<Image> for ImageWire {
    fn from(image: Image) -> Self {
        let (data, uri) = match image.source {
            ImageSource::Base64(data) => (Some(data), None),
            ImageSource::Uri(uri) => (None, Some(uri)),
        };
        Self { data, uri, media_type: image.media_type, name: image.name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_text() {
        let source = ImageSource::Uri("https://x/y.png".into());
        let parts = [
            Part::text("a"),
            Part::Data { data: serde_json::json!({"n": 1}) },
            Part::Image(Image { source, media_type: "image/png".into(), name: None }),
            Part::File { name: "b.pdf".into(), uri: "/b".into(), media_type: None },
            Part::text("c"),
        ];
        assert_eq!(parts_to_text(&parts, IncludedParts::Text), "a\nc");
        assert_eq!(parts_to_text(&parts, IncludedParts::TextAndData), "a\n{\"n\":1}\nc");
        let all = "a\n{\"n\":1}\n[image: image/png]\n[file: b.pdf]\nc";
        assert_eq!(parts_to_text(&parts, IncludedParts::All), all);
    }

    #[test]
    fn parts_keep_their_wire_form() {
        let parts = [
            (r#"{"type":"text","text":"hi"}"#, Part::text("hi")),
            (
                r#"{"type":"image","uri":"https://x/y.png","media_type":"image/png"}"#,
                Part::Image(Image {
                    source: ImageSource::Uri("https://x/y.png".into()),
                    media_type: "image/png".into(),
                    name: None,
                }),
            ),
            (
                r#"{"type":"image","data":"aGk=","media_type":"image/png"}"#,
                Part::Image(Image {
                    source: ImageSource::Base64("aGk=".into()),
                    media_type: "image/png".into(),
                    name: None,
                }),
            ),
            (
                r#"{"type":"file","name":"a.pdf","uri":"/api/v1/artifacts/1"}"#,
                Part::File { name: "a.pdf".into(), uri: "/api/v1/artifacts/1".into(), media_type: None },
            ),
            (r#"{"type":"data","data":{"n":1}}"#, Part::Data { data: serde_json::json!({"n": 1}) }),
        ];
        for (json, part) in parts {
            assert_eq!(serde_json::from_str::<Part>(json).unwrap(), part);
            assert_eq!(serde_json::to_string(&part).unwrap(), json);
        }
        for bad in [
            r#"{"type":"audio"}"#,
            r#"{"type":"text","text":"hi","extra":1}"#,
            r#"{"type":"image","media_type":"image/png"}"#,
            r#"{"type":"image","data":"a","uri":"b","media_type":"image/png"}"#,
            r#"{"type":"image","uri":"b","media_type":"image/png","extra":1}"#,
        ] {
            assert!(serde_json::from_str::<Part>(bad).is_err(), "{bad}");
        }
    }
}
