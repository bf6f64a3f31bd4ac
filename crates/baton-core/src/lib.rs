//! Baton's vocabulary: the same words in agent files, code, API, UI and docs.
//!
//! In reading order:
//!
//! - [`id`]: who and what is meant. Every id is a type of its own and is checked once, when it is made.
//! - [`agent`]: an agent as its file defines it, every key with a meaning instead of a string.
//! - [`message`]: what people and agents say to each other.
//! - [`event`]: one thing that happened in a thread. [`sub_agent`]: what somebody brought who worked for others.
//! - [`chat`]: a session's conversation as a model sees it.
//! - [`model`], [`tool`], [`skill`]: the seams to language models, tools and Agent Skills. Adapters implement them, the engine
//!   calls them.
//! - [`store`]: the seam to what survives a crash, one tenant at a time.
//! - [`usage`], [`money`], [`ledger`]: what a call consumed, what that cost, and the row that says so.
//! - [`permission`], [`rights`]: what a caller may do.
//! - [`sanitize`](mod@sanitize): texts without secrets, addresses and card numbers, for other agents and for logs.
//! - [`trace`]: the id under which everything about a request is found.
//! - [`duration`]: durations as people write them (`500ms`, `30s`, `5m`).
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
//! This crate reads no network, database, file, environment variable or clock. Whoever needs the time
//! passes it in.

pub mod agent;
pub mod chat;
pub mod choice;
pub mod duration;
pub mod event;
pub mod id;
pub mod ledger;
pub mod message;
pub mod model;
pub mod money;
pub mod permission;
pub mod rights;
pub mod sanitize;
pub mod skill;
pub mod store;
pub mod sub_agent;
pub mod tool;
pub mod trace;
pub mod usage;

pub use agent::Agent;
pub use chat::{ChatMessage, Reply, ToolCall, ToolResult};
pub use duration::HumanDuration;
pub use event::{Event, EventKind};
pub use id::{
    AgentName, HandoffId, InvalidId, MessageId, RunId, SessionId, TenantId, ThreadId, ToolCallId, UserId,
};
pub use ledger::LedgerRow;
pub use message::{Message, Part, Role, Visibility};
pub use model::{Chunk, Model, ModelError, ModelErrorKind, ModelRequest};
pub use money::Usd;
pub use permission::Permission;
pub use rights::Rights;
pub use sanitize::{Mask, sanitize, sanitize_value};
pub use skill::{SkillFile, SkillHead, SkillOrigin, SkillSource};
pub use store::{Store, StoreError, TenantStore};
pub use sub_agent::SubAgentResult;
pub use tool::{CallContext, Tool, ToolError, ToolOutput, ToolSpec};
pub use trace::TraceParent;
pub use usage::{Tokens, Usage};
