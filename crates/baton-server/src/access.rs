//! What each route demands, read from its description in the OpenAPI document: what is written there is what is enforced, and a
//! route that says nothing is not reachable.

use std::collections::HashMap;

use http::Method;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{OpenApi, PathItem};

/// The extension of an operation that says who may use it.
pub const EXTENSION: &str = "x-permission";
/// The extension that says what it means to answer: `run`, `upload`, or nothing.
pub const WORK: &str = "x-work";
const PUBLIC: &str = "public";
const SIGNED_IN: &str = "signed-in";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Demand {
    /// Nothing: liveness and readiness.
    Public,
    /// A valid credential; the handler decides the rest, such as whose thread it is.
    SignedIn,
    Permission(String),
}

/// What answering a request means, where guards treat it differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Work {
    /// The answer begins soon.
    #[default]
    Quick,
    /// A run begins, and may be waited for: as long as it takes, but not when the server is about to end.
    Run,
    /// The body is a file.
    Upload,
}

/// What is known about a method of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub demand: Demand,
    pub work: Work,
}

#[derive(Debug, Default)]
pub struct Access(HashMap<String, Vec<(Method, Route)>>);

impl Access {
    /// Panics when a route says nothing: the program is wrong, and every start shows it.
    pub fn of(document: &OpenApi) -> Self {
        let routes = document.paths.paths.iter().map(|(path, item)| {
            let methods = operations(item).map(|(method, operation)| {
                let demand =
                    demand(operation).unwrap_or_else(|| panic!("{method} {path} has no {EXTENSION}"));
                let work = work(operation)
                    .unwrap_or_else(|word| panic!("{method} {path} has an unknown {WORK}: {word}"));
                (method, Route { demand, work })
            });
            (path.clone(), methods.collect())
        });
        Self(routes.collect())
    }

    /// Whether this is the first segment of a described path: `docs`, `livez`.
    pub fn has_root(&self, segment: &str) -> bool {
        self.0.keys().any(|path| path.split('/').nth(1) == Some(segment))
    }

    pub fn route(&self, method: &Method, path: &str) -> Option<&Route> {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        self.0.get(path)?.iter().find(|(known, _)| known == method).map(|(_, route)| route)
    }
}

fn demand(operation: &Operation) -> Option<Demand> {
    Some(match said(operation, EXTENSION)? {
        PUBLIC => Demand::Public,
        SIGNED_IN => Demand::SignedIn,
        permission => Demand::Permission(permission.to_owned()),
    })
}

fn work(operation: &Operation) -> Result<Work, &str> {
    match said(operation, WORK) {
        None => Ok(Work::Quick),
        Some("run") => Ok(Work::Run),
        Some("upload") => Ok(Work::Upload),
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
