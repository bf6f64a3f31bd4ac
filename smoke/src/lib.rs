//! `make smoke`: tries the bundled agents and the examples with a language model behind an OpenAI-compatible endpoint, through
//! `baton serve` and its HTTP API. All checks are deterministic; no model judges another one.
//!
//! - [`options`]: the command line. [`cases`]: the cases, read from TOML files, one file per group.
//! - [`project`]: the temporary project of a case. [`server`]: its `baton serve` process. [`endpoint`]: the model.
//! - [`conversation`]: sends the messages of a case with [`api`] and collects an [`observation`]. [`check`]: compares it with what
//!   the case expects.
//! - [`suite`]: runs all cases of a variant. [`report`]: its results, stored as JSON. [`table`]: the results as text.
//!
//! docs/models.md explains how to use it.

pub mod api;
pub mod cases;
pub mod check;
pub mod conversation;
pub mod endpoint;
pub mod observation;
pub mod options;
pub mod project;
pub mod report;
pub mod server;
pub mod suite;
pub mod table;

pub use options::Options;
pub use report::Report;
pub use suite::run;
