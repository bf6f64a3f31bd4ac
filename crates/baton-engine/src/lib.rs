//! What happens when a message arrives. The engine knows only the seams of `baton-core`: models, tools.
//!
//! In reading order:
//!
//! - [`engine`]: what is set up once, and how a run is started and listened to.
//! - [`scope`]: where in a run something happens: its path, its budget, how to tell others about it.
//! - [`session`]: one agent's loop of turns and tools. [`planning`] varies how it goes about its task.
//! - [`turn`]: one model call, with retries and fallbacks. [`calls`]: the tools a turn asked for.
//! - [`budget`]: limits. [`window`]: what still fits into the model. [`answer`]: answers that must be JSON.
//! - [`prompt`], [`models`], [`toolset`]: what an agent is told, who answers, what it may use.
//! - [`ledger`]: what it all cost.
//!
//! A session knows nothing of patterns. There is one loop, and it streams; an answer that is not streamed is the
//! stream collected.

pub mod answer;
pub mod budget;
pub mod calls;
pub mod engine;
pub mod failure;
pub mod ledger;
pub mod models;
pub mod planning;
pub mod prompt;
pub mod scope;
pub mod session;
pub mod toolset;
pub mod turn;
pub mod window;

pub use budget::Limit;
pub use engine::{Approve, Caller, Engine, Finished, Overrides, Patience, Run, RunRequest, Status};
pub use failure::Failure;
pub use models::Models;
