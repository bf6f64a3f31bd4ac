//! The one projection of Baton's events: AG-UI 1.0, the wire vocabulary of SSE, WebSocket and the command line.
//!
//! - [`wire`]: the events and messages as clients read them. Optional fields are absent, never null: a null aborts the client.
//! - [`faces`]: how agents are called and drawn in front of people.
//! - [`projection`]: what has happened in the thread becomes those events, in the order clients insist on.

pub mod faces;
pub mod projection;
pub mod wire;

pub use faces::{Face, Faces};
pub use projection::{Detail, Piece, Projection};
pub use wire::{AguiEvent, AguiMessage, Body};
