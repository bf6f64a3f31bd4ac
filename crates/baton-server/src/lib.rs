//! Baton's HTTP server.
//!
//! In reading order:
//!
//! - [`app`]: state shared by all handlers; [`settings`]: the operator's configuration. [`roster`]: the agents in use.
//! - [`serve`]: connections, from accept to drain.
//! - [`router`]: all routes and their layers. [`openapi`] documents them, and the documented requirements are enforced
//!   ([`access`]).
//! - [`client_address`]: where a request comes from, also through proxies.
//! - [`identity`]: authentication. [`guards`]: checks that run before any handler.
//! - [`strict`]: extractors for JSON and parameters that point at the mistake. [`problem`]: error responses; [`explanation`]:
//!   their documentation.
//! - [`routes`]: one module per noun. [`wire`]: their request and response types. [`named`]: lookup of agents by name.
//! - [`response_format`]: whether a run is answered with a stream or a document; [`await_end`] waits for the latter.
//!   [`prefer`]: whether the caller waits at all.
//! - [`stream`]: live events of a thread over SSE and WebSocket.
//! - [`ui`]: the web UI, on every path outside the API.
//! - [`readiness`]: the cached health of the store. [`trail`]: audit records. [`metrics`]: Prometheus metrics. [`trace`]: trace ids.
//! - [`system`]: facts about the store, the models and the MCP servers that only the binary knows.

pub mod a2a;
pub mod access;
pub mod app;
pub mod await_end;
pub mod client_address;
pub mod explanation;
pub mod guards;
pub mod identity;
pub mod metrics;
pub mod named;
pub mod openapi;
pub mod prefer;
pub mod problem;
pub mod readiness;
pub mod response_format;
pub mod roster;
pub mod router;
pub mod routes;
pub mod serve;
pub mod settings;
pub mod stream;
pub mod strict;
pub mod system;
pub mod trace;
pub mod trail;
pub mod ui;
pub mod wire;

pub use app::{App, CreatedRoster, ServerParts, TenantRosters};
pub use roster::RosterState;
pub use router::router;
pub use serve::{Drained, ServeError, Server};
pub use settings::ServerSettings;
