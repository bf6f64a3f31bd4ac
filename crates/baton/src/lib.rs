//! Baton runs teams of LLM agents as one service.
//!
//! This crate is what programs depend on and what the `baton` command is made of:
//!
//! - [`config`]: `baton.toml`, the environment, and the defaults under both.
//! - [`project`]: a folder with agents and its configuration, ready to be loaded.
//! - [`cli`]: the command line; one file per command in [`commands`].
//! - [`exit`]: what a command's exit code means.
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
