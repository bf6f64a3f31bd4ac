//! What happens when a message arrives. The engine knows only the seams of `baton-core`: models, tools, the store.
//!
//! In reading order:
//!
//! - [`engine`]: what is set up once, and how a run is started and listened to. [`task`]: what it is to do.
//! - [`entry`]: who answers first when nobody was named.
//! - [`workers`]: a message is accepted, its thread gets a worker. [`execute`]: one run from its claim to its
//!   end, [`beginning`] and [`ending`]: the first and the last record of it.
//! - [`recovery`]: runs whose process is gone. [`lease`]: staying the one who works on a run.
//! - [`journal`]: what a run writes down before anybody hears of it; [`listener`]: who waits for a run;
//!   [`live`]: who hears of a thread; [`observer`]: who counts. [`steps`]: effects that happen once. [`audit`]: who did what.
//! - [`scope`]: where in a run something happens: its path, its budget, how to tell others about it.
//! - [`run`](mod@run): the walk: an agent and, recursively, whoever it involves. [`stage`]: one agent's part in it as it is written
//!   down. [`patterns`] says how agents involve each other, each in a small file over the same walk. [`bounds`] keeps it finite, [`policy`] is what the operator allows, [`outcome`] what it comes to,
//!   [`children`] ends those that are late, [`spent`] knows what time they had taken before a crash, [`results`](mod@results) what
//!   each brought. [`who`]: whose part it was, [`recorded`]: what its steps recorded.
//! - [`session`]: one agent's loop of turns and tools. [`planning`] varies how it goes about its task.
//! - [`turn`]: one model call, with retries and fallbacks. [`calls`]: the tools a turn asked for, [`given`]: those
//!   that the engine itself gives.
//! - [`budget`]: limits. [`window`]: what still fits into the model. [`answer`]: answers that must be JSON.
//! - [`prompt`], [`models`], [`toolset`], [`skillset`]: what an agent is told, who answers, what it may use, what it can learn.
//!   [`preview`](mod@preview) shows it.
//! - [`history`]: what was said before. [`ledger`]: what it all cost. [`telemetry`]: what traces say about it.
//!
//! A session knows nothing of patterns. There is one loop, and it streams; an answer that is not streamed is the
//! stream collected.

#![allow(rustdoc::private_intra_doc_links, reason = "the map of the crate names its private modules too")]

mod again;
pub mod answer;
mod audit;
mod beginning;
pub mod bounds;
pub mod budget;
pub mod calls;
mod children;
mod compiled;
mod ending;
pub mod engine;
pub mod entry;
mod execute;
pub mod failure;
mod given;
pub mod handoff;
mod history;
mod journal;
pub mod lease;
pub mod ledger;
mod listener;
pub mod live;
pub mod models;
pub mod observer;
pub mod outcome;
mod patterns;
pub mod planning;
pub mod policy;
pub mod preview;
pub mod prompt;
pub mod recorded;
pub mod recovery;
pub mod results;
mod run;
pub mod scope;
pub mod session;
mod skillset;
mod spent;
mod stage;
mod steps;
pub mod task;
pub mod telemetry;
pub mod toolset;
pub mod turn;
pub mod who;
pub mod window;
pub mod workers;
mod workflow;

pub use budget::Limit;
pub use engine::{
    Agents, Approve, Caller, Engine, Finished, Identity, Overrides, Parts, Patience, Run, RunRequest, Terms,
};
pub use failure::Failure;
pub use handoff::{HandoffRequest, Leaving, OnConflict, ReturnStatus, Returned, Started};
pub use lease::LeaseTimes;
pub use live::{Encodings, Interest, Live, Published, Publisher, StreamItem, Subscription, ThreadSnapshot};
pub use models::Models;
pub use observer::Observer;
pub use outcome::Outcome;
pub use patterns::team::hooks::{TeamHooks, TeamRound};
pub use patterns::team::votes::Vote;
pub use policy::{EnrichFormat, Policy, Switch};
pub use preview::{Asked, Preview, Via, placeholder, preview};
pub use results::{results, results_in};
pub use task::{Change, Delegation, Task};
pub use workers::Stays;
