//! What can be said from the head of a request alone: connections beyond their limit, forwarded requests in open mode, and limits of
//! the URL and the headers. Requests far above the latter are already refused by the connection.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::origins;
use crate::app::App;
use crate::identity::AuthenticationMode;
use crate::problem::{ApiResult, Code, Problem};
use crate::routes::health;
use crate::serve::admission::ConnectionRefusal;
use crate::settings::RequestLimits;

/// Maximum number of headers of a request.
const MOST_HEADERS: usize = 100;

pub async fn head(State(app): State<App>, request: Request, next: Next) -> Response {
    match admit(&request, &app).and_then(|()| check(&request, &app.settings.limits)) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Health checks are always admitted.
fn admit(request: &Request, app: &App) -> ApiResult<()> {
    if health::PATHS.contains(&request.uri().path()) {
        return Ok(());
    }
    if let Some(refusal) = request.extensions().get::<ConnectionRefusal>() {
        return Err((*refusal).into());
    }
    if app.settings.auth.mode == AuthenticationMode::Open {
        origins::direct(request.headers())
    } else {
        Ok(())
    }
}

fn check(request: &Request, limits: &RequestLimits) -> ApiResult<()> {
    let url = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    if url > limits.max_url_bytes {
        let detail = format!("the URL has {url} bytes; {} are accepted", limits.max_url_bytes);
        return Err(Problem::new(Code::UriTooLong, detail));
    }
    let headers = request.headers();
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > limits.max_header_bytes || headers.len() > MOST_HEADERS {
        let detail = format!(
            "there are {} headers with {bytes} bytes; {MOST_HEADERS} with {} are accepted",
            headers.len(),
            limits.max_header_bytes
        );
        return Err(Problem::new(Code::HeadersTooLarge, detail));
    }
    Ok(())
}
