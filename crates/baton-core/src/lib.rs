//! Baton's domain types, with the same names in agent files, code, API, UI and docs.
//!
//! In reading order:
//!
//! - [`id`]: ids. Each is a type of its own and is validated once, when it is created.
//! - [`agent`]: agent definitions, every key as a type.
//! - [`message`]: messages of a thread.
//! - [`media`]: files that tools and models produce, and their types.
//! - [`event`]: events of a thread. [`sub_agent`]: results of sub-agents.
//! - [`chat`]: a session's conversation as a model sees it.
//! - [`model`], [`tool`], [`skill`], [`agent_library`], [`remote`]: traits for language models, tools, Agent Skills, created agents and
//!   agents on other servers.
//!   Adapters implement them, the engine calls them.
//! - [`workflow`]: the state machine of a workflow, and the trait for guides that work without a model.
//! - [`workspace`]: the trait for the files of a thread.
//! - [`store`]: the trait for durable data, one tenant at a time.
//! - [`usage`], [`money`], [`ledger`], [`budget`]: tokens, costs, the rows that record them, and their limits.
//! - [`permission`], [`rights`]: what a caller may do.
//! - [`trace`]: W3C trace context.
//! - [`text`], [`stem`](mod@stem), [`hash`]: truncating, stemming and hashing text.
//! - [`duration`]: durations such as `500ms`, `30s`, `5m`.
//!
//! ```
//! use baton_core::{AgentName, ThreadId, Usd};
//!
//! assert_eq!(AgentName::parse("skill-creator")?.transfer_tool(), "transfer_to_skill_creator");
//! assert!(ThreadId::parse("my-thread").is_err(), "a thread id is a UUID v4");
//! assert_eq!("0.1".parse::<Usd>()?.plus("0.2".parse()?), "0.3".parse()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate does not access the network, databases, files, environment variables or the clock. Callers pass the time in.

pub mod agent;
pub mod agent_library;
pub mod budget;
pub mod chat;
pub mod choice;
pub mod duration;
pub mod event;
pub mod hash;
pub mod id;
pub mod learning;
pub mod ledger;
pub mod media;
pub mod message;
pub mod model;
pub mod money;
pub mod permission;
pub mod remote;
pub mod rights;
pub mod skill;
pub mod stem;
pub mod store;
pub mod sub_agent;
pub mod text;
pub mod tool;
pub mod trace;
pub mod usage;
pub mod workflow;
pub mod workspace;

pub use agent::Agent;
pub use agent_library::{AgentCheck, AgentLibrary, CheckedAgent, FileProblem};
pub use chat::{ChatMessage, Reply, ToolCall, ToolResult};
pub use duration::HumanDuration;
pub use event::{Event, EventKind};
pub use id::{
    AgentName, HandoffId, InvalidId, MessageId, RunId, SessionId, TenantId, ThreadId, ToolCallId, UserId,
};
pub use ledger::LedgerRow;
pub use media::{FileRef, ProducedFile};
pub use message::{Message, Part, Role, Visibility};
pub use model::{Chunk, Model, ModelError, ModelErrorKind, ModelRequest};
pub use money::Usd;
pub use permission::Permission;
pub use remote::{RemoteAgent, RemoteAgents, RemoteError, RemoteErrorKind, RemoteEvent};
pub use rights::Rights;
pub use skill::{SkillFile, SkillHead, SkillOrigin, SkillSource};
pub use store::{Store, StoreError, TenantStore};
pub use sub_agent::SubAgentResult;
pub use tool::{CallContext, Tool, ToolError, ToolOutput, ToolSpec};
pub use trace::TraceParent;
pub use usage::{Tokens, Usage};
pub use workflow::WorkflowGuide;
pub use workspace::{WorkspaceError, WorkspaceFile, Workspaces};
