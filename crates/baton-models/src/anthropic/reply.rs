//! The events of a streamed message.

use baton_core::Chunk;
use baton_core::model::Finish;
use baton_core::usage::Tokens;
use serde::Deserialize;
use serde_json::Value;

use super::{redacted_signer, signer};
use crate::answer::Decode;
use crate::calls::Calls;
use crate::fault::Fault;
use crate::frames::Frame;
use crate::signature::seal;
use crate::tool_names::ToolNames;

#[derive(Debug)]
pub(crate) struct Decoder {
    calls: Calls,
    model: String,
    /// Of the thought that is being written; it is complete when its block stops.
    signature: String,
    usage: Usage,
    finish: Option<Finish>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop,
    MessageDelta {
        delta: Stop,
        usage: Option<Usage>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    /// `ping`, and whatever will be added.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Option<Value>,
    },
    RedactedThinking {
        data: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Stop {
    stop_reason: Option<String>,
}

/// Counts so far. A later event repeats some of them and leaves others out.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct Usage {
    #[serde(rename = "input_tokens")]
    input: Option<u64>,
    #[serde(rename = "output_tokens")]
    output: Option<u64>,
    #[serde(rename = "cache_read_input_tokens")]
    cache_read: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens")]
    cache_creation: Option<u64>,
}

impl Usage {
    fn update(&mut self, later: Self) {
        self.input = later.input.or(self.input);
        self.output = later.output.or(self.output);
        self.cache_read = later.cache_read.or(self.cache_read);
        self.cache_creation = later.cache_creation.or(self.cache_creation);
    }

    /// What was read from or written to the cache is not part of `input_tokens` on this wire.
    fn tokens(self) -> Tokens {
        let cached = self.cache_read.unwrap_or(0);
        let fresh = self.input.unwrap_or(0);
        let written = self.cache_creation.unwrap_or(0);
        Tokens {
            input_tokens: fresh.saturating_add(written).saturating_add(cached),
            output_tokens: self.output.unwrap_or(0),
            cached_tokens: cached,
            reasoning_tokens: 0,
        }
    }
}

impl Decoder {
    pub fn new(names: ToolNames, model: &str) -> Self {
        let calls = Calls::new(names);
        Self {
            calls,
            model: model.to_owned(),
            signature: String::new(),
            usage: Usage::default(),
            finish: None,
        }
    }

    fn begin(&mut self, index: u64, block: Block, ready: &mut Vec<Chunk>) -> Result<(), Fault> {
        match block {
            Block::Text { text } => say(text, Chunk::Text, ready),
            Block::ToolUse { id, name, input } => {
                let index = self.calls.begin(Some(index), Some(&id), &name, None, ready)?;
                // Mostly an empty object, which the deltas then fill.
                let input = input.filter(|input| input.as_object().is_some_and(|fields| !fields.is_empty()));
                self.calls.arguments(index, input.map(|input| input.to_string()).unwrap_or_default(), ready);
            }
            Block::RedactedThinking { data } => {
                ready.push(Chunk::ReasoningSignature(seal(&redacted_signer(&self.model), &data)));
            }
            Block::Other => {}
        }
        Ok(())
    }

    fn go_on(&mut self, index: u64, delta: Delta, ready: &mut Vec<Chunk>) {
        match delta {
            Delta::Text { text } => say(text, Chunk::Text, ready),
            Delta::Thinking { thinking } => say(thinking, Chunk::Reasoning, ready),
            Delta::Signature { signature } => self.signature.push_str(&signature),
            Delta::InputJson { partial_json } => {
                if let Some(index) = self.calls.find(Some(index)) {
                    self.calls.arguments(index, partial_json, ready);
                }
            }
            Delta::Other => {}
        }
    }

    fn stop_block(&mut self, ready: &mut Vec<Chunk>) {
        let signature = std::mem::take(&mut self.signature);
        if !signature.is_empty() {
            ready.push(Chunk::ReasoningSignature(seal(&signer(&self.model), &signature)));
        }
    }

    fn count(&mut self, usage: Option<Usage>, ready: &mut Vec<Chunk>) {
        if let Some(usage) = usage {
            self.usage.update(usage);
            ready.push(Chunk::Tokens(self.usage.tokens()));
        }
    }
}

impl Decode for Decoder {
    fn frame(&mut self, frame: Frame<'_>, ready: &mut Vec<Chunk>) -> Result<Option<Finish>, Fault> {
        if frame.data.trim().is_empty() {
            return Ok(None);
        }
        let event: Event = serde_json::from_str(frame.data).map_err(|_| {
            // An error of a gateway has no `type`.
            let fault = Fault::from_body(None, frame.data);
            Fault { message: format!("an event cannot be read: {}", fault.message), ..fault }
        })?;
        match event {
            Event::MessageStart { message } => self.count(message.usage, ready),
            Event::ContentBlockStart { index, content_block } => self.begin(index, content_block, ready)?,
            Event::ContentBlockDelta { index, delta } => self.go_on(index, delta, ready),
            Event::ContentBlockStop => self.stop_block(ready),
            Event::MessageDelta { delta, usage } => {
                self.finish = delta.stop_reason.as_deref().map(finish).or(self.finish);
                self.count(usage, ready);
            }
            Event::MessageStop => {
                self.finish.get_or_insert(Finish::Other);
                return self.end(ready).map(Some);
            }
            Event::Error { error } => return Err(Fault::from_error(&error)),
            Event::Other => {}
        }
        Ok(None)
    }

    /// A gateway that loses the last event loses nothing of the message.
    fn end(&mut self, ready: &mut Vec<Chunk>) -> Result<Finish, Fault> {
        let finish = self.finish.ok_or_else(Fault::cut)?;
        self.calls.complete(ready);
        Ok(finish)
    }
}

fn say(text: String, chunk: fn(String) -> Chunk, ready: &mut Vec<Chunk>) {
    if !text.is_empty() {
        ready.push(chunk(text));
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::ContentFilter,
        _ => Finish::Other,
    }
}
