//! All data of a user: exported, or erased.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use baton_engine::export;
use futures_util::StreamExt as _;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::Caller;
use crate::problem::{ApiResult, Code, Problem};
use crate::strict::UserPath;
use crate::trace::Trace;
use crate::trail::{self, AuditRecord};
use crate::wire::problem::ProblemBody;
use crate::wire::user::ErasureView;

/// How long a request waits for the erasure it has started.
const ERASURE_WAIT: Duration = Duration::from_secs(20);

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(erase_user)).routes(routes!(export_user))
}

/// Erases a user of the tenant: their threads with all they own, API keys, feedback and files. Their active runs are ended first. Costs
/// are kept under a pseudonym. The request is durable: it is completed even if the server stops.
#[utoipa::path(delete, path = "/api/v1/users/{user_id}", tag = "operations",
    params(("user_id" = String, Path, description = "The id of the user", min_length = 1, max_length = 255)),
    responses((status = 200, body = ErasureView, description = "Nothing is left of the user."),
        (status = 202, body = ErasureView, description = "The erasure continues."),
        (status = 409, body = ProblemBody, content_type = "application/problem+json",
            description = "`conflict`: the caller's own user. Another administrator has to erase it.")),
    extensions(("x-permission" = json!("admin:users"))))]
async fn erase_user(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    UserPath(user): UserPath,
) -> ApiResult<(StatusCode, Json<ErasureView>)> {
    if user == caller.user {
        // The last administrator of a tenant could not be replaced over HTTP, and the entry in the audit trail would have no actor.
        let detail = "you cannot erase your own user: another administrator has to do it";
        return Err(Problem::new(Code::Conflict, detail));
    }
    let audit_record = AuditRecord { action: "user.erase", decision: "requested", ..AuditRecord::default() };
    let entry = audit_record.entry(&caller, Some(&trace));
    let erasure = app.data(&caller).begin_erasure(&user, entry).await?;
    let erasure_id = erasure.erasure_id;
    let erasing = app.engine.erase_in_background(&caller.tenant, erasure);
    let is_done = matches!(tokio::time::timeout(ERASURE_WAIT, erasing).await, Ok(Ok(true)));
    let status = if is_done { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(ErasureView { erasure_id, status: if is_done { "completed" } else { "in_progress" } })))
}

/// All data of a user of the tenant, one JSON object per line, each with a `type`. The last line has the type `end`: without it, the
/// export is incomplete.
#[utoipa::path(get, path = "/api/v1/users/{user_id}/export", tag = "operations",
    params(("user_id" = String, Path, description = "The id of the user", min_length = 1, max_length = 255)),
    responses((status = 200, content_type = "application/x-ndjson", body = String, description = "JSON Lines")),
    extensions(("x-permission" = json!("admin:users"))))]
async fn export_user(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    UserPath(user): UserPath,
) -> ApiResult<Response> {
    let audit_record = AuditRecord {
        action: "user.export",
        decision: "allowed",
        detail: json!({ "user_id": user }),
        ..AuditRecord::default()
    };
    trail::record(&app, &caller, Some(&trace), audit_record).await?;
    let lines =
        export::export(app.data(&caller), app.engine.parts.extensions.workspaces.clone(), user).map(|line| {
            let line = line.inspect_err(|error| tracing::warn!(%error, "an export is cut off"));
            line.map(|line| format!("{line}\n"))
        });
    let mut response = Response::new(Body::from_stream(lines));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
