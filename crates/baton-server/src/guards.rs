//! What is refused before anybody looks at it.
//!
//! From the outside in: headers that every answer has ([`headers`]), panics ([`panics`]), other origins ([`origins`]), sizes of
//! URL and headers ([`head`]), and around each route who asks, how often ([`rate`]), with how large a body ([`body`]), and for how
//! long.

mod body;
mod head;
pub mod headers;
pub mod origins;
pub mod panics;
mod rate;

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use baton_core::TenantId;
use http::{Method, StatusCode};

use crate::access::{Demand, Route, Work};
use crate::app::App;
use crate::identity::{Caller, Mode};
use crate::problem::{Answer, Code, Problem};
use crate::settings::Limits;
use crate::trace::{Known, Trace};
use crate::trail;
pub use head::head;
use rate::{Rate, Standing};

/// When whoever was sent away because the server ends should come back: another one is there soon.
const COME_BACK: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Guards {
    rate: Rate,
}

impl Guards {
    pub fn new(limits: &Limits) -> Self {
        Self { rate: Rate::new(limits.requests_per_minute) }
    }

    /// For requests that come by other ways than routes, as messages over a WebSocket do.
    pub fn admit(&self, tenant: &TenantId) -> Answer<()> {
        self.rate.admit(tenant).pause.map_or(Ok(()), |pause| Err(too_many(pause)))
    }
}

/// Around every route: who asks, how often, and whether they may; then the whole body; then the answer, in time.
pub async fn access(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().cloned();
    let path = path.as_ref().map(MatchedPath::as_str).unwrap_or_default();
    let Some(route) = app.access.route(request.method(), path) else { return no_such_method(&request) };
    let mut standing = None;
    let answered = answer(&app, route, path, request, next, &mut standing).await;
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    if let Some(standing) = standing {
        standing.write(response.headers_mut());
    }
    response
}

async fn answer(
    app: &App,
    route: &Route,
    path: &str,
    mut request: Request,
    next: Next,
    standing: &mut Option<Standing>,
) -> Answer<Response> {
    let limits = &app.settings.limits;
    if route.work == Work::Run && app.is_draining() {
        let detail = "the server is about to end and begins nothing new; ask again, another one will answer";
        return Err(Problem::new(Code::Draining, detail).retry_after(COME_BACK));
    }
    in_time(limits.request_timeout, admit(app, route, path, &mut request, standing)).await??;
    let request = body::read(request, route.work, limits).await?;
    // A run takes as long as it takes; a stream begins at once.
    if route.work == Work::Run {
        return Ok(next.run(request).await);
    }
    in_time(limits.request_timeout, next.run(request)).await
}

fn too_many(pause: Duration) -> Problem {
    let detail = "too many requests of this tenant; wait as long as `Retry-After` says";
    Problem::new(Code::RateLimited, detail).retry_after(pause)
}

async fn in_time<T>(limit: Duration, work: impl Future<Output = T>) -> Answer<T> {
    tokio::time::timeout(limit, work).await.map_err(|_| {
        let detail = "the answer took too long; what was asked for may have been done or not";
        Problem::new(Code::TimedOut, detail).retry_after(Duration::from_secs(1))
    })
}

/// axum adds which methods there are.
fn no_such_method(request: &Request) -> Response {
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    Problem::new(Code::MethodNotAllowed, "this route has no such method; `Allow` says which it has")
        .into_response()
}

async fn admit(
    app: &App,
    route: &Route,
    path: &str,
    request: &mut Request,
    standing: &mut Option<Standing>,
) -> Answer<()> {
    if route.demand == Demand::Public {
        return Ok(());
    }
    if app.settings.auth.mode == Mode::Open {
        origins::trust(request.headers(), request.uri(), &app.settings.allowed_origins)?;
    }
    let caller = Caller(app.identity.authenticate(request.headers()).await?.into());
    let now = standing.insert(app.guards.rate.admit(&caller.tenant));
    if let Some(pause) = now.pause {
        return Err(too_many(pause));
    }
    if let Demand::Permission(permission) = &route.demand
        && let Err(problem) = caller.demand(permission)
    {
        trail::refused(app, &caller, request.extensions().get::<Trace>(), permission, path).await;
        return Err(problem);
    }
    Known::tell(request.extensions(), &caller);
    request.extensions_mut().insert(caller);
    Ok(())
}
