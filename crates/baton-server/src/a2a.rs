//! The A2A protocol (0.3 and 1.0): agents of this server as tasks, messages and artifacts.
//!
//! A task is a run, and a context is a thread; nothing else is stored. [`routes`] lists the paths. [`rpc`] and [`rest`] read a request
//! of their transport and call [`service`], which knows neither.
//!
//! - [`exchange`]: who asks whom, and in which wire form. [`failure`]: errors of the protocol and of HTTP.
//! - [`context`]: context ids and thread ids. [`chain`]: the runs of a task. [`tasks`]: a task from its runs.
//! - [`parts`]: parts of messages in both directions. [`replies`]: a message that answers what a task waits for.
//! - [`stream`], [`projection`]: updates of a task as they happen.
//! - [`handoff`]: the extension by which a thread is handed over. [`cards`], [`skills`]: agent cards. [`push`]: notifications.

mod cards;
mod chain;
mod context;
mod exchange;
mod failure;
mod handoff;
mod listing;
mod parts;
mod projection;
pub mod push;
mod replies;
mod rest;
mod routes;
mod rpc;
mod sending;
mod service;
pub mod settings;
mod skills;
mod stream;
mod tasks;

use axum::body::Body;
use axum::extract::Request;
use http_body_util::BodyExt as _;

pub use cards::native_card;
pub use routes::routes;

/// The request, if it cancels a task. Its body must be in memory.
pub async fn only_cancel(request: Request) -> Option<Request> {
    if request.uri().path().ends_with(":cancel") {
        return Some(request);
    }
    let (parts, body) = request.into_parts();
    let body = body.collect().await.ok()?.to_bytes();
    rpc::is_cancel(&body).then(|| Request::from_parts(parts, Body::from(body)))
}
