//! Reading messages, tasks and updates in any wire form.
//!
//! One reader serves all forms, because official clients mix them: names may be `camelCase` or `snake_case`, parts may have `kind` on
//! REST. Only where a member means different things does the form decide. [`params`] reads what a client requests, strictly; this file
//! reads what a server answers, so that a value of a newer version does not end a stream.

pub(crate) mod card;
pub(crate) mod params;
mod parts;

use jiff::Timestamp;
use serde_json::Value;

use crate::error::Invalid;
use crate::fields::Fields;
use crate::model::{
    Artifact, ArtifactUpdate, Message, Role, SendResult, StatusUpdate, StreamItem, Task, TaskList, TaskState,
    TaskStatus,
};
use crate::wire::WireForm;

/// Reads a state in any form: name with or without prefix, or its number in the proto.
pub(crate) fn state(value: &Value) -> TaskState {
    if let Some(number) = value.as_u64() {
        return match number {
            1 => TaskState::Submitted,
            2 => TaskState::Working,
            3 => TaskState::Completed,
            4 => TaskState::Failed,
            5 => TaskState::Canceled,
            6 => TaskState::InputRequired,
            7 => TaskState::Rejected,
            8 => TaskState::AuthRequired,
            _ => TaskState::Unknown,
        };
    }
    let name = value.as_str().unwrap_or_default();
    let name = name.strip_prefix("TASK_STATE_").unwrap_or(name).to_ascii_lowercase().replace('_', "-");
    match name.as_str() {
        "submitted" => TaskState::Submitted,
        "working" => TaskState::Working,
        "input-required" => TaskState::InputRequired,
        "auth-required" => TaskState::AuthRequired,
        "completed" => TaskState::Completed,
        "canceled" | "cancelled" => TaskState::Canceled,
        "failed" => TaskState::Failed,
        "rejected" => TaskState::Rejected,
        _ => TaskState::Unknown,
    }
}

fn role(value: Option<&Value>) -> Role {
    match value {
        Some(Value::String(name)) => match name.as_str() {
            "user" | "ROLE_USER" => Role::User,
            "agent" | "ROLE_AGENT" => Role::Agent,
            _ => Role::Unknown,
        },
        Some(Value::Number(number)) if number.as_u64() == Some(1) => Role::User,
        Some(Value::Number(number)) if number.as_u64() == Some(2) => Role::Agent,
        _ => Role::Unknown,
    }
}

/// A time that cannot be read is absent.
fn timestamp(fields: Fields<'_>, name: &str) -> Option<Timestamp> {
    fields.get(name)?.as_str()?.parse().ok()
}

impl WireForm {
    pub fn decode_message(self, value: &Value) -> Result<Message, Invalid> {
        let fields = Fields::new(value)?;
        let parts = if fields.get("parts").is_some() { "parts" } else { "content" };
        Ok(Message {
            message_id: fields.text("messageId")?.unwrap_or_default(),
            role: role(fields.get("role")),
            parts: fields.each(parts, |part| self.decode_part(part))?,
            context_id: fields.nonempty("contextId")?,
            task_id: fields.nonempty("taskId")?,
            reference_task_ids: fields.texts("referenceTaskIds")?,
            extensions: fields.texts("extensions")?,
            metadata: fields.map("metadata")?,
        })
    }

    pub fn decode_status(self, value: &Value) -> Result<TaskStatus, Invalid> {
        let fields = Fields::new(value)?;
        let message = if fields.get("message").is_some() { "message" } else { "update" };
        Ok(TaskStatus {
            state: fields.get("state").map_or(TaskState::Unknown, state),
            message: fields.object(message, |message| self.decode_message(message))?,
            timestamp: timestamp(fields, "timestamp"),
        })
    }

    pub fn decode_artifact(self, value: &Value) -> Result<Artifact, Invalid> {
        let fields = Fields::new(value)?;
        Ok(Artifact {
            artifact_id: fields.text("artifactId")?.unwrap_or_default(),
            name: fields.nonempty("name")?,
            description: fields.nonempty("description")?,
            parts: fields.each("parts", |part| self.decode_part(part))?,
            extensions: fields.texts("extensions")?,
            metadata: fields.map("metadata")?,
        })
    }

    pub fn decode_task(self, value: &Value) -> Result<Task, Invalid> {
        let fields = Fields::new(value)?;
        let status = fields.object("status", |status| self.decode_status(status))?;
        Ok(Task {
            id: fields.required("id")?,
            context_id: fields.text("contextId")?.unwrap_or_default(),
            status: status.unwrap_or_else(|| TaskStatus::new(TaskState::Unknown)),
            history: fields.each("history", |message| self.decode_message(message))?,
            artifacts: fields.each("artifacts", |artifact| self.decode_artifact(artifact))?,
            metadata: fields.map("metadata")?,
        })
    }

    pub fn decode_status_update(self, value: &Value) -> Result<StatusUpdate, Invalid> {
        let fields = Fields::new(value)?;
        let status = fields.object("status", |status| self.decode_status(status))?;
        let status = status.ok_or_else(|| Invalid::new("is required").within("status"))?;
        Ok(StatusUpdate {
            task_id: fields.required("taskId")?,
            context_id: fields.text("contextId")?.unwrap_or_default(),
            is_final: fields.flag("final")?.unwrap_or(status.state.closes_stream()),
            status,
            metadata: fields.map("metadata")?,
        })
    }

    pub fn decode_artifact_update(self, value: &Value) -> Result<ArtifactUpdate, Invalid> {
        let fields = Fields::new(value)?;
        let artifact = fields.object("artifact", |artifact| self.decode_artifact(artifact))?;
        Ok(ArtifactUpdate {
            task_id: fields.required("taskId")?,
            context_id: fields.text("contextId")?.unwrap_or_default(),
            artifact: artifact.ok_or_else(|| Invalid::new("is required").within("artifact"))?,
            append: fields.flag("append")?.unwrap_or(false),
            last_chunk: fields.flag("lastChunk")?.unwrap_or(false),
            metadata: fields.map("metadata")?,
        })
    }

    /// Reads an item by `kind` or by the name of its member, whichever it has.
    pub fn decode_stream_item(self, value: &Value) -> Result<StreamItem, Invalid> {
        let fields = Fields::new(value)?;
        if let Some(kind) = fields.get("kind").and_then(Value::as_str) {
            return self.stream_item(kind, value);
        }
        for member in ["task", "message", "msg", "statusUpdate", "artifactUpdate"] {
            if let Some(inner) = fields.get(member).filter(|inner| inner.is_object()) {
                return self.stream_item(member, inner).map_err(|invalid| invalid.within(member));
            }
        }
        Ok(StreamItem::Unknown)
    }

    fn stream_item(self, kind: &str, value: &Value) -> Result<StreamItem, Invalid> {
        Ok(match kind {
            "task" => StreamItem::Task(self.decode_task(value)?),
            "message" | "msg" => StreamItem::Message(self.decode_message(value)?),
            "status-update" | "statusUpdate" => StreamItem::StatusUpdate(self.decode_status_update(value)?),
            "artifact-update" | "artifactUpdate" => {
                StreamItem::ArtifactUpdate(self.decode_artifact_update(value)?)
            }
            _ => StreamItem::Unknown,
        })
    }

    pub fn decode_send_result(self, value: &Value) -> Result<SendResult, Invalid> {
        match self.decode_stream_item(value)? {
            StreamItem::Task(task) => Ok(SendResult::Task(task)),
            StreamItem::Message(message) => Ok(SendResult::Message(message)),
            _ => Err(Invalid::new("must be a task or a message")),
        }
    }

    pub fn decode_task_list(self, value: &Value) -> Result<TaskList, Invalid> {
        let fields = Fields::new(value)?;
        Ok(TaskList {
            tasks: fields.each("tasks", |task| self.decode_task(task))?,
            next_page_token: fields.text("nextPageToken")?.unwrap_or_default(),
            page_size: fields.count("pageSize")?.unwrap_or(0),
            total_size: fields.count("totalSize")?.unwrap_or(0),
        })
    }
}
