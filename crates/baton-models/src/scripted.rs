//! A model that says what a test wrote down.
//!
//! A script is a list of turns per agent: text in chosen chunks, tool calls, errors, pauses. What is asked is kept, so that
//! a test can look at it. Turns of one agent are played in order; an agent without turns left fails loudly.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baton_core::chat::ChatMessage;
use baton_core::model::{
    Chunk, Finish, Model, ModelAssists, ModelError, ModelErrorKind, ModelFacts, ModelRequest, ReplyStream,
    ToolChoice,
};
use baton_core::usage::{Price, Tokens};
use baton_core::{ProducedFile, ToolCallId, Usd};
use futures_util::stream;
use serde_json::Value;
use tokio::sync::Semaphore;

/// One turn: what happens, in order.
#[derive(Debug, Clone, Default)]
pub struct ScriptedTurn {
    steps: Vec<ScriptStep>,
    calls: u32,
    ends: bool,
}

#[derive(Debug, Clone)]
enum ScriptStep {
    Chunk(Chunk),
    Wait(Duration),
    Gate(Arc<Semaphore>),
    Fail(ModelError),
}

impl ScriptedTurn {
    /// A whole answer in one chunk.
    pub fn text(text: &str) -> Self {
        Self::default().say(text)
    }

    /// One tool call.
    pub fn call(tool: &str, arguments: &Value) -> Self {
        Self::default().and_call(tool, arguments)
    }

    /// An error before anything was said.
    pub fn error(kind: ModelErrorKind) -> Self {
        Self::default().fail(kind)
    }

    /// A chunk of text.
    #[must_use]
    pub fn say(mut self, chunk: &str) -> Self {
        self.steps.push(ScriptStep::Chunk(Chunk::Text(chunk.to_owned())));
        self
    }

    /// An image or another file that the model makes.
    #[must_use]
    pub fn make(mut self, file: ProducedFile) -> Self {
        self.steps.push(ScriptStep::Chunk(Chunk::File(file)));
        self
    }

    #[must_use]
    pub fn think(mut self, chunk: &str) -> Self {
        self.steps.push(ScriptStep::Chunk(Chunk::Reasoning(chunk.to_owned())));
        self
    }

    #[must_use]
    pub fn and_call(self, tool: &str, arguments: &Value) -> Self {
        self.and_raw_call(tool, &arguments.to_string())
    }

    /// A call whose arguments are just text, for models that write nonsense.
    #[must_use]
    pub fn and_raw_call(mut self, tool: &str, arguments: &str) -> Self {
        let index = self.calls;
        self.calls += 1;
        let id = ToolCallId::parse(&format!("call_{}", index + 1)).expect("a short id");
        self.steps.push(ScriptStep::Chunk(Chunk::Call { index, id, name: tool.to_owned(), signature: None }));
        self.steps.push(ScriptStep::Chunk(Chunk::Arguments { index, delta: arguments.to_owned() }));
        self
    }

    #[must_use]
    pub fn wait(mut self, time: Duration) -> Self {
        self.steps.push(ScriptStep::Wait(time));
        self
    }

    /// Goes on when the gate has a permit for it: tests that look at a run in the middle need no clock.
    #[must_use]
    pub fn until(mut self, gate: &Arc<Semaphore>) -> Self {
        self.steps.push(ScriptStep::Gate(Arc::clone(gate)));
        self
    }

    #[must_use]
    pub fn tokens(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        let tokens = Tokens { input_tokens, output_tokens, ..Tokens::default() };
        self.steps.push(ScriptStep::Chunk(Chunk::Tokens(tokens)));
        self
    }

    #[must_use]
    pub fn fail(mut self, kind: ModelErrorKind) -> Self {
        self.steps.push(ScriptStep::Fail(ModelError::new(kind, "scripted", "as the script says")));
        self.ends = true;
        self
    }

    /// An error with the wait that the provider asks for.
    #[must_use]
    pub fn fail_and_retry_after(mut self, kind: ModelErrorKind, wait: Duration) -> Self {
        let mut error = ModelError::new(kind, "scripted", "as the script says");
        error.retry_after = Some(wait);
        self.steps.push(ScriptStep::Fail(error));
        self.ends = true;
        self
    }

    /// The connection breaks: no end, no error.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.ends = true;
        self
    }

    /// The answer meets the provider's own limit.
    #[must_use]
    pub fn too_long(mut self) -> Self {
        self.steps.push(ScriptStep::Chunk(Chunk::Done(Finish::Length)));
        self.ends = true;
        self
    }

    /// The last thing heard before silence without end.
    #[must_use]
    pub fn hang(self) -> Self {
        self.wait(Duration::from_hours(24 * 365))
    }

    fn into_steps(mut self) -> Vec<ScriptStep> {
        if !self.ends {
            let finish = if self.calls > 0 { Finish::ToolCalls } else { Finish::Stop };
            self.steps.push(ScriptStep::Chunk(Chunk::Done(finish)));
        }
        self.steps
    }
}

/// What a model was asked.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub agent: String,
    pub model: String,
    pub system: String,
    pub messages: Vec<ChatMessage>,
    pub tools: Vec<String>,
    pub tool_choice: ToolChoice,
    pub max_output_tokens: Option<u32>,
    /// Whether JSON of a schema was asked for.
    pub output_schema: bool,
    /// The `traceparent` that a provider would get.
    pub traceparent: Option<String>,
}

/// The provider `scripted`.
#[derive(Debug, Clone)]
pub struct Scripted {
    provider: String,
    state: Arc<Mutex<ScriptState>>,
    facts: ModelFacts,
}

#[derive(Debug, Default)]
struct ScriptState {
    turns: HashMap<String, VecDeque<ScriptedTurn>>,
    asked: Vec<RecordedRequest>,
}

impl Default for Scripted {
    fn default() -> Self {
        Self::named("scripted")
    }
}

impl Scripted {
    /// Under another name, for tests with several providers. A dollar per million tokens either way.
    pub fn named(provider: &str) -> Self {
        let dollar = Usd::from_nanos(1_000_000_000);
        let price = Price::flat(dollar);
        // The engine asks nothing that a test did not write an answer for.
        let context_window = Some(128_000);
        let assists = ModelAssists { workflow_values: false, agent_tools: false, ..ModelAssists::default() };
        let facts = ModelFacts { price: Some(price), context_window, assists, ..ModelFacts::default() };
        Self { provider: provider.to_owned(), state: Arc::default(), facts }
    }

    #[must_use]
    pub fn with_facts(mut self, facts: ModelFacts) -> Self {
        self.facts = facts;
        self
    }

    /// Adds turns to what `agent` will say.
    #[must_use]
    pub fn script(self, agent: &str, turns: impl IntoIterator<Item = ScriptedTurn>) -> Self {
        self.state().turns.entry(agent.to_owned()).or_default().extend(turns);
        self
    }

    /// Everything that was asked so far.
    pub fn asked(&self) -> Vec<RecordedRequest> {
        self.state().asked.clone()
    }

    /// Turns that were not played.
    pub fn left(&self) -> usize {
        self.state().turns.values().map(VecDeque::len).sum()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for Scripted {
    fn provider(&self) -> &str {
        &self.provider
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        let mut state = self.state();
        state.asked.push(RecordedRequest {
            agent: request.agent.to_string(),
            model: request.model.to_owned(),
            system: request.system.to_owned(),
            messages: request.messages.iter().cloned().collect(),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
            tool_choice: request.tool_choice,
            max_output_tokens: request.sampling.max_output_tokens,
            output_schema: request.output_schema.is_some(),
            traceparent: request.trace.map(ToString::to_string),
        });
        let turn = state.turns.get_mut(request.agent.as_str()).and_then(VecDeque::pop_front);
        let no_turn_left = || {
            let message = format!("the script has no turn left for `{}`", request.agent);
            vec![ScriptStep::Fail(ModelError::new(ModelErrorKind::InvalidRequest, &self.provider, message))]
        };
        let steps = turn.map_or_else(no_turn_left, ScriptedTurn::into_steps);
        Box::pin(stream::unfold(steps.into_iter(), |mut steps| async move {
            loop {
                match steps.next()? {
                    ScriptStep::Chunk(chunk) => return Some((Ok(chunk), steps)),
                    ScriptStep::Fail(error) => return Some((Err(error), steps)),
                    ScriptStep::Wait(time) => tokio::time::sleep(time).await,
                    ScriptStep::Gate(gate) => gate.acquire().await.ok()?.forget(),
                }
            }
        }))
    }

    fn facts(&self, _model: &str) -> ModelFacts {
        self.facts
    }
}
