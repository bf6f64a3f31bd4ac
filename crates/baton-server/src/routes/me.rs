//! The caller's own identity.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::Caller;
use crate::wire::me::MeView;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show_me))
}

/// The tenant, user, roles and permissions of the credential. A client needs them to offer only what is allowed.
#[utoipa::path(get, path = "/api/v1/me", tag = "operations",
    responses((status = 200, body = MeView)),
    extensions(("x-permission" = json!("signed-in"))))]
async fn show_me(State(app): State<App>, caller: Caller) -> Json<MeView> {
    Json(MeView::of(&caller, app.settings.auth.mode))
}
