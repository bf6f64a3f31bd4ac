//! What was spent.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::Caller;
use crate::problem::ApiResult;
use crate::strict::Params;
use crate::wire::page::Listed;
use crate::wire::usage::{UsageLineView, UsageParams};

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_usage))
}

/// Tokens and money of the tenant, added up. Those that cost most come first, days in their order, and all come at once.
#[utoipa::path(get, path = "/api/v1/usage", tag = "insight", params(UsageParams),
    responses((status = 200, body = Listed<UsageLineView>)),
    extensions(("x-permission" = json!("usage:read"))))]
async fn get_usage(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<UsageParams>,
) -> ApiResult<Json<Listed<UsageLineView>>> {
    let lines = app.data(&caller).usage(params.into()).await?;
    Ok(Json(Listed::whole(lines.into_iter().map(UsageLineView::from).collect())))
}
