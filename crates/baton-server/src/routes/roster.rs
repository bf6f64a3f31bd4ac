//! The state of the agent files.

use axum::Json;
use axum::extract::State;
use baton_agents::Diagnostic;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::Caller;
use crate::wire::roster::RosterView;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show_roster))
}

/// Whether the newest agent files are in use. Broken files change nothing: the last good version stays active (`last_good`), and
/// `diagnostics` says what is wrong with the newest. A tenant with
/// a list of agents sees what concerns their files.
#[utoipa::path(get, path = "/api/v1/roster", tag = "agents",
    responses((status = 200, body = RosterView)),
    extensions(("x-permission" = json!("agent:read"))))]
async fn show_roster(State(app): State<App>, caller: Caller) -> Json<RosterView> {
    let state = app.roster_of(&caller);
    let tenants = &app.engine.parts.tenants;
    let is_shown = |problem: &Diagnostic| {
        let agents = app.agents(&caller);
        let mut files = agents.keys().filter_map(|name| state.roster.file(name));
        !tenants.is_restricted(&caller.tenant) || files.any(|file| file == problem.location.path())
    };
    let root = &app.engine.parts.extensions.work_dir;
    Json(RosterView::of(&state, app.agents(&caller).len(), is_shown, root))
}
