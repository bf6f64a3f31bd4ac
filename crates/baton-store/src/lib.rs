//! [`Store`](baton_core::Store) on SQLite and PostgreSQL.
//!
//! In reading order:
//!
//! - [`open`]: opens a store by URL and migrates its schema.
//! - [`tx`]: one transaction of one tenant. All SQL goes through it, and `$1` of every statement is the tenant.
//! - [`threads`], [`runs`], [`work`], …: the operations, one module per noun, written once for both databases.
//! - [`job`]: work for a transaction. [`sqlite`] and [`postgres`] batch queued jobs into one transaction and reply after it
//!   commits.
//! - [`journal`]: what an append recorded, as one row. [`insert`]: inserts into many tables at once. [`closing`]: writes deferred to the commit. [`meter`]: counters.
//! - [`pending`]: rows that a transaction of SQLite inserts together. [`once`]: texts stored once. [`page`]: pagination. [`value`]: parameters and rows.
//! - [`migrate`]: the schema and its versions. [`system`]: queries across tenants.
//! - [`lifecycle`]: retention and erasure. [`sweep`]: data that expires by itself. [`backup`]: a copy of a SQLite file.
//! - [`conformance`]: tests that every store must pass; public, so that other stores can run them.

#![allow(rustdoc::private_intra_doc_links, reason = "the map of the crate names its private modules too")]

mod approvals;
mod artifacts;
mod audit;
mod backup;
mod budgets;
mod cache;
mod closing;
pub mod conformance;
mod created_agents;
mod embeddings;
mod feedback;
mod handoffs;
mod insert;
mod job;
mod journal;
mod keys;
mod lifecycle;
mod meter;
mod migrate;
mod notifications;
mod once;
mod open;
mod outputs;
mod page;
mod patterns;
mod pending;
mod postgres;
mod push;
mod runs;
mod skills;
mod sqlite;
mod sweep;
mod system;
mod tenant;
mod threads;
mod tx;
mod usage;
mod value;
mod work;

pub use audit::keys::{AuditKeys, InvalidAuditKey};
pub use backup::backup;
pub use migrate::MIGRATIONS;
pub use open::{Database, files, open, open_signed};
