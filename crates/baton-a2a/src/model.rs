//! Messages, tasks and their updates, as all versions of the protocol mean them.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Free key-value data; keys of extensions are their URIs.
pub type Metadata = Map<String, Value>;

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    User,
    Agent,
    /// A value of a newer version.
    Unknown,
}

/// The content of a part.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Text(String),
    /// A file's decoded bytes.
    Bytes(Vec<u8>),
    /// The address of a file.
    Uri(String),
    /// An object in 0.3, any value in 1.0.
    Data(Value),
    /// A kind of a newer version, as it was received.
    Unknown(Value),
}

/// A section of a message or an artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub content: Content,
    pub filename: Option<String>,
    pub media_type: Option<String>,
    pub metadata: Metadata,
}

impl Part {
    pub fn new(content: Content) -> Self {
        Self { content, filename: None, media_type: None, metadata: Metadata::new() }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Content::Text(text.into()))
    }

    pub fn data(data: impl Into<Value>) -> Self {
        Self::new(Content::Data(data.into()))
    }

    /// The text of a text part.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a data part.
    pub fn as_data(&self) -> Option<&Value> {
        match &self.content {
            Content::Data(data) => Some(data),
            _ => None,
        }
    }
}

/// One message between client and server.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub message_id: String,
    pub role: Role,
    pub parts: Vec<Part>,
    pub context_id: Option<String>,
    pub task_id: Option<String>,
    pub reference_task_ids: Vec<String>,
    /// URIs of the extensions whose data the message carries.
    pub extensions: Vec<String>,
    pub metadata: Metadata,
}

impl Message {
    pub fn new(message_id: impl Into<String>, role: Role, parts: Vec<Part>) -> Self {
        Self {
            message_id: message_id.into(),
            role,
            parts,
            context_id: None,
            task_id: None,
            reference_task_ids: Vec::new(),
            extensions: Vec::new(),
            metadata: Metadata::new(),
        }
    }

    /// The text parts, one per line.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.parts.iter().filter_map(Part::as_text).collect();
        texts.join("\n")
    }
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    Submitted,
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Canceled,
    Failed,
    Rejected,
    /// `unknown` of 0.3, `UNSPECIFIED`, or a state of a newer version.
    Unknown,
}

impl TaskState {
    pub const ALL: [Self; 9] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Canceled,
        Self::Failed,
        Self::Rejected,
        Self::Unknown,
    ];

    /// Whether the task has ended and never changes again.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Canceled | Self::Failed | Self::Rejected)
    }

    /// Whether the task waits for its client.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// Whether a stream of the task closes in this state.
    pub fn closes_stream(self) -> bool {
        self.is_terminal() || self.is_interrupted()
    }
}

/// The state of a task at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStatus {
    pub state: TaskState,
    pub message: Option<Message>,
    pub timestamp: Option<Timestamp>,
}

impl TaskStatus {
    pub fn new(state: TaskState) -> Self {
        Self { state, message: None, timestamp: None }
    }
}

/// A result of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    pub artifact_id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub parts: Vec<Part>,
    pub extensions: Vec<String>,
    pub metadata: Metadata,
}

impl Artifact {
    pub fn new(artifact_id: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            artifact_id: artifact_id.into(),
            name: None,
            description: None,
            parts,
            extensions: Vec::new(),
            metadata: Metadata::new(),
        }
    }
}

/// A unit of work with a state.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: String,
    pub context_id: String,
    pub status: TaskStatus,
    /// Oldest first.
    pub history: Vec<Message>,
    pub artifacts: Vec<Artifact>,
    pub metadata: Metadata,
}

/// A change of a task's status.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusUpdate {
    pub task_id: String,
    pub context_id: String,
    pub status: TaskStatus,
    /// Whether the stream ends with this update. 1.0 does not transmit it; its reader derives it from the state.
    pub is_final: bool,
    pub metadata: Metadata,
}

/// A new artifact, or more of one.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactUpdate {
    pub task_id: String,
    pub context_id: String,
    pub artifact: Artifact,
    /// Whether the parts are added to the artifact of the same id; otherwise they replace it.
    pub append: bool,
    pub last_chunk: bool,
    pub metadata: Metadata,
}

/// One item of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem {
    Task(Task),
    Message(Message),
    StatusUpdate(StatusUpdate),
    ArtifactUpdate(ArtifactUpdate),
    /// An item of a newer version, to be skipped.
    Unknown,
}

/// The result of sending a message.
#[derive(Debug, Clone, PartialEq)]
pub enum SendResult {
    Task(Task),
    Message(Message),
}

/// The parameters of sending a message.
#[derive(Debug, Clone, PartialEq)]
pub struct SendParams {
    pub message: Message,
    pub configuration: SendConfiguration,
    pub metadata: Metadata,
}

/// How the result of a message is delivered.
#[derive(Debug, Clone, PartialEq)]
pub struct SendConfiguration {
    pub accepted_output_modes: Vec<String>,
    /// Newest messages in the result: `None` is no limit.
    pub history_length: Option<u32>,
    /// Whether the call returns only in a terminal or interrupted state.
    pub blocking: bool,
    pub push: Option<PushConfig>,
}

impl Default for SendConfiguration {
    fn default() -> Self {
        Self { accepted_output_modes: Vec::new(), history_length: None, blocking: true, push: None }
    }
}

/// Which task, and how much of its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskQuery {
    pub id: String,
    pub history_length: Option<u32>,
}

/// Filters and page of a list of tasks (1.0).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    pub context_id: Option<String>,
    pub state: Option<TaskState>,
    /// 1–100; `None` is 50.
    pub page_size: Option<u32>,
    pub page_token: Option<String>,
    pub history_length: Option<u32>,
    pub changed_after: Option<Timestamp>,
    pub include_artifacts: bool,
}

/// A page of tasks, newest first (1.0).
#[derive(Debug, Clone, PartialEq)]
pub struct TaskList {
    pub tasks: Vec<Task>,
    /// Empty on the last page.
    pub next_page_token: String,
    pub page_size: u32,
    pub total_size: u32,
}

/// Where notifications about a task are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfig {
    pub id: Option<String>,
    pub url: String,
    pub token: Option<String>,
    pub authentication: Option<PushAuthentication>,
}

/// How a notification is authenticated. 1.0 has one scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushAuthentication {
    pub schemes: Vec<String>,
    pub credentials: Option<String>,
}

/// A notification config with its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPushConfig {
    pub task_id: String,
    pub config: PushConfig,
}

/// Which notification config of which task; without an id it is the first one (0.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushQuery {
    pub task_id: String,
    pub config_id: Option<String>,
}
