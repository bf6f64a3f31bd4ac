//! Writing messages, tasks, updates and parameters in a wire form.

use serde_json::Value;

use crate::model::{
    Artifact, ArtifactUpdate, Content, ListQuery, Message, Part, PushAuthentication, PushConfig, PushQuery,
    Role, SendConfiguration, SendParams, SendResult, StatusUpdate, StreamItem, Task, TaskList,
    TaskPushConfig, TaskQuery, TaskState, TaskStatus,
};
use crate::object::Object;
use crate::wire::WireForm;
use crate::{v03, v03_rest, v10};

impl WireForm {
    pub fn encode_state(self, state: TaskState) -> &'static str {
        match self {
            Self::V03 => v03::state(state),
            Self::V03Rest => v03_rest::state(state),
            Self::V10 => v10::state(state),
        }
    }

    fn role(self, role: Role) -> &'static str {
        match (self, role) {
            (Self::V03, Role::User) => "user",
            (Self::V03, Role::Agent | Role::Unknown) => "agent",
            (_, Role::User) => "ROLE_USER",
            (_, Role::Agent) => "ROLE_AGENT",
            (_, Role::Unknown) => "ROLE_UNSPECIFIED",
        }
    }

    pub fn encode_part(self, part: &Part) -> Value {
        if let Content::Unknown(received) = &part.content {
            return received.clone();
        }
        match self {
            Self::V03 => v03::part(part),
            Self::V03Rest => v03_rest::part(part),
            Self::V10 => v10::part(part),
        }
    }

    fn parts(self, parts: &[Part]) -> Vec<Value> {
        parts.iter().map(|part| self.encode_part(part)).collect()
    }

    /// An object with `kind`, which only the schema of 0.3 has.
    fn object(self, kind: &str) -> Object {
        if self == Self::V03 { Object::new().set("kind", kind) } else { Object::new() }
    }

    pub fn encode_message(self, message: &Message) -> Value {
        let parts = if self == Self::V03Rest { "content" } else { "parts" };
        let object = self
            .object("message")
            .set("messageId", message.message_id.as_str())
            .optional("contextId", message.context_id.as_deref())
            .optional("taskId", message.task_id.as_deref())
            .set("role", self.role(message.role))
            .set(parts, self.parts(&message.parts))
            .map("metadata", &message.metadata)
            .list("extensions", message.extensions.iter().map(String::as_str));
        if self == Self::V03Rest {
            return object.into();
        }
        object.list("referenceTaskIds", message.reference_task_ids.iter().map(String::as_str)).into()
    }

    pub fn encode_status(self, status: &TaskStatus) -> Value {
        Object::new()
            .set("state", self.encode_state(status.state))
            .optional("message", status.message.as_ref().map(|message| self.encode_message(message)))
            .optional("timestamp", status.timestamp.map(|time| format!("{time:.3}")))
            .into()
    }

    pub fn encode_artifact(self, artifact: &Artifact) -> Value {
        Object::new()
            .set("artifactId", artifact.artifact_id.as_str())
            .optional("name", artifact.name.as_deref())
            .optional("description", artifact.description.as_deref())
            .set("parts", self.parts(&artifact.parts))
            .map("metadata", &artifact.metadata)
            .list("extensions", artifact.extensions.iter().map(String::as_str))
            .into()
    }

    pub fn encode_task(self, task: &Task) -> Value {
        self.object("task")
            .set("id", task.id.as_str())
            .set("contextId", task.context_id.as_str())
            .set("status", self.encode_status(&task.status))
            .list("artifacts", task.artifacts.iter().map(|artifact| self.encode_artifact(artifact)))
            .list("history", task.history.iter().map(|message| self.encode_message(message)))
            .map("metadata", &task.metadata)
            .into()
    }

    pub fn encode_status_update(self, update: &StatusUpdate) -> Value {
        let object = self
            .object("status-update")
            .set("taskId", update.task_id.as_str())
            .set("contextId", update.context_id.as_str())
            .set("status", self.encode_status(&update.status))
            .map("metadata", &update.metadata);
        if self == Self::V10 { object.into() } else { object.set("final", update.is_final).into() }
    }

    pub fn encode_artifact_update(self, update: &ArtifactUpdate) -> Value {
        self.object("artifact-update")
            .set("taskId", update.task_id.as_str())
            .set("contextId", update.context_id.as_str())
            .set("artifact", self.encode_artifact(&update.artifact))
            .set("append", update.append)
            .set("lastChunk", update.last_chunk)
            .map("metadata", &update.metadata)
            .into()
    }

    /// Wraps an object in a member that names its type, except in the schema of 0.3, where `kind` does that.
    fn member(self, name: &str, value: Value) -> Value {
        if self == Self::V03 { value } else { Object::new().set(name, value).into() }
    }

    pub fn encode_stream_item(self, item: &StreamItem) -> Value {
        match item {
            StreamItem::Task(task) => self.member("task", self.encode_task(task)),
            StreamItem::Message(message) => self.member("message", self.encode_message(message)),
            StreamItem::StatusUpdate(update) => {
                self.member("statusUpdate", self.encode_status_update(update))
            }
            StreamItem::ArtifactUpdate(update) => {
                self.member("artifactUpdate", self.encode_artifact_update(update))
            }
            StreamItem::Unknown => Object::new().into(),
        }
    }

    pub fn encode_send_result(self, result: &SendResult) -> Value {
        match result {
            SendResult::Task(task) => self.member("task", self.encode_task(task)),
            SendResult::Message(message) => self.member("message", self.encode_message(message)),
        }
    }

    pub fn encode_send_params(self, params: &SendParams) -> Value {
        Object::new()
            .set("message", self.encode_message(&params.message))
            .set("configuration", self.encode_configuration(&params.configuration))
            .map("metadata", &params.metadata)
            .into()
    }

    fn encode_configuration(self, configuration: &SendConfiguration) -> Value {
        let modes = configuration.accepted_output_modes.iter().map(String::as_str);
        let object = Object::new()
            .list("acceptedOutputModes", modes)
            .optional("historyLength", configuration.history_length);
        let push = configuration.push.as_ref().map(|push| Value::from(self.push_config(push)));
        match self {
            Self::V03 => {
                object.set("blocking", configuration.blocking).optional("pushNotificationConfig", push)
            }
            Self::V03Rest => {
                object.set("blocking", configuration.blocking).optional("pushNotification", push)
            }
            Self::V10 => object
                .set("returnImmediately", !configuration.blocking)
                .optional("taskPushNotificationConfig", push),
        }
        .into()
    }

    fn push_config(self, config: &PushConfig) -> Object {
        let authentication = config.authentication.as_ref().map(|it| self.push_authentication(it));
        Object::new()
            .optional("id", config.id.as_deref())
            .set("url", config.url.as_str())
            .optional("token", config.token.as_deref())
            .optional("authentication", authentication)
    }

    fn push_authentication(self, authentication: &PushAuthentication) -> Value {
        let schemes = authentication.schemes.iter().map(String::as_str);
        let object = match self {
            Self::V10 => {
                Object::new().set("scheme", authentication.schemes.first().map_or("", String::as_str))
            }
            _ => Object::new().set("schemes", schemes.collect::<Vec<_>>()),
        };
        object.optional("credentials", authentication.credentials.as_deref()).into()
    }

    /// A notification config with its task: the result of set and get, and the parameters of set.
    pub fn encode_task_push_config(self, config: &TaskPushConfig) -> Value {
        let id = config.config.id.as_deref().unwrap_or_default();
        let inner = self.push_config(&config.config);
        match self {
            Self::V03 => Object::new()
                .set("taskId", config.task_id.as_str())
                .set("pushNotificationConfig", inner)
                .into(),
            Self::V03Rest => Object::new()
                .set("name", format!("tasks/{}/pushNotificationConfigs/{id}", config.task_id))
                .set("pushNotificationConfig", inner)
                .into(),
            Self::V10 => Object::new().set("taskId", config.task_id.as_str()).extend(inner.into()).into(),
        }
    }

    pub fn encode_push_config_list(self, configs: &[TaskPushConfig]) -> Value {
        let configs: Vec<Value> = configs.iter().map(|config| self.encode_task_push_config(config)).collect();
        match self {
            Self::V03 => configs.into(),
            Self::V03Rest => Object::new().set("configs", configs).into(),
            Self::V10 => Object::new().set("configs", configs).set("nextPageToken", "").into(),
        }
    }

    /// The parameters of getting or deleting a notification config on JSON-RPC.
    pub fn encode_push_query(self, query: &PushQuery) -> Value {
        let object = Object::new();
        match self {
            Self::V10 => {
                object.set("taskId", query.task_id.as_str()).optional("id", query.config_id.as_deref())
            }
            _ => object
                .set("id", query.task_id.as_str())
                .optional("pushNotificationConfigId", query.config_id.as_deref()),
        }
        .into()
    }

    /// The parameters of getting, cancelling or subscribing to a task on JSON-RPC.
    pub fn encode_task_query(self, query: &TaskQuery) -> Value {
        Object::new().set("id", query.id.as_str()).optional("historyLength", query.history_length).into()
    }

    pub fn encode_list_query(self, query: &ListQuery) -> Value {
        Object::new()
            .optional("contextId", query.context_id.as_deref())
            .optional("status", query.state.map(|state| self.encode_state(state)))
            .optional("pageSize", query.page_size)
            .optional("pageToken", query.page_token.as_deref())
            .optional("historyLength", query.history_length)
            .optional("statusTimestampAfter", query.changed_after.map(|time| format!("{time:.3}")))
            .set("includeArtifacts", query.include_artifacts)
            .into()
    }

    pub fn encode_task_list(self, list: &TaskList) -> Value {
        let tasks: Vec<Value> = list.tasks.iter().map(|task| self.encode_task(task)).collect();
        Object::new()
            .set("tasks", tasks)
            .set("nextPageToken", list.next_page_token.as_str())
            .set("pageSize", list.page_size)
            .set("totalSize", list.total_size)
            .into()
    }
}
