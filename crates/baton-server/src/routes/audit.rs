//! Who did what, and whether the record of it is complete.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_core::store::{AuditQuery, AuditScope, AuditVerdict, Audited, Page, PageRequest};
use baton_core::{StoreError, TenantId, TenantStore};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::header;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::Caller;
use crate::identity::roles::SYSTEM_READ;
use crate::problem::ApiResult;
use crate::strict::Params;
use crate::trace::Trace;
use crate::trail;
use crate::wire::audit::{AuditParams, AuditView, ExportParams, Trail, VerdictBody, VerifyParams};
use crate::wire::page::{self, Listed};

const JSON_LINES: &str = "application/x-ndjson";

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_audit))
        .routes(routes!(export_audit))
        .routes(routes!(verify_audit))
}

/// The audit trail of the tenant, the oldest entry first unless `order` says otherwise.
#[utoipa::path(get, path = "/api/v1/audit", tag = "insight", params(AuditParams),
    responses((status = 200, body = Listed<AuditView>)),
    extensions(("x-permission" = json!("audit:read"))))]
async fn list_audit(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    Params(params): Params<AuditParams>,
) -> ApiResult<Json<Listed<AuditView>>> {
    let data = data(&app, &caller, &trace, params.trail, "/api/v1/audit").await?;
    let query = params.query();
    let found = data.audit(query, page::request(params.limit, params.cursor)).await?;
    Ok(Json(Listed::of(found, |entry| AuditView::of(data.tenant(), entry))))
}

/// All entries of a time as JSON Lines, the oldest first. A response that breaks off has no final chunk.
#[utoipa::path(get, path = "/api/v1/audit/export", tag = "insight", params(ExportParams),
    responses((status = 200, body = AuditView, content_type = "application/x-ndjson",
        description = "An entry in each line.")),
    extensions(("x-permission" = json!("audit:read"))))]
async fn export_audit(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    Params(params): Params<ExportParams>,
) -> ApiResult<Response> {
    let data = data(&app, &caller, &trace, params.trail, "/api/v1/audit/export").await?;
    let query = AuditQuery { since: params.since, until: params.until, ..AuditQuery::default() };
    let headers = [(header::CONTENT_TYPE, JSON_LINES)];
    // The first page is read before the status is sent.
    let first = data.audit(query.clone(), PageRequest::first(PageRequest::MAX_LIMIT)).await?;
    let first_lines = lines(data.tenant(), first.data);
    let rest = pages(data, query, first.next_cursor);
    let body = stream::iter([Ok(first_lines)]).chain(rest);
    Ok((headers, Body::from_stream(body)).into_response())
}

fn pages(
    data: Arc<dyn TenantStore>,
    query: AuditQuery,
    cursor: Option<String>,
) -> impl Stream<Item = Result<Bytes, StoreError>> {
    stream::try_unfold(cursor, move |cursor| {
        let (data, query) = (Arc::clone(&data), query.clone());
        async move {
            let Some(cursor) = cursor else { return Ok(None) };
            let request = PageRequest { limit: PageRequest::MAX_LIMIT, cursor: Some(cursor) };
            let Page { data: entries, next_cursor } = data.audit(query, request).await?;
            Ok(Some((lines(data.tenant(), entries), next_cursor)))
        }
    })
}

fn lines(tenant: &TenantId, entries: Vec<Audited>) -> Bytes {
    let mut text = Vec::new();
    for entry in entries {
        // A view has no keys but text, so this does not fail.
        let _ = serde_json::to_writer(&mut text, &AuditView::of(tenant, entry));
        text.push(b'\n');
    }
    text.into()
}

/// Verifies the trail: what was added since the last verification, or everything with `full=true`.
#[utoipa::path(get, path = "/api/v1/audit/verify", tag = "insight", params(VerifyParams),
    responses((status = 200, body = VerdictBody)),
    extensions(("x-permission" = json!("audit:read"))))]
async fn verify_audit(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    Params(params): Params<VerifyParams>,
) -> ApiResult<Json<AuditVerdict>> {
    let data = data(&app, &caller, &trace, params.trail, "/api/v1/audit/verify").await?;
    let scope = if params.full.unwrap_or(false) { AuditScope::Full } else { AuditScope::Incremental };
    Ok(Json(data.verify_audit(scope).await?))
}

/// The trail of the caller's tenant, or that of the installation for its operators.
async fn data(
    app: &App,
    caller: &Caller,
    trace: &Trace,
    wanted: Option<Trail>,
    route: &str,
) -> ApiResult<Arc<dyn TenantStore>> {
    match wanted.unwrap_or_default() {
        Trail::Tenant => Ok(app.data(caller)),
        Trail::Installation => {
            trail::demand(app, caller, trace, SYSTEM_READ, route).await?;
            Ok(app.store().tenant(&trail::system_tenant()))
        }
    }
}
