//! Tools of MCP servers, behind the seam [`baton_core::Tool`].
//!
//! In reading order:
//!
//! 1. [`config`] reads `.mcp.json`; [`variables`] fills `${VAR}` in when a server is started, not before.
//! 2. [`servers`] is the handle that everybody else uses: it has one `client` for every tenant, workspace and server.
//!    [`status`] reports their state.
//! 3. A client starts its server when it is first used and again when it has died, with back-off. What is running
//!    is a `connection`: a `process` in its `confinement` that talks through its `stdout`, or a session over `http`.
//! 4. [`tool`] is what a model calls; `content` turns the answer into text.
//!
//! No client is shared between tenants, no process between workspaces, and no process outlives its [`Servers`].

pub mod config;
pub mod error;
pub mod servers;
pub mod status;
pub mod tool;
pub mod variables;

mod client;
mod confinement;
mod connection;
mod content;
mod http;
mod process;
mod stdout;

pub use confinement::McpSandbox;
pub use error::McpError;
pub use servers::{McpSettings, Servers};
pub use status::{ServerState, ServerStatus, Transport};
pub use tool::McpTool;
pub use variables::Environment;
