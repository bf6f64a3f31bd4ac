//! Baton runs teams of LLM agents as one service.
//!
//! This crate is what programs depend on and what the `baton` command is made of:
//!
//! - [`config`]: `baton.toml`, the environment, and the defaults under both.
//! - [`project`]: a folder with agents and its configuration, ready to be loaded.
//! - [`entry`]: who answers first. [`tenants`]: whether the sections of tenants fit the agents.
//! - [`agent_catalog`]: agents that people of a tenant created, beside those of files.
//! - [`wiring`]: the engine with its models and tools, as the configuration says; [`serving`]: the same for the server.
//! - [`cli`]: the command line; one file per command in [`commands`]. [`report`] and [`progress`] are what people see.
//! - [`identity`]: who this process is among those that share a store.
//! - [`logs`]: what is logged, without secrets and addresses. [`telemetry`]: traces for a collector.
//! - [`exit`]: what a command's exit code means.
//! - [`testing`]: a scripted model, to test agents without a provider.
//!
//! A program that wants only the agents of a project:
//!
//! ```no_run
//! use baton::project::Project;
//!
//! let project = Project::open("my-team".as_ref(), None, &[])?;
//! let roster = project.draft().finish()?;
//! for agent in roster.iter() {
//!     println!("{}: {}", agent.name, agent.description);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A program that lets agents work together gets errors by family: [`HandoffError`], [`DelegationError`] and [`RunError`], all of them
//! [`OrchestrationError`]s with a stable code. [`orchestration`] has the operations.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use baton::engine::{DelegationPlan, Engine, RunRequest, delegate, response_of};
//! use baton::OrchestrationError;
//!
//! async fn ask(engine: &Arc<Engine>, request: RunRequest, plan: DelegationPlan) -> Result<(), OrchestrationError> {
//!     for result in delegate(engine, request, plan).await? {
//!         match response_of(result) {
//!             Ok(response) => println!("{response}"),
//!             Err(error) if error.code() == "timeout" => println!("too slow: {error}"),
//!             Err(error) => return Err(error.into()),
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Agent files are read by [`agents`], and the words for everything are in [`core`].

pub mod agent_catalog;
pub mod cli;
pub mod commands;
pub mod config;
mod confinement;
pub mod entry;
pub mod exit;
pub mod identity;
pub mod logs;
pub mod progress;
pub mod project;
pub mod push;
pub mod report;
pub mod serving;
pub mod telemetry;
pub mod tenants;
pub mod testing;
pub mod webhook;
pub mod wiring;

pub use baton_agents as agents;
pub use baton_core as core;
pub use baton_engine as engine;
pub use baton_engine::orchestration::{self, DelegationError, HandoffError, OrchestrationError, RunError};
