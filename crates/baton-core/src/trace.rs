//! W3C trace context, which correlates logs, spans, audit entries and errors of a request.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Maximum bytes and members of a `tracestate`; a longer one is dropped.
const MOST_STATE: usize = 512;
const MOST_MEMBERS: usize = 32;

/// The `traceparent` of a request: its trace and parent span. Serialized as text, followed by a space and the `tracestate` if
/// there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceParent {
    trace_id: u128,
    span_id: u64,
    pub is_sampled: bool,
    /// The `tracestate`: vendor data to propagate.
    state: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a traceparent: it looks like 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")]
pub struct InvalidTraceParent;

impl TraceParent {
    /// `None` if an id is zero, which W3C trace context reserves as invalid.
    pub fn new(trace_id: u128, span_id: u64, is_sampled: bool) -> Option<Self> {
        (trace_id != 0 && span_id != 0).then_some(Self { trace_id, span_id, is_sampled, state: None })
    }

    /// Parses any version except `ff`; fields that later versions add are ignored.
    pub fn parse(text: &str) -> Result<Self, InvalidTraceParent> {
        let mut fields = text.trim().split('-');
        let mut next = |length: usize| {
            let is_hex = |field: &&str| {
                field.len() == length
                    && field.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            };
            fields.next().filter(is_hex).ok_or(InvalidTraceParent)
        };
        let (version, trace, span, flags) = (next(2)?, next(32)?, next(16)?, next(2)?);
        if version == "ff" || (version == "00" && fields.next().is_some()) {
            return Err(InvalidTraceParent);
        }
        let trace_id = u128::from_str_radix(trace, 16).map_err(|_| InvalidTraceParent)?;
        let span_id = u64::from_str_radix(span, 16).map_err(|_| InvalidTraceParent)?;
        let flags = u8::from_str_radix(flags, 16).map_err(|_| InvalidTraceParent)?;
        Self::new(trace_id, span_id, flags & 1 == 1).ok_or(InvalidTraceParent)
    }

    /// Adds a `tracestate`. An invalid one is dropped, and the trace itself is kept.
    #[must_use]
    pub fn with_state(self, state: &str) -> Self {
        let state = state.trim();
        let members = || state.split(',').map(str::trim).filter(|member| !member.is_empty());
        let is_valid = state.len() <= MOST_STATE
            && (1..=MOST_MEMBERS).contains(&members().count())
            && members().all(is_member);
        Self { state: is_valid.then(|| state.into()), ..self }
    }

    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// The same trace with another parent span. 0 keeps the current one.
    #[must_use]
    pub fn at_span(&self, span_id: u64) -> Self {
        Self { span_id: if span_id == 0 { self.span_id } else { span_id }, ..self.clone() }
    }

    pub fn ids(&self) -> (u128, u64) {
        (self.trace_id, self.span_id)
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.is_sampled))
    }
}

impl TryFrom<String> for TraceParent {
    type Error = InvalidTraceParent;
    fn try_from(text: String) -> Result<Self, InvalidTraceParent> {
        match text.split_once(' ') {
            Some((parent, state)) => Self::parse(parent).map(|parent| parent.with_state(state)),
            None => Self::parse(&text),
        }
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> Self {
        parent.state().map_or_else(|| parent.to_string(), |state| format!("{parent} {state}"))
    }
}

/// `vendor=value` or `tenant@vendor=value`.
fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else { return false };
    let allowed =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b'*' | b'/' | b'@');
    let begins = key.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let is_name = begins && key.len() <= 256 && key.bytes().all(allowed) && key.matches('@').count() <= 1;
    let in_value = |b: u8| (b' '..=b'~').contains(&b) && b != b'=';
    is_name && (1..=256).contains(&value.len()) && value.bytes().all(in_value)
}

#[cfg(test)]
mod tests {
    use super::TraceParent;

    #[test]
    fn a_traceparent_is_read_and_written() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = TraceParent::parse(text).unwrap();
        assert_eq!(parent.to_string(), text);
        assert_eq!(parent.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(TraceParent::parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later").is_ok());
        for bad in [
            "",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        ] {
            assert!(TraceParent::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_tracestate_goes_along_if_it_is_valid() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = || TraceParent::parse(text).unwrap();
        let stated = parent().with_state(" rojo=00f067aa0ba902b7,congo@t=t61 rcWk ");
        assert_eq!(stated.state(), Some("rojo=00f067aa0ba902b7,congo@t=t61 rcWk"));
        assert_eq!(stated.to_string(), text, "the header of its own has no state");
        let kept = String::from(stated.clone());
        assert_eq!(TraceParent::try_from(kept).unwrap(), stated);
        let many = vec!["a=1"; 33].join(",");
        let long = format!("a={}", "x".repeat(600));
        for bad in ["", " , ", "A=1", "a", "a=", "a=b=c", "a=\u{e4}", "@a=1", "a=1\r\nx: y", &many, &long] {
            assert_eq!(parent().with_state(bad).state(), None, "{bad}");
        }
    }
}
