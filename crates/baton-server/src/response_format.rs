//! The response format of a run: a stream of events, or one document at its end.

use axum::extract::FromRequestParts;
use baton_engine::Interest;
use http::request::Parts;
use http::{HeaderMap, header};

use crate::problem::{Code, Problem};

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// The format that `Accept` requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseFormat {
    /// The run's events; the default.
    Events,
    /// One document at the end of the run.
    Json,
}

impl ResponseFormat {
    /// The part of a run's events that this format needs.
    pub fn interest(self) -> Interest {
        match self {
            Self::Events => Interest::Run,
            Self::Json => Interest::Ends,
        }
    }

    /// Chooses the preferred format. On a tie, and for `*/*`, it is the events.
    pub fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let ranges: Vec<(&str, f32)> = headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(range)
            .filter(|(kind, _)| !kind.is_empty())
            .collect();
        if ranges.is_empty() {
            return Ok(Self::Events);
        }
        let (events, json) = (quality(&ranges, EVENTS), quality(&ranges, JSON));
        if events <= 0.0 && json <= 0.0 {
            let detail = format!("this answers as `{EVENTS}` or as `{JSON}`; `Accept` names neither");
            return Err(Problem::new(Code::NotAcceptable, detail));
        }
        Ok(if json > events { Self::Json } else { Self::Events })
    }
}

impl<S: Sync> FromRequestParts<S> for ResponseFormat {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::of(&parts.headers)
    }
}

/// Parses a media range and its weight. An invalid weight counts as 1.
fn range(text: &str) -> (&str, f32) {
    let mut fields = text.split(';').map(str::trim);
    let kind = fields.next().unwrap_or_default();
    let weight = fields.find_map(|field| field.strip_prefix("q=")?.parse::<f32>().ok());
    (kind, weight.filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(1.0))
}

/// The weight of a type: that of the most specific range that matches.
fn quality(ranges: &[(&str, f32)], kind: &str) -> f32 {
    let family = kind.split_once('/').map_or(kind, |(family, _)| family);
    let of =
        |is: &dyn Fn(&str) -> bool| ranges.iter().find(|(range, _)| is(range)).map(|(_, weight)| *weight);
    of(&|range| range.eq_ignore_ascii_case(kind))
        .or_else(|| of(&|range| range.strip_suffix("/*").is_some_and(|of| of.eq_ignore_ascii_case(family))))
        .or_else(|| of(&|range| range == "*/*"))
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn form(accept: &str) -> Option<ResponseFormat> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_str(accept).expect("a header"));
        ResponseFormat::of(&headers).ok()
    }

    #[test]
    fn events_unless_json_is_preferred() {
        assert_eq!(ResponseFormat::of(&HeaderMap::new()).ok(), Some(ResponseFormat::Events));
        for accept in ["", "*/*", "text/event-stream", "text/*", "text/event-stream, application/json"] {
            assert_eq!(form(accept), Some(ResponseFormat::Events), "{accept:?}");
        }
        for accept in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/*",
            "application/json, */*;q=0.1",
        ] {
            assert_eq!(form(accept), Some(ResponseFormat::Json), "{accept:?}");
        }
        for accept in ["text/html", "text/event-stream;q=0", "image/*"] {
            assert_eq!(form(accept), None, "{accept:?}");
        }
    }
}
