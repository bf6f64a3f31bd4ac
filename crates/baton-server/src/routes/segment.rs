//! What stands in a path.

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use http::request::Parts;

use crate::problem::Problem;

/// The only parameter of a path. One that is not valid UTF-8 names nothing.
#[derive(Debug)]
pub struct Segment(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        Ok(Self(path.map(|Path(text)| text).unwrap_or_default()))
    }
}
