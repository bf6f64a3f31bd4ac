//! The `Prefer` header of RFC 7240. Supports `respond-async` and ignores all other preferences.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, HeaderName};

pub const HEADER: HeaderName = HeaderName::from_static("prefer");
pub const APPLIED: HeaderName = HeaderName::from_static("preference-applied");
pub const RESPOND_ASYNC: &str = "respond-async";

/// Whether the caller wants a response as soon as the request is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RespondAsync(pub bool);

impl RespondAsync {
    pub fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(HEADER).iter().filter_map(|value| value.to_str().ok());
        Self(values.flat_map(preferences).any(|preference| is_respond_async(&preference)))
    }
}

impl<S: Sync> FromRequestParts<S> for RespondAsync {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

/// Splits the list. Quoted strings are masked, so that their commas and names have no effect.
fn preferences(value: &str) -> Vec<String> {
    let (mut plain, mut is_quoted, mut is_escaped) = (String::new(), false, false);
    for c in value.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            c if is_quoted => plain.extend((c != ',' && c != ';').then_some('?')),
            c => plain.push(c),
        }
    }
    plain.split(',').map(|preference| preference.trim().to_owned()).collect()
}

/// An empty value equals no value; parameters are ignored.
fn is_respond_async(preference: &str) -> bool {
    let preference = preference.split(';').next().unwrap_or_default();
    let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
    name.trim().eq_ignore_ascii_case(RESPOND_ASYNC) && value.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn wanted(values: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HEADER, HeaderValue::from_str(value).expect("a header"));
        }
        RespondAsync::of(&headers).0
    }

    #[test]
    fn respond_async_is_found_among_other_preferences() {
        for values in [
            &["respond-async"][..],
            &["Respond-Async"],
            &["respond-async, wait=10"],
            &["return=minimal;foo=\"a,b\" , respond-async ; x=1"],
            &["wait=10", "respond-async"],
            &["respond-async=\"\""],
        ] {
            assert!(wanted(values), "{values:?}");
        }
        for values in [
            &[][..],
            &[""],
            &["wait=10"],
            &["foo=\"x, respond-async\""],
            &["foo=\"\\\", respond-async\""],
            &["respond-asynchronously"],
            &["respond-async=no"],
        ] {
            assert!(!wanted(values), "{values:?}");
        }
    }
}
