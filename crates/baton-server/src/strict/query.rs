//! The query of a URL.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use super::{named, shortened};
use crate::problem::{ApiResult, Code, Problem};

/// The query of a URL. Types that refuse unknown fields make every misspelt parameter a problem.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parse(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

fn parse<T: DeserializeOwned>(query: &str) -> ApiResult<T> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    serde_path_to_error::deserialize(serde_urlencoded::Deserializer::new(pairs)).map_err(|error| {
        let message = error.inner().to_string();
        let place = error.path().iter().find_map(|segment| match segment {
            Segment::Map { key } => Some(key.as_str()),
            _ => None,
        });
        let name = place
            .or_else(|| named(&message, "duplicate field "))
            .or_else(|| named(&message, "missing field "))
            .unwrap_or_default();
        let detail = "the query is not what this route takes; `errors` names the parameter";
        Problem::new(Code::InvalidRequest, detail).at(shortened(name.to_owned()), shortened(message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::page::Paging;

    fn at(pointer: &str, detail: &str, query: &str) {
        let problem = parse::<Paging>(query).unwrap_err().to_json("");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains(detail), "{problem}");
    }

    #[test]
    fn parameters_that_are_wrong_are_named() {
        at("colour", "unknown field `colour`", "colour=red");
        at("limit", "invalid digit", "limit=many");
        at("limit", "invalid digit", "limit=-1");
        at("limit", "empty", "limit=");
        at("limit", "too large", "limit=99999999999");
        at("limit", "duplicate field", "limit=1&limit=2");
        assert_eq!(parse::<Paging>("limit=7&cursor=a%26b").unwrap().cursor.as_deref(), Some("a&b"));
        assert_eq!(parse::<Paging>("").unwrap().limit, None);
    }
}
