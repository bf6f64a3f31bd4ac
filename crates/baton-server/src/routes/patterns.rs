//! What was learnt.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::Caller;
use crate::problem::ApiResult;
use crate::wire::page::Listed;
use crate::wire::pattern::{self, Way};

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_patterns))
}

/// Which ways batons take between agents and how well they end, across all threads of the tenant. The most frequent come first, and
/// all come at once.
#[utoipa::path(get, path = "/api/v1/patterns", tag = "insight", responses((status = 200, body = Listed<Way>)),
    extensions(("x-permission" = json!("trace:read"))))]
async fn list_patterns(State(app): State<App>, caller: Caller) -> ApiResult<Json<Listed<Way>>> {
    let patterns = app.data(&caller).patterns().await?;
    Ok(Json(pattern::document(&patterns)))
}
