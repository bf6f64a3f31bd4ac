//! Projects Baton's events to AG-UI 1.0, the wire format of SSE, WebSocket and the command line.
//!
//! - [`wire`]: events and messages as clients read them. Optional fields are absent, never null, because a null aborts the
//!   client.
//! - [`profiles`]: names and colors of agents.
//! - [`projection`]: turns the events of a thread into AG-UI events, in the order that clients require.

pub mod profiles;
pub mod projection;
pub mod wire;

pub use profiles::{AgentProfile, AgentProfiles};
pub use projection::{Detail, Projection, TextDelta};
pub use wire::{AguiEvent, AguiMessage, EventBody, EventWriter};
