//! Checks that run before any handler.
//!
//! From the outside in: response headers ([`headers`]), panics ([`panics`]), CORS ([`origins`]), sizes of URL and headers
//! ([`head`]), and around each route authentication, rate limit ([`rate`]), body size ([`body`]) and timeout.

mod body;
mod head;
pub mod headers;
pub mod origins;
pub mod panics;
mod rate;

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use baton_core::TenantId;
use http::{Method, StatusCode};

use crate::a2a;
use crate::access::{AccessRoute, RateLimiting, RequestWork, Requirement};
use crate::app::App;
use crate::client_address::ClientAddress;
use crate::identity::refusal::AuthRefusal;
use crate::identity::{AuthenticationMode, Caller};
use crate::problem::{ApiResult, Code, Problem};
use crate::settings::RequestLimits;
use crate::trace::{KnownCaller, Trace};
use crate::trail;
pub use head::head;
use rate::{Rate, RateLimitState};

/// `Retry-After` while the server shuts down: another one is available soon.
const COME_BACK: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Guards {
    rate: Rate,
    /// Of tenants with their own limit.
    own_rates: HashMap<TenantId, Rate>,
}

impl Guards {
    pub fn new(limits: &RequestLimits) -> Self {
        let own = limits.tenants.iter().filter_map(|(tenant, own)| {
            own.requests_per_minute.map(|most| (tenant.clone(), Rate::new(most)))
        });
        Self { rate: Rate::new(limits.requests_per_minute), own_rates: own.collect() }
    }

    fn rate(&self, tenant: &TenantId) -> &Rate {
        self.own_rates.get(tenant).unwrap_or(&self.rate)
    }

    /// Applies the rate limit to requests outside of routes, such as messages over a WebSocket.
    pub fn admit(&self, tenant: &TenantId) -> ApiResult<()> {
        self.rate(tenant).admit(tenant).pause.map_or(Ok(()), |pause| Err(too_many(pause)))
    }
}

/// Around every route: authenticates, applies the rate limit, checks the permission, reads the whole body unless the route is
/// public, and limits the time to the response.
pub async fn access(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().cloned();
    let path = path.as_ref().map(MatchedPath::as_str).unwrap_or_default();
    let Some(route) = app.access.route(request.method(), path) else { return no_such_method(&request) };
    let mut rate_limit = None;
    let answered = answer(&app, route, path, request, next, &mut rate_limit).await;
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    if let Some(rate_limit) = rate_limit {
        rate_limit.write(response.headers_mut());
    }
    response
}

async fn answer(
    app: &App,
    route: &AccessRoute,
    path: &str,
    mut request: Request,
    next: Next,
    rate_limit: &mut Option<RateLimitState>,
) -> ApiResult<Response> {
    let limits = &app.settings.limits;
    if route.work == RequestWork::Run && app.is_draining() {
        let detail = "the server is about to end and begins nothing new; ask again, another one will answer";
        return Err(Problem::new(Code::Draining, detail).retry_after(COME_BACK));
    }
    in_time(limits.request_timeout, admit(app, route, path, &mut request, rate_limit)).await??;
    // Anyone could fill the memory with bodies that no public route uses.
    let mut request = match route.requirement {
        Requirement::Public => body::discard(request),
        Requirement::SignedIn | Requirement::Permission(_) => body::read(request, route.work, limits).await?,
    };
    if let Some(RateLimitState { pause: Some(pause), .. }) = rate_limit
        && route.rate_limiting == RateLimiting::ExemptCancel
    {
        request = a2a::only_cancel(request).await.ok_or_else(|| too_many(*pause))?;
    }
    // A run has no timeout, and a stream starts immediately.
    if route.work == RequestWork::Run {
        return Ok(next.run(request).await);
    }
    in_time(limits.request_timeout, next.run(request)).await
}

fn too_many(pause: Duration) -> Problem {
    let detail = "too many requests of this tenant; wait as long as `Retry-After` says";
    Problem::new(Code::RateLimited, detail).retry_after(pause)
}

async fn in_time<T>(limit: Duration, work: impl Future<Output = T>) -> ApiResult<T> {
    tokio::time::timeout(limit, work).await.map_err(|_| {
        let detail = "the answer took too long; what was asked for may have been done or not";
        Problem::new(Code::TimedOut, detail).retry_after(Duration::from_secs(1))
    })
}

/// axum adds the `Allow` header.
fn no_such_method(request: &Request) -> Response {
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    Problem::new(Code::MethodNotAllowed, "this route has no such method; `Allow` says which it has")
        .into_response()
}

async fn admit(
    app: &App,
    route: &AccessRoute,
    path: &str,
    request: &mut Request,
    rate_limit: &mut Option<RateLimitState>,
) -> ApiResult<()> {
    if route.requirement == Requirement::Public {
        return Ok(());
    }
    if app.settings.auth.mode == AuthenticationMode::Open {
        origins::trust(request.headers(), request.uri(), &app.settings)?;
    }
    let from = request.extensions().get::<ClientAddress>().copied();
    let from = from.ok_or_else(|| Problem::internal(&"a request without a client address"))?;
    let authenticated = app.identity.authenticate(request.headers(), from).await;
    if let Some(reason) = authenticated.as_ref().err().and_then(AuthRefusal::failure) {
        trail::failed(app, from, request.extensions().get::<Trace>(), reason).await;
    }
    let caller = Caller(authenticated?);
    if route.rate_limiting != RateLimiting::Exempt {
        let now = rate_limit.insert(app.guards.rate(&caller.tenant).admit(&caller.tenant));
        // Whether a request that may be exempt is so can be in its body.
        if let Some(pause) = now.pause
            && route.rate_limiting == RateLimiting::Applies
        {
            return Err(too_many(pause));
        }
    }
    if let Requirement::Permission(permission) = &route.requirement
        && let Err(problem) = caller.demand(permission)
    {
        trail::refused(app, &caller, request.extensions().get::<Trace>(), permission, path).await;
        return Err(problem);
    }
    KnownCaller::tell(request.extensions(), &caller);
    request.extensions_mut().insert(caller);
    Ok(())
}
