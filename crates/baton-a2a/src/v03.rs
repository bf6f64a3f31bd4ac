//! What only the JSON Schema of 0.3 does: `kind`, nested files, lower-case states.

pub(crate) mod card;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::model::{Content, Part, TaskState};
use crate::object::Object;

pub(crate) fn state(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::InputRequired => "input-required",
        TaskState::AuthRequired => "auth-required",
        TaskState::Completed => "completed",
        TaskState::Canceled => "canceled",
        TaskState::Failed => "failed",
        TaskState::Rejected => "rejected",
        TaskState::Unknown => "unknown",
    }
}

pub(crate) fn part(part: &Part) -> Value {
    let object = match &part.content {
        Content::Text(text) => Object::new().set("kind", "text").set("text", text.as_str()),
        Content::Bytes(bytes) => file(part, "bytes", STANDARD.encode(bytes)),
        Content::Uri(uri) => file(part, "uri", uri.clone()),
        Content::Data(data) | Content::Unknown(data) => {
            Object::new().set("kind", "data").set("data", data_object(data))
        }
    };
    object.map("metadata", &part.metadata).into()
}

fn file(part: &Part, member: &str, content: String) -> Object {
    let file = Object::new()
        .optional("name", part.filename.as_deref())
        .optional("mimeType", part.media_type.as_deref())
        .set(member, content);
    Object::new().set("kind", "file").set("file", file)
}

/// 0.3 transmits only objects; another value of 1.0 becomes `{"value": …}`.
pub(crate) fn data_object(data: &Value) -> Value {
    match data {
        Value::Object(_) => data.clone(),
        other => Object::new().set("value", other.clone()).into(),
    }
}
