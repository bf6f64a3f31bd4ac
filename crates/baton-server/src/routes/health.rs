//! Whether the server lives and is ready, and how much it does.

#![allow(unused_qualifications, reason = "the macros of utoipa spell names out")]

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::AuthenticationMode;
use crate::metrics::{CONTENT_TYPE, Now};
use crate::problem::{ApiResult, Code, Problem};
use crate::strict::Params;
use crate::wire::problem::ProblemBody;

/// Answered also on connections beyond the limits.
pub const PATHS: [&str; 3] = ["/livez", "/readyz", "/healthz"];

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(livez))
        .routes(routes!(readyz))
        .routes(routes!(healthz))
        .routes(routes!(version))
        .routes(routes!(metrics))
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    pub status: &'static str,
    /// What was looked at, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Checks>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Checks {
    /// The store answers.
    pub store: &'static str,
    /// Agents that can be asked. Absent if authentication is required, as this route needs no credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub agents: Option<usize>,
    /// Runs that are executed here. Absent if authentication is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub runs_at_work: Option<usize>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Also say what was looked at. Needs no value: `?verbose`.
    verbose: Option<String>,
}

/// The process lives.
#[utoipa::path(get, path = "/livez", tag = "operations", responses((status = 200, body = Health)),
    extensions(("x-permission" = json!("public"))), security(()))]
async fn livez() -> Json<Health> {
    Json(Health { status: "ok", checks: None })
}

/// The server takes requests: it is not about to end, and its store answers.
#[utoipa::path(get, path = "/readyz", tag = "operations", params(Wanted),
    responses((status = 200, body = Health),
        (status = 400, body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, body = ProblemBody, content_type = "application/problem+json")),
    extensions(("x-permission" = json!("public"))), security(()))]
async fn readyz(State(app): State<App>, Params(wanted): Params<Wanted>) -> ApiResult<Json<Health>> {
    if app.is_draining() {
        return Err(Problem::new(Code::Draining, "the server is about to end"));
    }
    app.readiness.check(app.store()).await?;
    let is_open = app.settings.auth.mode == AuthenticationMode::Open;
    let checks = wanted.verbose.map(|_| Checks {
        store: "ok",
        agents: is_open.then(|| app.engine.all_agents().len()),
        runs_at_work: is_open.then(|| app.engine.active_threads()),
    });
    Ok(Json(Health { status: "ready", checks }))
}

/// The same as `/readyz`, where others look for it.
#[utoipa::path(get, path = "/healthz", tag = "operations", params(Wanted),
    responses((status = 200, body = Health),
        (status = 400, body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, body = ProblemBody, content_type = "application/problem+json")),
    extensions(("x-permission" = json!("public"))), security(()))]
async fn healthz(app: State<App>, wanted: Params<Wanted>) -> ApiResult<Json<Health>> {
    readyz(app, wanted).await
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Version {
    pub name: &'static str,
    pub version: &'static str,
}

/// Which Baton this is.
#[utoipa::path(get, path = "/version", tag = "operations", responses((status = 200, body = Version)),
    extensions(("x-permission" = json!("signed-in"))))]
async fn version(State(app): State<App>) -> Json<Version> {
    Json(Version { name: "baton", version: app.version })
}

/// Numbers about the whole server, all tenants together, as `OpenMetrics`.
#[utoipa::path(get, path = "/metrics", tag = "operations",
    responses((status = 200, body = String, content_type = "application/openmetrics-text"),
        (status = 401, body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, body = ProblemBody, content_type = "application/problem+json")),
    extensions(("x-permission" = json!("metrics:read"))))]
async fn metrics(State(app): State<App>) -> ApiResult<Response> {
    let now = Now { version: app.version, at_work: app.engine.active_threads(), store: app.store().load() };
    let text = app.metrics.scrape(now).map_err(|error| Problem::internal(&error))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}
