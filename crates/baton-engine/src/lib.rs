//! The engine executes a run for each message. It depends only on the traits of `baton-core`: models, tools, the store.
//!
//! In reading order:
//!
//! - [`engine`]: configuration and handles. [`request`](mod@request): requests for runs. [`task`]: what a run does with its message.
//!   [`extensions`]: tools and callbacks of the embedding program. [`agents`]: the roster. [`tenants`]: settings of single tenants. [`classifier`]: the agent for a message
//!   that names none.
//! - [`workers`]: accepts messages and runs one worker per thread, known to [`registry`]. [`execute`]: one run from its claim to its
//!   end. [`run_start`] and [`run_end`]: its first and its last record.
//! - [`heartbeat`]: the lease that keeps this process's claims. [`recovery`]: takes over runs whose process is gone.
//!   [`lifecycle`]: retention and erasure. [`export`]: all data of a user.
//! - [`journal`]: stores records and then publishes events. [`listener`]: the waiter of a run. [`live`]: the subscribers of a
//!   thread. [`observer`]: metrics. [`audit`]: audit entries. [`hops`]: passes of the baton.
//! - [`run_state`]: what all parts of a run share. [`scope`]: one agent at one path of a run. [`steps`]: effects that happen once.
//! - [`bounds`]: the limits of a session. [`policy`]: the operator's part of them. [`cancellation`]: what ends it early.
//!   [`invocation`]: enters another agent within the limits.
//! - [`run`](mod@run): an agent and, recursively, the agents it invokes. [`stage`]: the record of one agent's part. [`input`]: what it
//!   works on. [`patterns`]: the ways in which agents invoke each other, a small file each. [`outcome`]: an agent's answer.
//!   [`fence`] and [`redaction`]: what other agents see of a text. [`results`](mod@results): the results of sub-agents.
//!   [`child_timeout`]: time limits of children. [`prior_durations`]: their time before a crash. [`session_info`] and [`recorded`]:
//!   decode stored sessions and steps.
//! - [`handoff`]: an agent takes over a thread by a [`lease`]. [`routing`]: which agent takes a run. [`workflow`]: the states of a
//!   handoff.
//! - [`session`]: one agent's loop of turns and tool calls, and its planning strategies. [`grounding`]: answers need a tool result.
//!   [`guardrails`]: what agents may read and answer, by the checks of [`guard`].
//! - [`turn`]: one model call with retries and fallbacks. [`text_calls`]: tool calls that a model wrote as text. [`tool_calls`]: the
//!   tool calls of a turn. [`engine_tool`]: the engine's own tools. [`output_spool`]: output that is too long for a model.
//! - [`remote`]: sessions of agents on other servers.
//! - [`approvals`]: calls and questions that wait for a person.
//! - [`budget`]: the turns and the time of a session. [`reservation`]: reserves a call in the budgets of money and tokens, whose
//!   [`recounted_accounts`] agree with the ledger. [`window`]: fits a conversation into the model's context.
//!   [`structured_output`]: JSON answers.
//! - [`prompt`], [`models`], [`model_speed`], [`toolset`], [`skillset`]: what a session starts with. [`trial`]: sessions of a draft. [`preview`](mod@preview) shows it.
//! - [`history`]: earlier messages. [`ledger`]: usage and cost. [`telemetry`]: traces, made of [`call_span`]s.
//!
//! Modules do not import each other in circles, with one exception: `run` offers the patterns, and the patterns `run` other agents.
//!
//! A session knows nothing of patterns. There is one loop, and it streams; an answer that is not streamed is the collected
//! stream.

#![allow(rustdoc::private_intra_doc_links, reason = "the map of the crate names its private modules too")]

pub mod agents;
pub mod approvals;
mod audit;
pub mod bounds;
pub mod budget;
mod call_span;
mod cancellation;
mod child_timeout;
pub mod classifier;
mod compile_cache;
pub mod engine;
mod engine_tool;
mod execute;
pub mod export;
pub mod extensions;
pub mod failure;
mod fence;
mod grounding;
mod guard;
mod guardrails;
pub mod handoff;
pub mod heartbeat;
mod history;
mod hops;
mod input;
mod intent;
mod invocation;
mod journal;
mod json;
pub mod learning;
mod lease;
pub mod ledger;
pub mod lifecycle;
mod listener;
pub mod live;
mod model_speed;
pub mod models;
pub mod observer;
pub mod orchestration;
pub mod outcome;
mod output_spool;
mod patterns;
pub mod policy;
pub mod preview;
mod prior_durations;
pub mod prompt;
pub mod recorded;
mod recounted_accounts;
pub mod recovery;
mod redaction;
mod registry;
mod remote;
mod repeated_calls;
pub mod request;
mod reservation;
pub mod results;
mod retry;
pub(crate) mod routing;
mod run;
mod run_end;
mod run_files;
mod run_start;
mod run_state;
pub mod scope;
pub mod session;
pub mod session_info;
mod skillset;
mod stage;
mod steps;
pub mod storage;
mod structured_input;
pub mod structured_output;
pub mod task;
pub mod telemetry;
pub mod tenants;
mod text_calls;
pub mod tool_calls;
pub mod toolset;
mod trial;
pub mod turn;
pub mod window;
pub mod workers;
mod workflow;

pub use agents::Agents;
pub use approvals::{ApprovalSettings, ApprovalTerms, DecideError, DecisionInput, Verdict, check_decision};
pub use bounds::LimitKind;
pub use engine::{Engine, EngineParts, ProcessIdentity, RunHandle};
pub use extensions::{Extensions, TeamHooks, TeamRound, Vote};
pub use failure::Failure;
pub use handoff::{ExitRequest, HandoffResult, HandoffStarted, OnConflict, ReturnStatus, StartHandoff};
pub use heartbeat::HeartbeatConfig;
pub use live::{
    Encodings, Interest, PublishedEvent, Publisher, StreamItem, Subscription, ThreadChannels, ThreadSnapshot,
};
pub use models::{ModelRegistry, ModelTimeouts};
pub use observer::Observer;
pub use orchestration::{DelegationError, HandoffError, OrchestrationError, RunError, delegate, response_of};
pub use outcome::{Answer, Outcome, RunResult};
pub use policy::{EnrichFormat, Policy, Switch};
pub use preview::{Preview, PreviewedSession, Via, placeholder, preview};
pub use registry::WorkerLifetime;
pub use request::{Overrides, PreApproval, RunCaller, RunRequest, SubmitOptions};
pub use results::{results, results_in};
pub use task::{DelegationPlan, HandoffTransition, RunTask};
pub use tenants::{TenantSettings, Tenants};
