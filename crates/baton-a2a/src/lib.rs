//! The protocol A2A (`Agent2Agent`), versions 0.3 and 1.0: objects, wire forms and a client, without a server or an engine.
//!
//! One neutral model has three wire forms, because 0.3 writes its objects differently on JSON-RPC and on REST:
//!
//! - [`model`], [`card`], [`error`]: messages, tasks, events, agent cards and errors, without a wire form.
//! - [`wire`]: [`WireForm`], which reads and writes every object. What only one form does is in [`v03`] (JSON Schema of 0.3),
//!   [`v03_rest`] (`ProtoJSON` of 0.3) and [`v10`] (`ProtoJSON` of 1.0).
//! - [`jsonrpc`], [`sse`]: envelope and stream framing, for server and client.
//! - [`extension`]: the handoff and orchestration extension. [`signature`]: signed cards.
//! - [`client`]: agents on other servers, as the engine uses them.
//!
//! Readers tolerate unknown fields, unknown enum values and `snake_case` names. Writers emit `camelCase` only.

pub mod card;
pub mod client;
mod decode;
mod encode;
pub mod error;
pub mod extension;
mod fields;
pub mod jsonrpc;
pub mod model;
mod object;
pub mod signature;
pub mod sse;
pub mod v03;
pub mod v03_rest;
pub mod v10;
pub mod wire;

pub use card::AgentCard;
pub use error::{A2aError, ErrorCode, Invalid};
pub use model::{Message, Part, SendParams, StreamItem, Task, TaskState};
pub use wire::WireForm;
