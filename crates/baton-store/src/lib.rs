//! What survives: [`Store`](baton_core::Store) on SQLite and on PostgreSQL.
//!
//! In reading order:
//!
//! - [`open`]: from an address to a store, its schema brought up to date.
//! - [`tx`]: one transaction in one tenant. All SQL goes through it, and `$1` of every statement is the tenant.
//! - [`threads`], [`runs`], [`work`], …: what can be done, a file per noun, written once for both databases.
//! - [`job`]: work for a transaction. [`sqlite`] and [`postgres`] put waiting jobs into one transaction and answer them all
//!   when it has committed. [`insert`]: rows of many tables at once. [`closing`]: what is left to its end. [`meter`] counts.
//! - [`once`]: texts that are stored once. [`page`]: lists in pieces. [`value`]: what goes into a statement and comes out of it.
//! - [`migrate`]: the schema and its versions. [`system`]: the few questions that concern all tenants.
//! - [`conformance`]: what every store has to pass; public, so that another one can be tested the same way.

#![allow(rustdoc::private_intra_doc_links, reason = "the map of the crate names its private modules too")]

mod approvals;
mod artifacts;
mod audit;
mod cache;
mod closing;
pub mod conformance;
mod feedback;
mod handoffs;
mod insert;
mod job;
mod keys;
mod meter;
mod migrate;
mod once;
mod open;
mod page;
mod patterns;
mod postgres;
mod runs;
mod sqlite;
mod sweep;
mod system;
mod tenant;
mod threads;
mod tx;
mod usage;
mod value;
mod work;

pub use open::{Database, files, open};
