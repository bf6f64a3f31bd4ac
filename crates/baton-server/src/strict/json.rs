//! JSON bodies.

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use super::{named, shortened};
use crate::app::App;
use crate::problem::{ApiResult, Code, FieldError, Problem};

/// A JSON body. Unknown fields are refused by the type (`deny_unknown_fields`), and problems point at the field.
#[derive(Debug)]
pub struct Strict<T>(pub T);

/// What a type cannot say by itself: how long a text may be, how many of something there may be, which fields go together. It is
/// also the place to say what is wrong where serde cannot, as it knows only that none of the forms of an untagged enum fits.
pub trait Checked {
    fn check(&self) -> Vec<FieldError> {
        Vec::new()
    }
}

impl<T: DeserializeOwned + Checked> FromRequest<App> for Strict<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        is_json(request.headers())?;
        let bytes = whole(request, app).await?;
        parse(&bytes).map(Self)
    }
}

/// A JSON body that is read elsewhere.
pub(crate) async fn body(request: Request, app: &App) -> ApiResult<Bytes> {
    is_json(request.headers())?;
    whole(request, app).await
}

/// The same for a request that may have no body.
pub(crate) async fn optional_body(request: Request, app: &App) -> ApiResult<Bytes> {
    let headers = request.headers().clone();
    let bytes = whole(request, app).await?;
    if !bytes.is_empty() {
        is_json(&headers)?;
    }
    Ok(bytes)
}

/// Guards have read it already, so nothing is waited for and nothing is too large.
pub(super) async fn whole(request: Request, app: &App) -> ApiResult<Bytes> {
    Bytes::from_request(request, app)
        .await
        .map_err(|error| Problem::new(Code::InvalidRequest, error.body_text()))
}

/// A form or a plain text can be sent by any page without asking; JSON cannot.
pub(super) fn is_json(headers: &HeaderMap) -> ApiResult<()> {
    let refuse = |detail| Err(Problem::new(Code::UnsupportedMediaType, detail));
    let media = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (media, parameters) = media.split_once(';').unwrap_or((media, ""));
    let media = media.trim().to_ascii_lowercase();
    let is_suffixed = media.strip_prefix("application/").is_some_and(|kind| kind.ends_with("+json"));
    if media != "application/json" && !is_suffixed {
        return refuse("send JSON, with `Content-Type: application/json`");
    }
    let charset = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    if charset.is_some_and(|charset| !charset.eq_ignore_ascii_case("utf-8")) {
        return refuse("send JSON in UTF-8");
    }
    Ok(())
}

pub(crate) fn parse<T: DeserializeOwned + Checked>(bytes: &[u8]) -> ApiResult<T> {
    if bytes.is_empty() {
        return Err(invalid("", "the body is empty; this route takes JSON".to_owned()));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| invalid("", format!("the body is not UTF-8 after byte {}", error.valid_up_to())))?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let value: T = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| invalid(&pointer(&error), explain(error.inner())))?;
    reader.end().map_err(|error| invalid("", format!("something follows the JSON document: {error}")))?;
    let wrong = value.check();
    if wrong.is_empty() {
        return Ok(value);
    }
    let problem = Problem::new(Code::InvalidRequest, OTHER);
    Err(wrong.into_iter().fold(problem, |problem, at| problem.at(at.pointer, at.detail)))
}

const OTHER: &str = "the body is not what this route takes; `errors` says where";

fn invalid(pointer: &str, detail: String) -> Problem {
    Problem::new(Code::InvalidRequest, OTHER).at(pointer, shortened(detail))
}

fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // serde names a Rust type here, which means nothing to the caller.
    if text.starts_with("data did not match any variant of untagged enum") {
        return "this has none of the forms that are accepted here".to_owned();
    }
    text
}

/// RFC 6901. What serde lost sight of ends the pointer: it names at least what encloses the mistake.
fn pointer(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let message = error.inner().to_string();
    let mut names = Vec::new();
    for segment in error.path() {
        match segment {
            Segment::Seq { index } => names.push(index.to_string()),
            Segment::Map { key: name } | Segment::Enum { variant: name } => names.push(name.clone()),
            Segment::Unknown => break,
        }
    }
    names.extend(named(&message, "duplicate field ").map(str::to_owned));
    let names = names.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1")));
    shortened(names.collect())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Order {
        #[serde(default)]
        lines: Vec<Line>,
        #[serde(default)]
        content: Option<Content>,
        #[serde(default, rename = "a/b~c")]
        _odd: u8,
        #[serde(default)]
        _metadata: Value,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line {
        _count: u8,
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    enum Content {
        Text(String),
        Parts(Vec<Line>),
    }

    impl Checked for Order {
        fn check(&self) -> Vec<FieldError> {
            let far = self.lines.iter().enumerate().skip(2);
            let far =
                far.map(|(at, _)| FieldError { pointer: format!("/lines/{at}"), detail: "too many".into() });
            far.collect()
        }
    }

    fn refused(body: impl AsRef<[u8]>) -> Vec<(String, String)> {
        let problem = parse::<Order>(body.as_ref()).unwrap_err();
        assert_eq!(problem.code, Code::InvalidRequest);
        let json = problem.to_json("");
        let text = |error: &Value, name: &str| error[name].as_str().unwrap().to_owned();
        let errors = json["errors"].as_array().unwrap().iter();
        errors.map(|error| (text(error, "pointer"), text(error, "detail"))).collect()
    }

    fn at(pointer: &str, detail: &str, body: impl AsRef<[u8]>) {
        let errors = refused(body);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].0, pointer, "{errors:?}");
        assert!(errors[0].1.contains(detail), "{errors:?}");
    }

    #[test]
    fn mistakes_are_pointed_at() {
        at("/colour", "unknown field `colour`", r#"{"colour": 1}"#);
        at("/lines/1/colour", "unknown field", r#"{"lines": [{"_count": 1}, {"colour": 1}]}"#);
        at("/lines/0", "missing field `_count`", r#"{"lines": [{}]}"#);
        at("/lines/0/_count", "invalid type", r#"{"lines": [{"_count": "many"}]}"#);
        at("/lines/0/_count", "expected u8", r#"{"lines": [{"_count": 256}]}"#);
        at("/lines/0/_count", "expected u8", r#"{"lines": [{"_count": -1}]}"#);
        at("/a~1b~0c", "invalid type", r#"{"a/b~c": "x"}"#);
        at("/lines", "duplicate field `lines`", r#"{"lines": [], "lines": []}"#);
        at("/content", "none of the forms", r#"{"content": 7}"#);
        at("", "expected struct", "7");
    }

    #[test]
    fn what_is_no_json_is_said_so() {
        at("", "empty", "");
        at("", "not UTF-8 after byte 14", b"{\"_metadata\": \xff}");
        at("", "follows", "{} {}");
        at("", "EOF", "{");
        at("/_metadata", "number out of range", r#"{"_metadata": 1e999}"#);
        at("", "expected value", "\u{feff}{}");
        for deep in [format!(r#"{{"_metadata": {}"#, "[".repeat(100_000)), "[".repeat(100_000)] {
            let errors = refused(&deep);
            assert!(errors[0].1.len() < 1000 && errors[0].0.len() < 1000, "{errors:?}");
        }
    }

    #[test]
    fn what_a_type_checks_is_pointed_at_too() {
        let errors = refused(r#"{"lines": [{"_count": 1}, {"_count": 1}, {"_count": 1}, {"_count": 1}]}"#);
        let pointers: Vec<_> = errors.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(pointers, ["/lines/2", "/lines/3"]);
        let fine: Order = parse(br#"{"content": [{"_count": 1}]}"#).unwrap();
        assert!(matches!(fine.content, Some(Content::Parts(parts)) if parts.len() == 1));
        let fine: Order = parse(br#"{"content": "hello"}"#).unwrap();
        assert!(matches!(fine.content, Some(Content::Text(text)) if text == "hello"));
    }

    #[test]
    fn what_is_quoted_is_short() {
        let errors = refused(format!(r#"{{"lines": "{}"}}"#, "x".repeat(100_000)));
        assert!(errors[0].1.len() < 1000);
        let errors = refused(format!(r#"{{"{}": 1}}"#, "ä".repeat(100_000)));
        assert!(errors[0].1.len() < 1000 && errors[0].0.len() < 1000);
    }

    #[test]
    fn only_json_is_taken_for_json() {
        let headers = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            pairs.collect::<HeaderMap>()
        };
        for good in
            ["application/json", "Application/JSON; charset=UTF-8", "application/x+json; charset=\"utf-8\""]
        {
            is_json(&headers(&[("content-type", good)])).unwrap();
        }
        for bad in
            ["", "text/plain", "application/json2", "text/json", "application/json; charset=latin1", "json"]
        {
            let problem = is_json(&headers(&[("content-type", bad)])).unwrap_err();
            assert_eq!(problem.code, Code::UnsupportedMediaType, "{bad}");
        }
        is_json(&HeaderMap::new()).unwrap_err();
    }
}
