//! What both databases promise, tested on real ones. `make test` starts a PostgreSQL for it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod audit;
mod conformance;
mod cost;
mod faults;
mod groups;
mod isolation;
mod locks;
mod lost_answers;
mod restart;
mod rows;
mod servers;
mod starting;
mod statements;
mod support;
mod tenants;
mod tls;
