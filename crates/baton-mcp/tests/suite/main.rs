//! `baton-mcp` against real servers: `@modelcontextprotocol/server-everything` over both transports, and a server of
//! our own that misbehaves on request.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod broken;
mod config;
mod everything;
mod http;
mod lifecycle;
mod support;
