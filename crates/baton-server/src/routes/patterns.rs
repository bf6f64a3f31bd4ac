//! What was learnt.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::Caller;
use crate::problem::ApiResult;
use crate::wire::pattern::{self, PatternsView};

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_patterns))
}

/// How agents involve each other and how well that ends, across all threads of the tenant, and which agent serves which kind of request
/// best. All come at once.
#[utoipa::path(get, path = "/api/v1/patterns", tag = "insight", responses((status = 200, body = PatternsView)),
    extensions(("x-permission" = json!("trace:read"))))]
async fn list_patterns(State(app): State<App>, caller: Caller) -> ApiResult<Json<PatternsView>> {
    let data = app.data(&caller);
    let (patterns, known) = (data.patterns().await?, data.experience().await?);
    Ok(Json(pattern::document(&patterns, &known, Timestamp::now())))
}
