//! The seam to language models: one provider is one [`Model`].

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;
use serde_json::Value;

use crate::agent::Sampling;
use crate::chat::Messages;
use crate::choices;
use crate::id::{AgentName, ToolCallId};
use crate::tool::ToolSpec;
use crate::trace::TraceParent;
use crate::usage::{Price, Tokens};

/// A provider of models. One call is one attempt: retries, fallbacks, timeouts and accounting are the engine's.
pub trait Model: Send + Sync + fmt::Debug {
    /// `openai`, `anthropic`, …: the first half of `provider/model`.
    fn provider(&self) -> &str;

    /// Starts a call. The request is read before this returns; nothing is sent before the stream is polled, and
    /// dropping the stream closes the connection at once.
    ///
    /// A stream that ends without [`Chunk::Done`] or an error was cut; adapters report that as
    /// [`ModelErrorKind::Malformed`]. An error is always the last item.
    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream;

    /// What is known about one of its models.
    fn facts(&self, model: &str) -> ModelFacts;

    /// Whether it only stands in for a language model. What needs one is then done by rules, where there are some.
    fn is_stand_in(&self) -> bool {
        false
    }
}

pub type ReplyStream = Pin<Box<dyn Stream<Item = Result<Chunk, ModelError>> + Send>>;

/// Everything a model is told. Borrowed: a long conversation is never copied for a turn.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// Who asks. Providers do not see it; scripted models and traces do.
    pub agent: &'a AgentName,
    /// The second half of `provider/model`.
    pub model: &'a str,
    pub system: &'a str,
    pub messages: Messages<'a>,
    pub tools: &'a [&'a ToolSpec],
    pub tool_choice: ToolChoice<'a>,
    pub sampling: &'a Sampling,
    /// The answer must be JSON of this schema.
    pub output_schema: Option<&'a Value>,
    /// The trace that the call belongs to, for whoever answers it.
    pub trace: Option<&'a TraceParent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolChoice<'a> {
    #[default]
    Auto,
    /// Text only, though tools are described because earlier turns used them.
    None,
    Required,
    Named(&'a str),
}

/// A piece of a reply, in the order in which it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    Text(String),
    Reasoning(String),
    /// Belongs to the reasoning so far and ends it.
    ReasoningSignature(String),
    /// A call begins. `index` tells parallel calls apart; their arguments may interleave.
    Call {
        index: u32,
        id: ToolCallId,
        name: String,
        signature: Option<String>,
    },
    Arguments {
        index: u32,
        delta: String,
    },
    /// Totals so far; a later one replaces an earlier one.
    Tokens(Tokens),
    /// The end. Nothing follows.
    Done(Finish),
}

choices! {
    /// Why a reply ended.
    pub enum Finish {
        Stop = "stop",
        ToolCalls = "tool_calls",
        /// The output limit was met in the middle.
        Length = "length",
        ContentFilter = "content_filter",
        Other = "other",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelFacts {
    /// `None`: unknown, and shown as unknown.
    pub price: Option<Price>,
    /// How many tokens fit into one call, input and output together.
    pub context_window: Option<u64>,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider}: {kind}: {message}")]
pub struct ModelError {
    pub kind: ModelErrorKind,
    pub provider: String,
    /// The provider's own words, without secrets.
    pub message: String,
    pub status: Option<u16>,
    pub request_id: Option<String>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
}

impl ModelError {
    pub fn new(kind: ModelErrorKind, provider: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            provider: provider.to_owned(),
            message: message.into(),
            status: None,
            request_id: None,
            retry_after: None,
        }
    }
}

choices! {
    /// Kinds that callers treat differently. The words are stable error codes.
    pub enum ModelErrorKind {
        /// No key, a wrong one, or one without the right.
        Auth = "auth",
        RateLimit = "rate_limit",
        Overloaded = "overloaded",
        ContextTooLong = "context_too_long",
        ContentFilter = "content_filter",
        InvalidRequest = "invalid_request",
        /// No connection, or it broke.
        Transport = "transport",
        /// No sign of life within the time allowed.
        Timeout = "timeout",
        /// The answer is not what the protocol promises, or it was cut.
        Malformed = "malformed_stream",
    }
}

impl ModelErrorKind {
    /// Whether the same call may succeed later. A model call changes nothing, so repeating it is always safe; it is
    /// only useful for these.
    pub fn is_passing(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Transport | Self::Timeout | Self::Malformed)
    }
}
