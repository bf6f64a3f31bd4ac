//! Baton runs teams of LLM agents as one service.
//!
//! This crate is what programs depend on and what the `baton` command is made of:
//!
//! - [`config`]: `baton.toml`, the environment, and the defaults under both.
//! - [`project`]: a folder with agents and its configuration, ready to be loaded.
//! - [`cli`]: the command line; one file per command in [`commands`].
//! - [`exit`]: what a command's exit code means.
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
//! Agent files are read by [`agents`], and the words for everything are in [`core`].

pub mod cli;
pub mod commands;
pub mod config;
pub mod exit;
pub mod project;
pub mod report;

pub use baton_agents as agents;
pub use baton_core as core;
