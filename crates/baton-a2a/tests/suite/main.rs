//! Every object in every wire form: written and read again, checked against the schema of 0.3, and read in the variants of
//! official clients.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod card;
mod client;
mod errors;
mod extension;
mod jsonrpc;
mod objects;
mod requests;
mod roundtrip;
mod schema;
mod sse;
