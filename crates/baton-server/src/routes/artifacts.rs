//! Files that people sent or agents made.

mod form;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use baton_core::StoreError;
use baton_core::store::Artifact;
use data_encoding::HEXLOWER;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use self::form::Upload;
use super::threads::visible;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::{ApiResult, Problem};
use crate::strict::ThreadPath;
use crate::trace::Trace;
use crate::trail::{self, AuditRecord};
use crate::wire::artifact::{self, ArtifactForm, ArtifactView, Contents};
use crate::wire::page::Listed;
use crate::wire::problem::ProblemBody;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create_artifact))
        .routes(routes!(download_artifact))
        .routes(routes!(list_artifacts))
}

/// Sends a file into a thread of the caller, which begins if there is none. Messages refer to it by its `uri`.
#[utoipa::path(post, path = "/api/v1/artifacts", tag = "artifacts",
    request_body(content = ArtifactForm, content_type = "multipart/form-data"),
    responses((status = 201, body = ArtifactView, headers(("Location" = String, description = "Its `uri`."))),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: the thread belongs to another user."),
        (status = 415, body = ProblemBody, content_type = "application/problem+json",
            description = "`unsupported_media_type`: the body is not `multipart/form-data`.")),
    extensions(("x-permission" = json!("thread:write")), ("x-work" = json!("upload"))))]
async fn create_artifact(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    upload: Upload,
) -> ApiResult<(StatusCode, [(HeaderName, String); 1], Json<ArtifactView>)> {
    let artifact = Artifact {
        artifact_id: Uuid::now_v7(),
        thread_id: upload.thread_id,
        run_id: None,
        name: upload.name,
        media_type: upload.media_type,
        size: upload.bytes.len() as u64,
        created_at: Timestamp::now(),
    };
    app.engine.check_storage(&caller.tenant, &caller.user, artifact.size).await?;
    let audit_record = AuditRecord {
        action: "artifact.create",
        thread_id: Some(artifact.thread_id),
        decision: "allowed",
        detail: json!({ "artifact_id": artifact.artifact_id, "name": artifact.name, "size": artifact.size }),
        ..AuditRecord::default()
    };
    let data = trail::audited(&app, &caller, &trace, audit_record);
    data.put_artifact(artifact.clone(), Some(&caller.user), upload.bytes).await?;
    let location = artifact::uri(artifact.artifact_id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(artifact.into())))
}

/// The files of a thread, the newest first, without their bytes.
#[utoipa::path(get, path = "/api/v1/threads/{thread_id}/artifacts", tag = "artifacts",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4")),
    responses((status = 200, body = Listed<ArtifactView>),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user.")),
    extensions(("x-permission" = json!("thread:read"))))]
async fn list_artifacts(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(thread_id): ThreadPath,
) -> ApiResult<Json<Listed<ArtifactView>>> {
    visible(&app, &caller, thread_id).await?;
    let found = app.data(&caller).artifacts(thread_id).await?;
    Ok(Json(Listed::whole(found.into_iter().map(Into::into).collect())))
}

/// The file itself. It is always something to save and never something to open here, whatever it says that it is.
#[utoipa::path(get, path = "/api/v1/artifacts/{artifact_id}", tag = "artifacts",
    params(("artifact_id" = uuid::Uuid, Path, description = "The id of the artifact"),
        ("If-None-Match" = Option<String>, Header, description = "`ETag` of the bytes that the caller has")),
    responses((status = 200, content_type = "*/*", body = inline(Contents), description = "Its bytes, with the media type that it was stored with.",
            headers(("ETag" = String), ("Content-Disposition" = String))),
        (status = 304, description = "The caller has it already."),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`not_found`: there is no such artifact, or it belongs to another user.")),
    extensions(("x-permission" = json!("thread:read"))))]
async fn download_artifact(
    State(app): State<App>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let id = id.ok().and_then(|Path(text)| Uuid::try_parse(&text).ok()).ok_or_else(missing)?;
    let data = app.data(&caller);
    let (artifact, bytes) = data.artifact(id).await.map_err(gone)?;
    trail::visible(&app, &caller, artifact.thread_id).await.map_err(gone)?;
    let tag = tag(&bytes);
    let is_known = has(&headers, &tag);
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(bytes) });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let kind =
        if artifact::is_loaded_by_pages(&artifact.media_type) { "text/plain" } else { &artifact.media_type };
    describe(response.headers_mut(), kind, &artifact.name);
    response.headers_mut().extend(HeaderValue::from_str(&tag).ok().map(|tag| (ETAG, tag)));
    Ok(response)
}

fn missing() -> Problem {
    Problem::not_found("artifact")
}

fn gone(error: StoreError) -> Problem {
    match error {
        StoreError::NotFound(_) | StoreError::ThreadNotFound => missing(),
        other => other.into(),
    }
}

/// Says that a file is to be saved under this name, and that no browser opens or runs it.
pub(super) fn describe(headers: &mut HeaderMap, kind: &str, name: &str) {
    let text = |text: &str| HeaderValue::from_str(text).ok();
    let kind = text(kind).unwrap_or(HeaderValue::from_static(artifact::ANY));
    headers.insert(CONTENT_TYPE, kind);
    let disposition = format!("attachment; filename*=UTF-8''{}", encoded(name));
    let disposition = text(&disposition).unwrap_or(HeaderValue::from_static("attachment"));
    headers.insert(CONTENT_DISPOSITION, disposition);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private"));
}

/// RFC 8187: everything but letters, digits and a few marks as its bytes.
fn encoded(name: &str) -> String {
    let byte = |b: u8| match b {
        b if b.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&b) => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    name.bytes().map(byte).collect()
}

fn tag(bytes: &[u8]) -> String {
    format!("\"{}\"", HEXLOWER.encode(&Sha256::digest(bytes)))
}

/// Whether the caller says that it has these bytes.
fn has(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut known = known.flat_map(|value| value.split(',')).map(str::trim);
    known.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}
