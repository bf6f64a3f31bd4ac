//! Requests that can be sent twice and are done once.

use axum::extract::{FromRequest, Request};
use baton_core::store::run::Idempotency;
use data_encoding::HEXLOWER;
use http::{HeaderMap, Method};
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::json::{Checked, is_json, parse, whole};
use crate::app::App;
use crate::problem::{ApiResult, Code, Problem};

pub const HEADER: &str = "Idempotency-Key";
const LONGEST_KEY: usize = 255;
/// How long a repetition is known as one.
pub const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);

/// A JSON body as [`super::Strict`] takes it, and the promise that comes with an `Idempotency-Key`.
#[derive(Debug)]
pub struct Repeatable<T> {
    pub body: T,
    pub idempotency: Option<Idempotency>,
}

impl<T: DeserializeOwned + Checked> FromRequest<App> for Repeatable<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        is_json(request.headers())?;
        let key = key(request.headers())?;
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let bytes = whole(request, app).await?;
        let body = parse(&bytes)?;
        let idempotency = key.map(|key| Idempotency {
            key,
            fingerprint: fingerprint(&method, &path, &bytes),
            expires_at: Timestamp::now() + REMEMBERED,
        });
        Ok(Self { body, idempotency })
    }
}

pub fn key(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let mut given = headers.get_all(HEADER).iter();
    let Some(value) = given.next() else { return Ok(None) };
    let invalid = |detail: &str| Err(Problem::new(Code::InvalidRequest, detail).at(HEADER, detail));
    if given.next().is_some() {
        return invalid("one request has one idempotency key");
    }
    let bytes = value.as_bytes();
    if bytes.is_empty() || bytes.len() > LONGEST_KEY || !bytes.iter().all(u8::is_ascii_graphic) {
        return invalid("an idempotency key has 1 to 255 visible ASCII characters, such as a UUID");
    }
    Ok(Some(value.to_str().unwrap_or_default().to_owned()))
}

/// Of everything that makes two requests the same. Neither a method nor a path has a line break in it.
pub fn fingerprint(method: &Method, path: &str, body: &[u8]) -> String {
    let hash = Sha256::new().chain_update(format!("{method}\n{path}\n")).chain_update(body).finalize();
    HEXLOWER.encode(&hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(values: &[&[u8]]) -> ApiResult<Option<String>> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HEADER, http::HeaderValue::from_bytes(value).unwrap());
        }
        key(&headers)
    }

    #[test]
    fn keys_are_short_and_visible() {
        assert_eq!(with(&[]).unwrap(), None);
        assert_eq!(with(&[b"a-1"]).unwrap().as_deref(), Some("a-1"));
        assert!(with(&[&[b'x'; 255]]).unwrap().is_some());
        let long = [b'x'; 256];
        for bad in [&[b"".as_slice()][..], &[&long], &[b"a b"], &[b"\xc3\xa4"], &[b"a\tb"], &[b"a", b"b"]] {
            let problem = with(bad).unwrap_err();
            assert_eq!(problem.to_json("")["errors"][0]["pointer"], HEADER);
        }
    }

    #[test]
    fn the_same_request_has_the_same_fingerprint_and_no_other_has() {
        let of = |method: Method, path, body: &str| fingerprint(&method, path, body.as_bytes());
        let first = of(Method::POST, "/a", "{}");
        assert_eq!(first, of(Method::POST, "/a", "{}"));
        assert_eq!(first.len(), 64);
        for other in
            [of(Method::PUT, "/a", "{}"), of(Method::POST, "/b", "{}"), of(Method::POST, "/a", "{ }")]
        {
            assert_ne!(first, other);
        }
    }
}
