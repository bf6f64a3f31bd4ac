//! The engine executes a run for each message. It depends only on the traits of `baton-core`: models, tools, the store.
//!
//! In reading order:
//!
//! - [`engine`]: configuration, requests and handles. [`task`]: what a run does with its message. [`classifier`]: the agent for a
//!   message that names none.
//! - [`workers`]: accepts messages and runs one worker per thread. [`execute`]: one run from its claim to its end. [`run_start`]
//!   and [`run_end`]: its first and its last record.
//! - [`heartbeat`]: the lease that keeps this process's claims. [`recovery`]: takes over runs whose process is gone.
//! - [`journal`]: stores records and then publishes events. [`listener`]: the waiter of a run. [`live`]: the subscribers of a
//!   thread. [`observer`]: metrics. [`steps`]: effects that happen once. [`audit`]: audit entries.
//! - [`scope`]: one agent at one path of a run. [`bounds`] limits it, [`policy`] is the operator's part of the limits.
//! - [`run`](mod@run): an agent and, recursively, the agents it invokes. [`stage`]: one agent's part and its record.
//!   [`patterns`]: the ways in which agents invoke each other, a small file each. [`outcome`]: an agent's answer.
//!   [`results`](mod@results): the results of sub-agents. [`child_timeout`]: time limits of children. [`prior_durations`]: their
//!   time before a crash. [`session_info`] and [`recorded`]: decode stored sessions and steps.
//! - [`handoff`]: an agent takes over a thread. [`routing`]: which agent takes a run. [`workflow`]: the states of a handoff.
//! - [`session`]: one agent's loop of turns and tool calls. [`planning`]: variations of it. [`grounding`]: answers need a tool
//!   result.
//! - [`turn`]: one model call with retries and fallbacks. [`text_calls`]: tool calls that a model wrote as text. [`tool_calls`]: the
//!   tool calls of a turn. [`engine_tool`]: the engine's own tools. [`output_spool`]: output that is too long for a model.
//! - [`budget`]: the limits of a session. [`window`]: fits a conversation into the model's context. [`structured_output`]: JSON
//!   answers.
//! - [`prompt`], [`models`], [`model_speed`], [`toolset`], [`skillset`]: what a session starts with. [`preview`](mod@preview) shows it.
//! - [`history`]: earlier messages. [`ledger`]: usage and cost. [`telemetry`]: traces.
//!
//! A session knows nothing of patterns. There is one loop, and it streams; an answer that is not streamed is the collected
//! stream.

#![allow(rustdoc::private_intra_doc_links, reason = "the map of the crate names its private modules too")]

mod audit;
pub mod bounds;
pub mod budget;
mod child_timeout;
pub mod classifier;
mod compile_cache;
pub mod engine;
mod engine_tool;
mod execute;
pub mod failure;
mod grounding;
pub mod handoff;
pub mod heartbeat;
mod history;
mod intent;
mod journal;
mod json;
pub mod ledger;
mod listener;
pub mod live;
mod model_speed;
pub mod models;
pub mod observer;
pub mod outcome;
mod output_spool;
mod patterns;
pub mod planning;
pub mod policy;
pub mod preview;
mod prior_durations;
pub mod prompt;
pub mod recorded;
pub mod recovery;
pub mod results;
mod retry;
pub(crate) mod routing;
mod run;
mod run_end;
mod run_start;
pub mod scope;
pub mod session;
pub mod session_info;
mod skillset;
mod stage;
mod steps;
pub mod structured_output;
pub mod task;
pub mod telemetry;
mod text_calls;
pub mod tool_calls;
pub mod toolset;
pub mod turn;
pub mod window;
pub mod workers;
mod workflow;

pub use budget::LimitKind;
pub use engine::{
    Agents, Engine, EngineParts, ModelTimeouts, Overrides, PreApproval, ProcessIdentity, RunCaller,
    RunHandle, RunRequest, RunResult, SubmitOptions,
};
pub use failure::Failure;
pub use handoff::{ExitRequest, HandoffResult, HandoffStarted, OnConflict, ReturnStatus, StartHandoff};
pub use heartbeat::HeartbeatConfig;
pub use live::{
    Encodings, Interest, PublishedEvent, Publisher, StreamItem, Subscription, ThreadChannels, ThreadSnapshot,
};
pub use models::ModelRegistry;
pub use observer::Observer;
pub use outcome::Outcome;
pub use patterns::team::hooks::{TeamHooks, TeamRound};
pub use patterns::team::votes::Vote;
pub use policy::{EnrichFormat, Policy, Switch};
pub use preview::{Preview, PreviewedSession, Via, placeholder, preview};
pub use results::{results, results_in};
pub use task::{DelegationPlan, HandoffTransition, RunTask};
pub use workers::WorkerLifetime;
