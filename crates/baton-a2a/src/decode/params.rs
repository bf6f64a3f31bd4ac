//! Reading what a client requests: required members must be there, and kinds must be known.

use serde_json::Value;

use super::{state, timestamp};
use crate::error::Invalid;
use crate::fields::Fields;
use crate::model::{
    Content, ListQuery, Message, PushAuthentication, PushConfig, PushQuery, Role, SendConfiguration,
    SendParams, TaskPushConfig, TaskQuery, TaskState,
};
use crate::wire::WireForm;

/// The longest id that a client may choose, in bytes.
pub const MAX_ID_BYTES: usize = 256;

impl WireForm {
    pub fn decode_send_params(self, value: &Value) -> Result<SendParams, Invalid> {
        let fields = Fields::new(value)?;
        // The proto calls it `request`, and one official client sends that name.
        let member = if fields.get("message").is_some() { "message" } else { "request" };
        let message = fields.object(member, |message| self.requested_message(message))?;
        let configuration = fields.object("configuration", |it| self.configuration(it))?;
        Ok(SendParams {
            message: message.ok_or_else(|| Invalid::new("is required").within("message"))?,
            configuration: configuration.unwrap_or_else(|| SendConfiguration {
                blocking: self.blocks_by_default(),
                ..SendConfiguration::default()
            }),
            metadata: fields.map("metadata")?,
        })
    }

    fn requested_message(self, value: &Value) -> Result<Message, Invalid> {
        let fields = Fields::new(value)?;
        let kind = fields.text("kind")?;
        if kind.is_some_and(|kind| kind != "message") {
            return Err(Invalid::new("must be \"message\"").within("kind"));
        }
        fields.required("messageId")?;
        let message = self.decode_message(value)?;
        if message.role == Role::Unknown {
            return Err(Invalid::new("must be user or agent").within("role"));
        }
        if message.parts.is_empty() {
            return Err(Invalid::new("must not be empty").within("parts"));
        }
        let ids = [Some(&message.message_id), message.context_id.as_ref(), message.task_id.as_ref()];
        if ids.into_iter().flatten().any(|id| id.len() > MAX_ID_BYTES) {
            return Err(Invalid::new(format!("must not have ids of more than {MAX_ID_BYTES} bytes")));
        }
        let kinds_are_written = self != Self::V03 || parts_have_kinds(fields);
        let unknown = message.parts.iter().position(|part| matches!(part.content, Content::Unknown(_)));
        match unknown {
            None if kinds_are_written => Ok(message),
            unknown => {
                let at = unknown.unwrap_or_default();
                Err(Invalid::new("must be a text, file or data part").within(&format!("parts[{at}]")))
            }
        }
    }

    fn configuration(self, value: &Value) -> Result<SendConfiguration, Invalid> {
        let fields = Fields::new(value)?;
        let blocking = match self {
            Self::V10 => fields.flag("returnImmediately")?.map(|immediately| !immediately),
            _ => fields.flag("blocking")?,
        };
        let push = ["pushNotificationConfig", "pushNotification", "taskPushNotificationConfig"];
        let push = push.into_iter().find(|name| fields.get(name).is_some());
        Ok(SendConfiguration {
            accepted_output_modes: fields.texts("acceptedOutputModes")?,
            history_length: fields.count("historyLength")?,
            blocking: blocking.unwrap_or(self.blocks_by_default()),
            push: push.map(|name| fields.object(name, push_config)).transpose()?.flatten(),
        })
    }

    /// Getting, cancelling or subscribing to a task on JSON-RPC.
    pub fn decode_task_query(self, value: &Value) -> Result<TaskQuery, Invalid> {
        let fields = Fields::new(value)?;
        Ok(TaskQuery { id: fields.required("id")?, history_length: fields.count("historyLength")? })
    }

    /// Getting or deleting a notification config on JSON-RPC.
    pub fn decode_push_query(self, value: &Value) -> Result<PushQuery, Invalid> {
        let fields = Fields::new(value)?;
        if self == Self::V10 {
            return Ok(PushQuery { task_id: fields.required("taskId")?, config_id: fields.nonempty("id")? });
        }
        Ok(PushQuery {
            task_id: fields.required("id")?,
            config_id: fields.nonempty("pushNotificationConfigId")?,
        })
    }

    /// A notification config with its task. On REST the task comes from the path, so `task_id` may be absent in the body.
    pub fn decode_task_push_config(
        self,
        value: &Value,
        task_id: Option<&str>,
    ) -> Result<TaskPushConfig, Invalid> {
        let fields = Fields::new(value)?;
        // `{parent, configId, config: {name, pushNotificationConfig}}` is the request of the proto, as one official client sends it.
        if let Some(config) = fields.get("config").filter(|config| config.is_object()) {
            let mut inner = self.decode_task_push_config(config, task_id.or(task_of(fields, "parent")))?;
            if let Some(id) = fields.nonempty("configId")? {
                inner.config.id = Some(id);
            }
            return Ok(inner);
        }
        let config = match fields.get("pushNotificationConfig") {
            Some(config) => {
                push_config(config).map_err(|invalid| invalid.within("pushNotificationConfig"))?
            }
            None if self == Self::V03 => {
                return Err(Invalid::new("is required").within("pushNotificationConfig"));
            }
            None => push_config(value)?,
        };
        let named = fields.nonempty("taskId")?;
        let task_id = task_id.or(named.as_deref()).or(task_of(fields, "name"));
        let task_id = task_id.ok_or_else(|| Invalid::new("is required").within("taskId"))?.to_owned();
        Ok(TaskPushConfig { task_id, config })
    }

    pub fn decode_push_config_list(self, value: &Value) -> Result<Vec<TaskPushConfig>, Invalid> {
        let items = match value {
            Value::Array(items) => items.as_slice(),
            other => Fields::new(other)?.items("configs")?,
        };
        items.iter().map(|item| self.decode_task_push_config(item, None)).collect()
    }

    pub fn decode_list_query(self, value: &Value) -> Result<ListQuery, Invalid> {
        let fields = Fields::new(value)?;
        let wanted = fields.get("status").map(state);
        let unspecified =
            matches!(fields.get("status").and_then(Value::as_str), None | Some("TASK_STATE_UNSPECIFIED"));
        if wanted == Some(TaskState::Unknown) && !unspecified {
            return Err(Invalid::new("must be a task state").within("status"));
        }
        let page_size = fields.count("pageSize")?;
        if page_size.is_some_and(|size| !(1..=100).contains(&size)) {
            return Err(Invalid::new("must be from 1 to 100").within("pageSize"));
        }
        let changed_after = timestamp(fields, "statusTimestampAfter");
        if changed_after.is_none() && fields.get("statusTimestampAfter").is_some() {
            return Err(Invalid::new("must be a time of ISO 8601").within("statusTimestampAfter"));
        }
        Ok(ListQuery {
            context_id: fields.nonempty("contextId")?,
            state: wanted.filter(|state| *state != TaskState::Unknown),
            page_size,
            page_token: fields.nonempty("pageToken")?,
            history_length: fields.count("historyLength")?,
            changed_after,
            include_artifacts: fields.flag("includeArtifacts")?.unwrap_or(false),
        })
    }
}

fn parts_have_kinds(fields: Fields<'_>) -> bool {
    let parts = fields.items("parts").unwrap_or_default();
    parts.iter().all(|part| part.get("kind").is_some_and(Value::is_string))
}

/// The task in a resource name such as `tasks/T/pushNotificationConfigs/C`.
fn task_of<'a>(fields: Fields<'a>, member: &str) -> Option<&'a str> {
    let name = fields.get(member)?.as_str()?;
    name.strip_prefix("tasks/")?.split('/').next().filter(|id| !id.is_empty())
}

fn push_config(value: &Value) -> Result<PushConfig, Invalid> {
    let fields = Fields::new(value)?;
    Ok(PushConfig {
        id: fields.nonempty("id")?,
        url: fields.required("url")?,
        token: fields.nonempty("token")?,
        authentication: fields.object("authentication", authentication)?,
    })
}

fn authentication(value: &Value) -> Result<PushAuthentication, Invalid> {
    let fields = Fields::new(value)?;
    let mut schemes = fields.texts("schemes")?;
    schemes.extend(fields.nonempty("scheme")?);
    Ok(PushAuthentication { schemes, credentials: fields.nonempty("credentials")? })
}
