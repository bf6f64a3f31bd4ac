//! What only 1.0 does: flat parts, and cards with `supportedInterfaces`.

pub(crate) mod card;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::model::{Content, Part, TaskState};
use crate::object::Object;

pub(crate) fn state(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
        TaskState::Unknown => "TASK_STATE_UNSPECIFIED",
    }
}

pub(crate) fn part(part: &Part) -> Value {
    let object = match &part.content {
        Content::Text(text) => Object::new().set("text", text.as_str()),
        Content::Bytes(bytes) => Object::new().set("raw", STANDARD.encode(bytes)),
        Content::Uri(uri) => Object::new().set("url", uri.as_str()),
        Content::Data(data) | Content::Unknown(data) => Object::new().set("data", data.clone()),
    };
    object
        .map("metadata", &part.metadata)
        .optional("filename", part.filename.as_deref())
        .optional("mediaType", part.media_type.as_deref())
        .into()
}
