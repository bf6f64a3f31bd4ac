//! A handler that panics has found a fault of the program. Its caller gets a problem, and everybody else notices nothing.

use std::any::Any;
use std::panic::PanicHookInfo;

use axum::response::{IntoResponse as _, Response};
use tower_http::catch_panic::CatchPanicLayer;

use crate::problem::{Code, Problem};

pub fn layer() -> CatchPanicLayer<fn(Box<dyn Any + Send + 'static>) -> Response> {
    CatchPanicLayer::custom(answer as fn(Box<dyn Any + Send + 'static>) -> Response)
}

/// What it said may have somebody's words in it, so that is not passed on.
fn answer(_: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("a handler panicked");
    Problem::new(Code::Internal, "the server failed; its log has more under the trace id").into_response()
}

/// From now on panics are logged by their place alone, as every other fault is. For the whole process, so for its owner to decide.
pub fn log_places() {
    std::panic::set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "a panic");
    }));
}
