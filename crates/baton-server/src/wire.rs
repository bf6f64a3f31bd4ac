//! What routes send and take, as types: the contract. Everything has a schema, and what comes in refuses unknown fields.

pub mod accepted;
pub mod agent;
pub mod answered;
pub mod approval;
pub mod artifact;
pub mod audit;
pub mod delegation;
pub mod event;
pub mod feedback;
pub mod graph;
pub mod handoff;
pub mod me;
pub mod message;
pub mod page;
pub mod pattern;
pub mod problem;
pub mod run;
pub mod schema;
pub mod send;
pub mod session;
pub mod skill;
pub mod step;
pub mod text;
pub mod thread;
pub mod usage;
