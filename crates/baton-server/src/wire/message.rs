//! Messages and their parts. [`parts`] says which parts may be sent, [`query`] which messages can be asked for.

pub mod parts;
pub mod query;

use baton_core::message::{Image, ImageSource, Part, Role, Visibility};
use baton_core::store::ThreadMessage;
use baton_core::{AgentName, MessageId, RunId};
use baton_engine::Agents;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use super::feedback::{Thumb, thumbs};
use super::schema::{moment, words};
pub use parts::resolve;

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum PartView {
    Text {
        text: String,
    },
    /// Either `data` (the bytes, in base64) or `uri` is there.
    Image {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
        media_type: String,
        /// What its file is called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// An artifact of the same thread.
    File {
        name: String,
        uri: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
    Data {
        data: Value,
    },
}

/// Written by hand, because it says more than the type: that an image has one of two fields, and that nothing else is taken.
impl PartialSchema for PartView {
    fn schema() -> RefOr<Schema> {
        let called = || text("What its file is called.");
        let kind = || text("`image/png` and the like.");
        let linked = text("An address on the web, or that of an artifact of the same thread.");
        let image = part("image", "A picture, as it is.").field("data", text("The bytes, in base64."));
        let elsewhere = part("image", "A picture that is elsewhere.").field("uri", linked);
        let about =
            "An artifact of the same thread. Its name and media type are those that it was stored with.";
        let file = part("file", about).field("name", text("What it is called."));
        let file = file.field("uri", text("`/api/v1/artifacts/{artifact_id}`"));
        OneOfBuilder::new()
            .description(Some("One piece of a message."))
            .item(part("text", "Words.").field("text", text("What is said.")))
            .item(image.field("media_type", kind()).property("name", called()))
            .item(elsewhere.field("media_type", kind()).property("name", called()))
            .item(file.property("media_type", text("What it is.")))
            .item(
                part("data", "Any JSON.")
                    .field("data", ObjectBuilder::new().schema_type(SchemaType::AnyValue)),
            )
            .into()
    }
}

fn text(about: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).description(Some(about))
}

fn part(kind: &str, about: &str) -> ObjectBuilder {
    let kind = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([kind]));
    let nothing_else = AdditionalProperties::FreeForm(false);
    let part = ObjectBuilder::new().schema_type(Type::Object).description(Some(about));
    part.additional_properties(Some(nothing_else)).field("type", kind)
}

trait MessageFields {
    /// A property that has to be there.
    fn field(self, name: &str, schema: ObjectBuilder) -> Self;
}

impl MessageFields for ObjectBuilder {
    fn field(self, name: &str, schema: ObjectBuilder) -> Self {
        self.property(name, schema).required(name)
    }
}

impl ToSchema for PartView {}

impl From<Part> for PartView {
    fn from(part: Part) -> Self {
        match part {
            Part::Text { text } => Self::Text { text },
            Part::Image(Image { source: ImageSource::Base64(data), media_type, name }) => {
                Self::Image { data: Some(data), uri: None, media_type, name }
            }
            Part::Image(Image { source: ImageSource::Uri(uri), media_type, name }) => {
                Self::Image { data: None, uri: Some(uri), media_type, name }
            }
            Part::File { name, uri, media_type } => Self::File { name, uri, media_type },
            Part::Data { data } => Self::Data { data },
        }
    }
}

/// Only the shape; [`resolve`] also asks whether what it says may be said.
impl TryFrom<PartView> for Part {
    type Error = &'static str;

    fn try_from(part: PartView) -> Result<Self, Self::Error> {
        Ok(match part {
            PartView::Text { text } => Self::Text { text },
            PartView::Image { data, uri, media_type, name } => {
                let source = match (data, uri) {
                    (Some(data), None) => ImageSource::Base64(data),
                    (None, Some(uri)) => ImageSource::Uri(uri),
                    _ => return Err(parts::ONE_SOURCE),
                };
                Self::Image(Image { source, media_type, name })
            }
            PartView::File { name, uri, media_type } => Self::File { name, uri, media_type },
            PartView::Data { data } => Self::Data { data },
        })
    }
}

/// One entry of a thread's history.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageView {
    #[schema(value_type = Uuid)]
    pub message_id: MessageId,
    /// Where it stands in its thread, from 1. Those that are not shown have numbers too.
    pub number: u64,
    #[schema(schema_with = words::<Role>)]
    pub role: Role,
    /// Who wrote it; absent for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub agent: Option<AgentName>,
    /// What people call that agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub display_name: Option<String>,
    /// `internal` is what agents said to each other.
    #[schema(schema_with = words::<Visibility>)]
    pub visibility: Visibility,
    /// The run that it began, or that it was said in.
    #[schema(value_type = Uuid)]
    pub run_id: RunId,
    pub parts: Vec<PartView>,
    #[schema(schema_with = moment)]
    pub created_at: Timestamp,
    /// How the caller rated it: 1 for good, -1 for bad. Absent if they did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = thumbs, required = false)]
    pub rating: Option<Thumb>,
}

impl MessageView {
    /// An agent that is gone is called by its id.
    pub fn of(found: ThreadMessage, agents: &Agents) -> Self {
        let ThreadMessage { number, message } = found;
        let known = |name: &AgentName| agents.get(name).map(|agent| agent.display_name.clone());
        let display_name = message.agent.as_ref().map(|name| known(name).unwrap_or_else(|| name.to_string()));
        Self {
            message_id: message.id,
            number,
            role: message.role,
            agent: message.agent,
            display_name,
            visibility: message.visibility,
            run_id: message.run_id,
            parts: message.parts.into_iter().map(Into::into).collect(),
            created_at: message.created_at,
            rating: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// D8
    #[test]
    fn parts_are_the_same_on_the_wire_as_in_the_core() {
        let parts = [
            Part::text("hi"),
            Part::Image(Image {
                source: ImageSource::Base64("aGk=".into()),
                media_type: "image/png".into(),
                name: None,
            }),
            Part::Image(Image {
                source: ImageSource::Uri("https://x/y".into()),
                media_type: "image/png".into(),
                name: Some("y".into()),
            }),
            Part::File { name: "a".into(), uri: "/api/v1/artifacts/1".into(), media_type: None },
            Part::Data { data: json!({ "n": [1] }) },
        ];
        for part in parts {
            let view = PartView::from(part.clone());
            let wire = serde_json::to_value(&view).unwrap();
            assert_eq!(wire, serde_json::to_value(&part).unwrap());
            assert_eq!(Part::try_from(serde_json::from_value::<PartView>(wire).unwrap()), Ok(part));
        }
        for bad in [
            json!({ "type": "text", "text": "hi", "extra": 1 }),
            json!({ "type": "audio" }),
            json!({ "text": "hi" }),
        ] {
            assert!(serde_json::from_value::<PartView>(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn its_schema_is_one() {
        let schema = serde_json::to_value(PartView::schema()).unwrap();
        let forms = schema["oneOf"].as_array().unwrap();
        assert_eq!(forms.len(), 5);
        assert!(forms.iter().all(|form| form["additionalProperties"] == false), "{schema}");
        assert_eq!(forms[1]["required"], json!(["type", "data", "media_type"]));
        assert_eq!(PartView::name(), "PartView");
    }
}
