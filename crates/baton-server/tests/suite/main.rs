//! The server as its clients see it: over real connections, with a real engine and a real store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod a2a;
mod agents;
mod approvals;
mod artifacts;
mod audit;
mod client;
mod connections;
mod delegations;
mod described;
mod doors;
mod drain;
mod elsewhere;
mod fuzz;
mod guards;
mod handoffs;
mod health;
mod identity;
mod isolation;
mod joining;
mod journey3;
mod limits;
mod made_up;
mod me;
mod observe;
mod openapi;
mod parked;
mod person;
mod roster;
mod runs;
mod site;
mod skills;
mod streams;
mod strictness;
mod system;
mod threads;
mod ui;
mod usage;
mod wire;
