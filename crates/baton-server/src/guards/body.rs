//! Reads request bodies completely, with a time and size limit, so that handlers never wait for the network.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use bytes::BytesMut;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::time::{Instant, timeout_at};

use crate::access::RequestWork;
use crate::problem::{ApiResult, Code, Problem};
use crate::settings::RequestLimits;

/// Factor of the read timeout for uploads.
const LONGER: u32 = 4;

pub async fn read(request: Request, work: RequestWork, limits: &RequestLimits) -> ApiResult<Request> {
    let (most, patience) = match work {
        RequestWork::Upload => (limits.max_upload_bytes, limits.read_timeout.saturating_mul(LONGER)),
        RequestWork::Quick | RequestWork::Run => (limits.max_body_bytes, limits.read_timeout),
    };
    let (parts, body) = request.into_parts();
    refuse_encoded(&parts.headers)?;
    let promised = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if promised.is_some_and(|promised: u64| promised > u64::try_from(most).unwrap_or(u64::MAX)) {
        return Err(too_large(most));
    }
    if body.is_end_stream() {
        return Ok(Request::from_parts(parts, Body::empty()));
    }
    let body = collect(body, most, patience).await?;
    Ok(Request::from_parts(parts, Body::from(body.freeze())))
}

/// The request without its body, of which nothing is read.
pub fn discard(request: Request) -> Request {
    request.map(|_| Body::empty())
}

/// A compressed body could be a thousand times larger than what was sent, so none is decompressed.
fn refuse_encoded(headers: &HeaderMap) -> ApiResult<()> {
    let is_plain = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
    if headers.get_all(CONTENT_ENCODING).iter().all(is_plain) {
        return Ok(());
    }
    let detail = "compressed bodies are not accepted; send the body without `Content-Encoding`";
    Err(Problem::new(Code::UnsupportedMediaType, detail).at("Content-Encoding", "leave it out"))
}

/// Copies each chunk, because many tiny chunks would keep the large buffers they arrived in alive.
async fn collect(mut body: Body, most: usize, patience: Duration) -> ApiResult<BytesMut> {
    let until = Instant::now() + patience;
    let mut whole = BytesMut::new();
    loop {
        let frame = timeout_at(until, body.frame()).await.map_err(|_| too_slow(patience))?;
        let Some(frame) = frame else { return Ok(whole) };
        let frame = frame.map_err(|_| broken())?;
        let Some(piece) = frame.data_ref() else { continue };
        if piece.len() > most - whole.len() {
            return Err(too_large(most));
        }
        whole.extend_from_slice(piece);
    }
}

fn too_large(most: usize) -> Problem {
    let detail = format!("the body is larger than {most} bytes, the most that this route takes");
    Problem::new(Code::PayloadTooLarge, detail).with("max_bytes", most)
}

fn too_slow(patience: Duration) -> Problem {
    let detail = format!("the body did not arrive within {} s", patience.as_secs_f32());
    Problem::new(Code::RequestTimeout, detail)
}

fn broken() -> Problem {
    Problem::new(Code::InvalidRequest, "the body broke off, or is not as its headers say")
}
