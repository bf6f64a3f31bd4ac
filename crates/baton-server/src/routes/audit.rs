//! Who did what, and whether the record of it is whole.

use axum::Json;
use axum::extract::State;
use baton_core::store::AuditVerdict;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::Caller;
use crate::problem::ApiResult;
use crate::strict::Params;
use crate::wire::audit::{AuditParams, AuditView, VerdictBody};
use crate::wire::page::{self, Listed};

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_audit)).routes(routes!(verify_audit))
}

/// The audit trail of the tenant, the oldest entry first unless `order` says otherwise.
#[utoipa::path(get, path = "/api/v1/audit", tag = "insight", params(AuditParams),
    responses((status = 200, body = Listed<AuditView>)),
    extensions(("x-permission" = json!("audit:read"))))]
async fn list_audit(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<AuditParams>,
) -> ApiResult<Json<Listed<AuditView>>> {
    let query = params.query();
    let found = app.data(&caller).audit(query, page::request(params.limit, params.cursor)).await?;
    Ok(Json(Listed::of(found, |entry| AuditView::of(&caller.tenant, entry))))
}

/// Reads the whole trail and says whether every entry and seal is there and as it was written.
#[utoipa::path(get, path = "/api/v1/audit/verify", tag = "insight",
    responses((status = 200, body = VerdictBody)),
    extensions(("x-permission" = json!("audit:read"))))]
async fn verify_audit(State(app): State<App>, caller: Caller) -> ApiResult<Json<AuditVerdict>> {
    Ok(Json(app.data(&caller).verify_audit().await?))
}
