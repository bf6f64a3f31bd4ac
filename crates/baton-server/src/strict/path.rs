//! Ids in paths.

use axum::extract::{FromRequestParts, RawPathParams};
use baton_core::{HandoffId, RunId, ThreadId, UserId};
use http::request::Parts;

use crate::problem::{Code, Problem};

/// What stands in a path for `name`, or for its only parameter, whatever that is called. `None` when it is no text.
async fn part<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Option<String> {
    let params = RawPathParams::from_request_parts(parts, state).await.ok()?;
    let named = params.iter().find(|(known, _)| *known == name);
    named.or_else(|| params.iter().next()).map(|(_, text)| text.to_owned())
}

/// `{thread_id}`.
#[derive(Debug, Clone, Copy)]
pub struct ThreadPath(pub ThreadId);

impl<S: Send + Sync> FromRequestParts<S> for ThreadPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = part(parts, state, "thread_id").await.unwrap_or_default();
        let invalid = |error: baton_core::InvalidId| {
            Problem::new(Code::InvalidThreadId, super::shortened(error.to_string()))
                .at("thread_id", "a UUID version 4")
        };
        ThreadId::parse(&text).map(Self).map_err(invalid)
    }
}

/// `{tool}`, the name of a tool.
#[derive(Debug, Clone)]
pub struct ToolPath(pub String);

impl<S: Send + Sync> FromRequestParts<S> for ToolPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(part(parts, state, "tool").await.unwrap_or_default()))
    }
}

/// `{run_id}`. What is no id names no run.
#[derive(Debug, Clone, Copy)]
pub struct RunPath(pub RunId);

impl<S: Send + Sync> FromRequestParts<S> for RunPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = part(parts, state, "run_id").await.unwrap_or_default();
        RunId::parse(&text).map(Self).map_err(|_| Problem::not_found("run"))
    }
}

/// `{handoff_id}`. What is no id names no handoff.
#[derive(Debug, Clone, Copy)]
pub struct HandoffPath(pub HandoffId);

impl<S: Send + Sync> FromRequestParts<S> for HandoffPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = part(parts, state, "handoff_id").await.unwrap_or_default();
        HandoffId::parse(&text).map(Self).map_err(|_| Problem::not_found("handoff"))
    }
}

/// `{user_id}`.
#[derive(Debug, Clone)]
pub struct UserPath(pub UserId);

impl<S: Send + Sync> FromRequestParts<S> for UserPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = part(parts, state, "user_id").await.unwrap_or_default();
        let invalid = |error: baton_core::InvalidId| {
            let detail = super::shortened(error.to_string());
            Problem::new(Code::InvalidRequest, detail.clone()).at("user_id", detail)
        };
        UserId::parse(&text).map(Self).map_err(invalid)
    }
}
