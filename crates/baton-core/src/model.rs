//! The trait for language models: each provider is a [`Model`].

use std::fmt;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use serde_json::Value;

use crate::agent::Sampling;
use crate::chat::Messages;
use crate::choices;
use crate::id::{AgentName, ToolCallId};
use crate::media::ProducedFile;
use crate::tool::ToolSpec;
use crate::trace::TraceParent;
use crate::usage::{Price, Tokens};
use crate::workflow::WorkflowGuide;

/// A provider of models. One call is one attempt: the engine adds retries, fallbacks, timeouts and accounting.
pub trait Model: Send + Sync + fmt::Debug {
    /// `openai`, `anthropic`, …: the first part of `provider/model`.
    fn provider(&self) -> &str;

    /// Starts a call. The request is read before this returns. Nothing is sent before the stream is polled, and dropping the
    /// stream closes the connection immediately.
    ///
    /// An error is always the last item. A stream that ends without [`Chunk::Done`] or an error was cut off; adapters report
    /// that as [`ModelErrorKind::Malformed`].
    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream;

    /// Known properties of a model.
    fn facts(&self, model: &str) -> ModelFacts;

    /// Asks the endpoint for properties of a model, unless they are known. [`Model::facts`] has them afterwards. Takes at most about
    /// a second, and a failure changes nothing.
    fn learn<'a>(&'a self, _model: &'a str) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(std::future::ready(()))
    }

    /// The rules that guide users through workflows in place of this model. `None` for language models, which do this
    /// themselves.
    fn workflow_guide(&self) -> Option<Arc<dyn WorkflowGuide>> {
        None
    }
}

pub type ReplyStream = Pin<Box<dyn Stream<Item = Result<Chunk, ModelError>> + Send>>;

/// The input of a model call. Borrowed, so that a long conversation is not copied for each turn.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The calling agent. Not sent to providers; scripted models and traces use it.
    pub agent: &'a AgentName,
    /// The second part of `provider/model`.
    pub model: &'a str,
    pub system: &'a str,
    pub messages: Messages<'a>,
    pub tools: &'a [&'a ToolSpec],
    pub tool_choice: ToolChoice,
    pub sampling: &'a Sampling,
    /// JSON Schema that the answer must satisfy.
    pub output_schema: Option<&'a Value>,
    /// What the model accepts. Requests leave out what it does not.
    pub supports: ModelSupport,
    /// Trace context to propagate.
    pub trace: Option<&'a TraceParent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolChoice {
    #[default]
    Auto,
    /// Text only. Tools are still described, because earlier turns used them.
    None,
    Required,
}

/// A piece of a reply, in order of arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    Text(String),
    Reasoning(String),
    /// Signs the reasoning so far and ends it.
    ReasoningSignature(String),
    /// Starts a call. `index` distinguishes parallel calls, whose arguments may interleave.
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
    /// An image or another file that the model made.
    File(ProducedFile),
    /// Totals so far; replaces the previous ones.
    Tokens(Tokens),
    /// The last item.
    Done(Finish),
}

choices! {
    /// Why a reply ended.
    pub enum Finish {
        Stop = "stop",
        ToolCalls = "tool_calls",
        /// The output limit was reached.
        Length = "length",
        ContentFilter = "content_filter",
        Other = "other",
    }
}

/// What is known about a model, from Baton's own table, the endpoint or the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelFacts {
    /// `None` is an unknown price, and is reported as unknown.
    pub price: Option<Price>,
    /// Maximum number of tokens of one call, input and output together.
    pub context_window: Option<u64>,
    /// Limit on the tokens of a reply, for agents whose file sets none.
    pub max_output_tokens: Option<u32>,
    pub supports: ModelSupport,
    pub assists: ModelAssists,
    pub timeouts: CallTimeouts,
}

/// What a model and its endpoint accept. An unknown model is assumed to accept everything but images in tool results.
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own in baton.toml")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelSupport {
    pub tools: bool,
    /// Several tool calls in one reply.
    pub parallel_calls: bool,
    /// Replies that follow a JSON Schema.
    pub structured_output: bool,
    /// `tool_choice: required`.
    pub tool_choice: bool,
    /// Images in results of tools. A model without it reads their names, types and sizes: a request with an image would fail.
    pub images: bool,
}

impl Default for ModelSupport {
    fn default() -> Self {
        Self { tools: true, parallel_calls: true, structured_output: true, tool_choice: true, images: false }
    }
}

/// How long calls of a model may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimeouts {
    /// Time to the first token. `None`: the engine's default, multiplied by `factor`.
    pub first_token: Option<Duration>,
    /// Time between two tokens. `None`: the engine's default, multiplied by `factor`.
    pub silence: Option<Duration>,
    /// Multiplies the time limits of agent files, which are written for hosted models.
    pub factor: NonZeroU32,
    /// Whether `factor` only counts until the engine has measured the model's speed.
    pub is_measured: bool,
}

impl Default for CallTimeouts {
    fn default() -> Self {
        Self { first_token: None, silence: None, factor: NonZeroU32::MIN, is_measured: false }
    }
}

/// How the engine helps a model that does not call tools reliably. Each can be turned off per model.
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own in baton.toml")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelAssists {
    /// Searches, or asks again once, if an agent with `grounding: required` answers without a tool result.
    pub grounding: bool,
    /// Searches for the question before the first turn of an agent with `grounding: required`. Only for small models: others
    /// search with better words.
    pub search_first: bool,
    /// Executes a tool call that the model wrote as text.
    pub text_tool_calls: bool,
    /// Reads the values of a workflow from the user's message if the holder's model does not record them.
    pub workflow_values: bool,
    /// Refuses values of a workflow that the model records although the user's message does not contain them. Only for small
    /// models: others may put things in their own words.
    pub workflow_evidence: bool,
    /// Offers each agent that may be called as a tool of its own, in place of `call_agent`.
    pub agent_tools: bool,
    /// Tells a router which descriptions share words with the request, and asks it for the agent alone, without a reason. Only for
    /// small models.
    pub routing_words: bool,
    /// Lets the model only answer after two turns in a row made the same tool calls. Only for small models: others may poll.
    pub repeated_calls: bool,
}

impl Default for ModelAssists {
    fn default() -> Self {
        Self {
            grounding: true,
            search_first: false,
            text_tool_calls: true,
            workflow_values: true,
            workflow_evidence: false,
            agent_tools: true,
            routing_words: false,
            repeated_calls: false,
        }
    }
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider}: {kind}: {message}")]
pub struct ModelError {
    pub kind: ModelErrorKind,
    pub provider: String,
    /// The provider's message, without secrets.
    pub message: String,
    pub status: Option<u16>,
    pub request_id: Option<String>,
    /// The delay that the provider requests.
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
    /// Kinds of errors. The words are stable error codes.
    pub enum ModelErrorKind {
        /// The key is missing, invalid or lacks a permission.
        Auth = "auth",
        RateLimit = "rate_limit",
        Overloaded = "overloaded",
        ContextTooLong = "context_too_long",
        ContentFilter = "content_filter",
        InvalidRequest = "invalid_request",
        /// The connection failed or broke.
        Transport = "transport",
        /// The connection was refused: nothing listens at the address, perhaps because a server is still starting.
        Unreachable = "unreachable",
        /// No data within the time limit.
        Timeout = "timeout",
        /// The response violates the protocol, or was cut off.
        Malformed = "malformed_stream",
    }
}

impl ModelErrorKind {
    /// Whether a retry may succeed. A model call has no side effects, so a retry is always safe.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::RateLimit
                | Self::Overloaded
                | Self::Transport
                | Self::Unreachable
                | Self::Timeout
                | Self::Malformed
        )
    }
}
