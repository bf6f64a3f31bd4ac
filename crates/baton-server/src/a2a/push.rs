//! Push notification configs: where a client wants to be told about its task.
//!
//! The wire side of the four methods is complete: requests are read, tasks are found, results are written. Configs are not stored and
//! nothing is delivered, so the card says that notifications are not supported and each method answers with that error.

use std::future::{Ready, ready};

use baton_a2a::model::{PushQuery, SendParams, TaskPushConfig};

use super::exchange::Exchange;
use super::failure::{A2aFailure, A2aResult};

/// Whether the card offers push notifications.
pub const SUPPORTED: bool = false;

/// Checks the config that a message carries, before the message is accepted.
pub fn check(params: &SendParams) -> A2aResult<()> {
    match &params.configuration.push {
        Some(_) => Err(A2aFailure::push_not_supported()),
        None => Ok(()),
    }
}

pub fn set(_: &Exchange, _: TaskPushConfig) -> Ready<A2aResult<TaskPushConfig>> {
    ready(Err(A2aFailure::push_not_supported()))
}

pub fn get(_: &Exchange, _: PushQuery) -> Ready<A2aResult<TaskPushConfig>> {
    ready(Err(A2aFailure::push_not_supported()))
}

pub fn list(_: &Exchange, _: PushQuery) -> Ready<A2aResult<Vec<TaskPushConfig>>> {
    ready(Err(A2aFailure::push_not_supported()))
}

pub fn delete(_: &Exchange, _: PushQuery) -> Ready<A2aResult<()>> {
    ready(Err(A2aFailure::push_not_supported()))
}
