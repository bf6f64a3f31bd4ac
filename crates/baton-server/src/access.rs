//! The requirements of each route, read from the OpenAPI document, so that the documentation is what is enforced. A route
//! without a requirement makes the server panic at startup.

use std::collections::HashMap;

use http::Method;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{OpenApi, PathItem};

/// OpenAPI extension of an operation: who may use it.
pub const EXTENSION: &str = "x-permission";
/// OpenAPI extension of an operation: `run`, `upload`, or absent.
pub const WORK: &str = "x-work";
/// OpenAPI extension of an operation: which requests the rate limit does not apply to.
pub const RATE_LIMIT: &str = "x-rate-limit";
const PUBLIC: &str = "public";
const SIGNED_IN: &str = "signed-in";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// No credential: liveness and readiness.
    Public,
    /// A valid credential. The handler checks the rest, such as the owner of a thread.
    SignedIn,
    Permission(String),
}

/// The kind of work behind a request, which decides timeouts and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestWork {
    /// The response starts soon.
    #[default]
    Quick,
    /// Starts a run, and may wait for it without a timeout. Refused while the server drains.
    Run,
    /// The body is a file.
    Upload,
}

/// Whether the rate limit of the tenant applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateLimiting {
    #[default]
    Applies,
    /// Leaving and stopping work always, also for a tenant that has used up its requests.
    Exempt,
    /// The same for an A2A route that cancels, among other things.
    ExemptCancel,
}

/// The requirement and kind of work of one method of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRoute {
    pub requirement: Requirement,
    pub work: RequestWork,
    pub rate_limiting: RateLimiting,
}

#[derive(Debug, Default)]
pub struct Access(HashMap<String, Vec<(Method, AccessRoute)>>);

impl Access {
    /// Reads all routes of the document.
    ///
    /// # Panics
    ///
    /// Panics if a route has no requirement. This is a programming error that every start reveals.
    pub fn of(document: &OpenApi) -> Self {
        let routes = document.paths.paths.iter().map(|(path, item)| {
            let methods = operations(item).map(|(method, operation)| {
                let requirement =
                    demand(operation).unwrap_or_else(|| panic!("{method} {path} has no {EXTENSION}"));
                let work = work(operation)
                    .unwrap_or_else(|word| panic!("{method} {path} has an unknown {WORK}: {word}"));
                let rate_limiting = rate_limiting(operation)
                    .unwrap_or_else(|word| panic!("{method} {path} has an unknown {RATE_LIMIT}: {word}"));
                (method, AccessRoute { requirement, work, rate_limiting })
            });
            (path.clone(), methods.collect())
        });
        Self(routes.collect())
    }

    /// Whether this is the first segment of a documented path: `docs`, `livez`.
    pub fn has_root(&self, segment: &str) -> bool {
        self.0.keys().any(|path| path.split('/').nth(1) == Some(segment))
    }

    pub fn route(&self, method: &Method, path: &str) -> Option<&AccessRoute> {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        self.0.get(path)?.iter().find(|(known, _)| known == method).map(|(_, route)| route)
    }
}

fn demand(operation: &Operation) -> Option<Requirement> {
    Some(match said(operation, EXTENSION)? {
        PUBLIC => Requirement::Public,
        SIGNED_IN => Requirement::SignedIn,
        permission => Requirement::Permission(permission.to_owned()),
    })
}

fn work(operation: &Operation) -> Result<RequestWork, &str> {
    match said(operation, WORK) {
        None => Ok(RequestWork::Quick),
        Some("run") => Ok(RequestWork::Run),
        Some("upload") => Ok(RequestWork::Upload),
        Some(other) => Err(other),
    }
}

fn rate_limiting(operation: &Operation) -> Result<RateLimiting, &str> {
    match said(operation, RATE_LIMIT) {
        None => Ok(RateLimiting::Applies),
        Some("exempt") => Ok(RateLimiting::Exempt),
        Some("exempt-cancel") => Ok(RateLimiting::ExemptCancel),
        Some(other) => Err(other),
    }
}

fn said<'a>(operation: &'a Operation, extension: &str) -> Option<&'a str> {
    operation.extensions.as_ref()?.get(extension)?.as_str()
}

fn operations(item: &PathItem) -> impl Iterator<Item = (Method, &Operation)> {
    [
        (Method::GET, &item.get),
        (Method::POST, &item.post),
        (Method::PUT, &item.put),
        (Method::DELETE, &item.delete),
        (Method::PATCH, &item.patch),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
}
