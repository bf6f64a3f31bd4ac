//! Baton over HTTP. What a browser, a program or a gateway talks to.
//!
//! In reading order:
//!
//! - [`app`]: everything a handler needs; [`settings`]: what the operator decides. [`roster`]: the
//!   agents in use.
//! - [`serve`]: connections, from their beginning to the drain at the end.
//! - [`router`]: all routes and the layers around them. [`openapi`] describes them, and what it says about a route is what is
//!   enforced ([`access`]).
//! - [`identity`]: who is asking. [`guards`]: what is refused before anybody looks at it.
//! - [`strict`]: JSON and parameters, or a problem that points at the mistake. [`problem`]: how refusals look;
//!   [`explanation`]: what they mean.
//! - [`routes`]: one file per noun. [`wire`]: what they send and take. [`named`]: agents that callers name.
//! - [`form`]: whether a caller wants to hear of a run as it happens or in the end; [`await_end`] waits for that.
//!   [`prefer`]: whether they want to wait at all.
//! - [`stream`]: what happens in a thread, as it happens, over SSE and WebSocket.
//! - [`ui`]: the web page and its files, for every path that is not the API's.
//! - [`trail`]: who did what. [`metrics`]: how much of everything. [`trace`]: under which id it is found.
//! - [`system`]: what only the binary knows about the store, the models and the MCP servers.

pub mod access;
pub mod app;
pub mod await_end;
pub mod explanation;
pub mod form;
pub mod guards;
pub mod identity;
pub mod metrics;
pub mod named;
pub mod openapi;
pub mod prefer;
pub mod problem;
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

pub use app::{App, Parts};
pub use roster::RosterState;
pub use router::router;
pub use serve::{Drained, ServeError, Server};
pub use settings::Settings;
