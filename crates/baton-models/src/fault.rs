//! What went wrong with a call, before it is told to anybody.

use std::time::Duration;

use baton_core::ModelErrorKind;
use serde_json::Value;

use crate::retry_after::seconds;

/// Longer texts are help pages, not messages.
const MAX_MESSAGE_CHARS: usize = 500;

/// A [`baton_core::ModelError`] in the making: it does not know its provider yet and may still hold a key that the
/// provider quoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelFault {
    pub kind: ModelErrorKind,
    pub message: String,
    pub status: Option<u16>,
    pub request_id: Option<String>,
    pub retry_after: Option<Duration>,
}

impl ModelFault {
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), status: None, request_id: None, retry_after: None }
    }

    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Malformed, message)
    }

    /// The body ended cleanly, but the reply did not.
    pub fn cut() -> Self {
        Self::malformed("the answer was cut before its end")
    }

    pub fn not_json(error: &serde_json::Error) -> Self {
        Self::malformed(format!("a frame cannot be read: {error}"))
    }

    /// What a body of the given HTTP status says. `None` for a status that promised an answer.
    pub fn from_body(status: Option<u16>, body: &str) -> Self {
        let complaint = serde_json::from_str::<Value>(body).ok().and_then(|body| Complaint::find(&body));
        if let Some(complaint) = complaint {
            return complaint.into_fault(status);
        }
        let message = match (brief(body), status) {
            (text, Some(status)) if text.is_empty() => format!("HTTP status {status} without an explanation"),
            (text, _) => text,
        };
        let kind = kind_of("", &message, status).unwrap_or(ModelErrorKind::Malformed);
        Self { status, ..Self::new(kind, message) }
    }

    /// An error object in the middle of a stream.
    pub fn from_error(error: &Value) -> Self {
        Complaint::read(error).into_fault(None)
    }
}

/// What a provider complains about.
struct Complaint {
    message: String,
    /// Its words for the kind of error, lower-case: type, code, status, reasons.
    words: String,
    status: Option<u16>,
    retry_after: Option<Duration>,
}

impl Complaint {
    /// Every shape in use: `{"error": {…}}`, `{"error": "…"}`, `[{"error": {…}}]`, `{"message": "…"}`, `{"detail": …}`.
    fn find(body: &Value) -> Option<Self> {
        let body = body.get(0).unwrap_or(body);
        match body.get("error") {
            Some(error) if !error.is_null() => Some(Self::read(error)),
            _ if body.get("message").or(body.get("detail")).is_some() => Some(Self::read(body)),
            _ => None,
        }
    }

    fn read(error: &Value) -> Self {
        let word = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
        let details = error.get("details").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let detail = |key: &str| details.iter().find_map(|detail| detail.get(key)?.as_str());
        let reason = detail("reason").unwrap_or_default();
        let words = format!("{} {} {} {reason}", word("type"), word("code"), word("status")).to_lowercase();
        let code = error.get("code");
        let numeric = code.and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
        Self {
            message: brief(&message(error)),
            words,
            status: numeric
                .and_then(|code| u16::try_from(code).ok())
                .filter(|code| (400..600).contains(code)),
            retry_after: detail("retryDelay").and_then(|delay| seconds(delay.strip_suffix('s')?)),
        }
    }

    /// An error that comes after the answer began and does not say what it is, is the provider's.
    fn into_fault(self, status: Option<u16>) -> ModelFault {
        let status = status.or(self.status);
        let kind = kind_of(&self.words, &self.message, status).unwrap_or(ModelErrorKind::Overloaded);
        ModelFault { status, retry_after: self.retry_after, ..ModelFault::new(kind, self.message) }
    }
}

fn message(error: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let message = error.get("message").or(error.get("detail")).map_or_else(|| text(error), text);
    // OpenRouter puts the words of the provider behind it here.
    match error.pointer("/metadata/raw").and_then(Value::as_str) {
        Some(raw) => format!("{message}: {raw}"),
        None => message,
    }
}

/// One line of at most 500 characters.
pub(crate) fn brief(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if let Some((at, _)) = line.char_indices().nth(MAX_MESSAGE_CHARS) {
            line.truncate(at);
            line.push('…');
            break;
        }
    }
    line
}

/// Words that mean one thing whatever the status is. The first that is found counts.
const WORDS: &[(&str, ModelErrorKind)] = &[
    ("context_length", ModelErrorKind::ContextTooLong),
    ("exceed_context_size", ModelErrorKind::ContextTooLong),
    ("request_too_large", ModelErrorKind::ContextTooLong),
    ("content_filter", ModelErrorKind::ContentFilter),
    ("content_policy", ModelErrorKind::ContentFilter),
    // Waiting does not help an empty account, though it comes as 429.
    ("insufficient_quota", ModelErrorKind::Auth),
    ("billing", ModelErrorKind::Auth),
    ("authentication", ModelErrorKind::Auth),
    ("unauthenticated", ModelErrorKind::Auth),
    ("permission", ModelErrorKind::Auth),
    ("api_key", ModelErrorKind::Auth),
    ("rate_limit", ModelErrorKind::RateLimit),
    ("resource_exhausted", ModelErrorKind::RateLimit),
    ("overloaded", ModelErrorKind::Overloaded),
    ("unavailable", ModelErrorKind::Overloaded),
    ("server_error", ModelErrorKind::Overloaded),
    ("api_error", ModelErrorKind::Overloaded),
];

/// How providers without a word for it say that the conversation is too long.
const TOO_LONG: &[&str] = &[
    "maximum context length",
    "context window",
    "context length",
    "context size",
    "prompt is too long",
    "input is too long",
    "exceeds the maximum number of tokens",
];

fn kind_of(words: &str, message: &str, status: Option<u16>) -> Option<ModelErrorKind> {
    let message = message.to_lowercase();
    let is_too_long = || TOO_LONG.iter().any(|phrase| message.contains(phrase));
    let by_word = WORDS.iter().find(|(word, _)| words.contains(word)).map(|(_, kind)| *kind);
    by_word.or_else(|| match status {
        Some(400 | 413 | 422) | None if is_too_long() => Some(ModelErrorKind::ContextTooLong),
        Some(status) => Some(kind_of_status(status)),
        None if words.contains("invalid") || words.contains("not_found") => {
            Some(ModelErrorKind::InvalidRequest)
        }
        None => None,
    })
}

fn kind_of_status(status: u16) -> ModelErrorKind {
    match status {
        401..=403 => ModelErrorKind::Auth,
        408 => ModelErrorKind::Timeout,
        413 => ModelErrorKind::ContextTooLong,
        429 => ModelErrorKind::RateLimit,
        500.. => ModelErrorKind::Overloaded,
        _ => ModelErrorKind::InvalidRequest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        use ModelErrorKind as Kind;
        let cases = [
            (
                401,
                r#"{"error":{"message":"bad key","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                Kind::Auth,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
                Kind::Auth,
            ),
            (429, r#"{"error":{"message":"no money","code":"insufficient_quota"}}"#, Kind::Auth),
            (429, r#"{"error":{"message":"slow down","type":"tokens"}}"#, Kind::RateLimit),
            (
                400,
                r#"{"error":{"message":"too much","code":"context_length_exceeded"}}"#,
                Kind::ContextTooLong,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens"}}"#,
                Kind::ContextTooLong,
            ),
            (400, r#"{"error":{"message":"filtered","code":"content_filter"}}"#, Kind::ContentFilter),
            (404, r#"{"error":"model \"x\" not found"}"#, Kind::InvalidRequest),
            (422, r#"{"detail":[{"msg":"Extra inputs are not permitted"}]}"#, Kind::InvalidRequest),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Kind::Overloaded,
            ),
            (500, "", Kind::Overloaded),
            (408, "late", Kind::Timeout),
            (307, "", Kind::InvalidRequest),
        ];
        for (status, body, kind) in cases {
            assert_eq!(ModelFault::from_body(Some(status), body).kind, kind, "{status} {body}");
        }
    }

    #[test]
    fn errors_under_a_good_status() {
        let fault = ModelFault::from_body(
            None,
            r#"{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"boom"}}}"#,
        );
        assert_eq!((fault.status, fault.kind), (Some(502), ModelErrorKind::Overloaded));
        assert_eq!(fault.message, "Provider returned error: boom");
        let fault = ModelFault::from_body(None, "<html>Welcome</html>");
        assert_eq!((fault.kind, fault.message.as_str()), (ModelErrorKind::Malformed, "<html>Welcome</html>"));
    }

    #[test]
    fn gemini_says_when() {
        let body = r#"[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x"},{"retryDelay":"13.5s"}]}}]"#;
        let fault = ModelFault::from_body(Some(429), body);
        assert_eq!(fault.kind, ModelErrorKind::RateLimit);
        assert_eq!(fault.retry_after, Some(Duration::from_millis(13_500)));
    }

    #[test]
    fn messages_are_one_short_line() {
        let fault = ModelFault::from_body(Some(400), &format!("a\n\tb \u{1b}[31m {}", "ä".repeat(600)));
        assert!(fault.message.starts_with("a b [31m ä"));
        assert_eq!(fault.message.chars().count(), MAX_MESSAGE_CHARS + 1);
    }
}
