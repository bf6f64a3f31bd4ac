//! The state of the agent files.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::wire::roster::RosterView;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show_roster))
}

/// Whether the newest agent files are in use. Broken files change nothing: the last good version stays active (`last_good`), and
/// `diagnostics` says what is wrong with the newest.
#[utoipa::path(get, path = "/api/v1/roster", tag = "agents",
    responses((status = 200, body = RosterView)),
    extensions(("x-permission" = json!("agent:read"))))]
async fn show_roster(State(app): State<App>) -> Json<RosterView> {
    let state = app.roster.borrow().clone();
    Json(RosterView::of(&state, &app.engine.parts.extensions.work_dir))
}
