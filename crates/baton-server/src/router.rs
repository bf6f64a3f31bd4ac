//! All routes and their layers.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use tower::ServiceBuilder;
use tower::util::option_layer;

use crate::app::App;
use crate::guards::{self, headers, origins, panics};
use crate::{trace, ui};

/// Builds the router. Layers from the inside out: access, sizes, CORS, panics, trace, headers.
pub fn router(app: &App) -> Router {
    app.routes
        .clone()
        // `guards::body` limits bodies.
        .layer(DefaultBodyLimit::disable())
        .route_layer(from_fn_with_state(app.clone(), guards::access))
        // Outside the access layer: the web UI, which contains no data, and the 404 problem.
        .fallback(ui::fallback)
        // One stack, outermost first. Each `Router::layer` would box all layers below it again, and `from_fn` clones the inner
        // service for each request.
        .layer(
            ServiceBuilder::new()
                .layer(from_fn_with_state(app.clone(), headers::layer))
                .layer(from_fn_with_state(app.clone(), trace::layer))
                .layer(panics::layer())
                .layer(option_layer(origins::layer(&app.settings.allowed_origins)))
                .layer(from_fn_with_state(app.clone(), guards::head)),
        )
        .with_state(app.clone())
}
