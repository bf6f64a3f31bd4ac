//! All routes and the layers around them.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use tower::util::option_layer;

use crate::app::App;
use crate::guards::{self, headers, origins, panics};
use crate::{routes, trace, ui};

/// From the inside out: who may, what is refused at once, what went wrong, under which id it is found.
pub fn router(app: &App) -> Router {
    let (router, _) = routes::all().merge(app.doors.clone()).split_for_parts();
    router
        // Guards know better.
        .layer(DefaultBodyLimit::disable())
        .route_layer(from_fn_with_state(app.clone(), guards::access))
        // Outside the access layer: the web page, which holds no data, and the problem 404.
        .fallback(ui::fallback)
        .layer(from_fn_with_state(app.clone(), guards::head))
        .layer(option_layer(origins::layer(&app.settings.allowed_origins)))
        .layer(panics::layer())
        .layer(from_fn_with_state(app.clone(), trace::layer))
        .layer(from_fn_with_state(app.clone(), headers::layer))
        .with_state(app.clone())
}
