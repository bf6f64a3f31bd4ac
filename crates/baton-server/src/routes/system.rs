//! What the server works with: its store, its models, its MCP servers.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::Caller;
use crate::identity::roles::METRICS_READ;
use crate::wire::system::{SystemView, Vitals};

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show_system))
}

/// What the server works with, and whether it works. The errors of MCP servers and the names of key variables are for those who have
/// `metrics:read`. No secret and no path is shown.
#[utoipa::path(get, path = "/api/v1/system", tag = "operations",
    responses((status = 200, body = SystemView)),
    extensions(("x-permission" = json!("agent:read"))))]
async fn show_system(State(app): State<App>, caller: Caller) -> Json<SystemView> {
    let vitals = Vitals {
        version: app.version,
        is_store_ok: app.store().tenants().await.is_ok(),
        default_model: app.engine.models(&caller.tenant).default_model(),
        agents: app.agents(&caller).len(),
        active_runs: app.engine.active_threads(),
        started_at: app.started_at,
        shows_details: caller.may(METRICS_READ),
    };
    Json(SystemView::of(vitals, (app.inspect)(&caller.tenant)))
}
