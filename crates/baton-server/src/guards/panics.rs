//! Turns a panic of a handler into a problem response. Other requests are not affected.

use std::any::Any;
use std::panic::PanicHookInfo;

use axum::response::{IntoResponse as _, Response};
use tower_http::catch_panic::CatchPanicLayer;

use crate::problem::{Code, Problem};

pub fn layer() -> CatchPanicLayer<fn(Box<dyn Any + Send + 'static>) -> Response> {
    CatchPanicLayer::custom(answer as fn(Box<dyn Any + Send + 'static>) -> Response)
}

/// Omits the panic message, which may contain user content.
fn answer(_: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("a handler panicked");
    Problem::new(Code::Internal, "the server failed; its log has more under the trace id").into_response()
}

/// Installs a panic hook for the whole process that logs only the location, because the message may contain user content.
pub fn log_places() {
    std::panic::set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "a panic");
    }));
}
