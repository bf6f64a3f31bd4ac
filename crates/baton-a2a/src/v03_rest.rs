//! What only the `ProtoJSON` of 0.3 does: `content`, `fileWithBytes`, data within data, `TASK_STATE_CANCELLED`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::model::{Content, Part, TaskState};
use crate::object::Object;
use crate::{v03, v10};

pub(crate) fn state(state: TaskState) -> &'static str {
    match state {
        TaskState::Canceled => "TASK_STATE_CANCELLED",
        other => v10::state(other),
    }
}

/// Metadata of a part is not in the proto, but the official clients read and write it.
pub(crate) fn part(part: &Part) -> Value {
    let object = match &part.content {
        Content::Text(text) => Object::new().set("text", text.as_str()),
        Content::Bytes(bytes) => file(part, "fileWithBytes", STANDARD.encode(bytes)),
        Content::Uri(uri) => file(part, "fileWithUri", uri.clone()),
        Content::Data(data) | Content::Unknown(data) => {
            Object::new().set("data", Object::new().set("data", v03::data_object(data)))
        }
    };
    object.map("metadata", &part.metadata).into()
}

fn file(part: &Part, member: &str, content: String) -> Object {
    let file = Object::new()
        .set(member, content)
        .optional("mimeType", part.media_type.as_deref())
        .optional("name", part.filename.as_deref());
    Object::new().set("file", file)
}
