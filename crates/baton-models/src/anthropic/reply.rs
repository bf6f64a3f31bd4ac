//! The events of a streamed message.

use baton_core::Chunk;
use baton_core::model::Finish;
use baton_core::usage::Tokens;
use serde::Deserialize;
use serde_json::Value;

use super::{redacted_signer, signer};
use crate::answer::Decode;
use crate::borrowed::BorrowedText;
use crate::calls::CallNumbers;
use crate::fault::ModelFault;
use crate::frames::Frame;
use crate::signature::seal;
use crate::tool_names::ToolNames;

#[derive(Debug)]
pub(crate) struct AnthropicDecoder {
    calls: CallNumbers,
    model: String,
    /// Of the thought that is being written; it is complete when its block stops.
    signature: String,
    usage: AnthropicUsage,
    finish: Option<Finish>,
}

/// All fields of all events: serde keeps a copy of what it reads while it looks for the tag of an enum.
#[derive(Deserialize)]
struct AnthropicEvent<'a> {
    #[serde(borrow)]
    r#type: BorrowedText<'a>,
    index: Option<u64>,
    message: Option<AnthropicStart>,
    #[serde(borrow)]
    content_block: Option<AnthropicReplyBlock<'a>>,
    #[serde(borrow)]
    delta: Option<AnthropicDelta<'a>>,
    usage: Option<AnthropicUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct AnthropicStart {
    usage: Option<AnthropicUsage>,
}

#[derive(Deserialize)]
struct AnthropicReplyBlock<'a> {
    #[serde(borrow)]
    r#type: BorrowedText<'a>,
    #[serde(borrow)]
    text: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    id: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    name: Option<BorrowedText<'a>>,
    input: Option<Value>,
    /// Of a thought that is encrypted.
    #[serde(borrow)]
    data: Option<BorrowedText<'a>>,
}

#[derive(Deserialize)]
struct AnthropicDelta<'a> {
    #[serde(borrow)]
    text: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    partial_json: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    thinking: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    signature: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    stop_reason: Option<BorrowedText<'a>>,
}

/// Counts so far. A later event repeats some of them and leaves others out.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct AnthropicUsage {
    #[serde(rename = "input_tokens")]
    input: Option<u64>,
    #[serde(rename = "output_tokens")]
    output: Option<u64>,
    #[serde(rename = "cache_read_input_tokens")]
    cache_read: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens")]
    cache_creation: Option<u64>,
}

impl AnthropicUsage {
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
            cache_write_tokens: written,
            reasoning_tokens: 0,
        }
    }
}

impl AnthropicDecoder {
    pub fn new(names: ToolNames, model: &str) -> Self {
        let calls = CallNumbers::new(names);
        Self {
            calls,
            model: model.to_owned(),
            signature: String::new(),
            usage: AnthropicUsage::default(),
            finish: None,
        }
    }

    fn begin(
        &mut self,
        index: u64,
        block: AnthropicReplyBlock<'_>,
        ready: &mut Vec<Chunk>,
    ) -> Result<(), ModelFault> {
        match block.r#type.as_ref() {
            "text" => say(block.text, Chunk::Text, ready),
            "tool_use" => {
                let word = |text: &Option<BorrowedText<'_>>| text.as_ref().map(|text| text.0.to_string());
                let (id, name) = (word(&block.id), word(&block.name).unwrap_or_default());
                let index = self.calls.begin(Some(index), id.as_deref(), &name, None, ready)?;
                // Mostly an empty object, which the deltas then fill.
                let input =
                    block.input.filter(|input| input.as_object().is_some_and(|fields| !fields.is_empty()));
                self.calls.arguments(index, input.map(|input| input.to_string()).unwrap_or_default(), ready);
            }
            "redacted_thinking" => {
                let data =
                    block.data.ok_or_else(|| ModelFault::malformed("an encrypted thought without data"))?;
                ready.push(Chunk::ReasoningSignature(seal(&redacted_signer(&self.model), &data.0)));
            }
            _ => {}
        }
        Ok(())
    }

    fn go_on(&mut self, index: u64, delta: AnthropicDelta<'_>, ready: &mut Vec<Chunk>) {
        say(delta.text, Chunk::Text, ready);
        say(delta.thinking, Chunk::Reasoning, ready);
        if let Some(signature) = delta.signature {
            self.signature.push_str(&signature.0);
        }
        if let (Some(json), Some(index)) = (delta.partial_json, self.calls.find(Some(index))) {
            self.calls.arguments(index, json.into_string(), ready);
        }
    }

    fn stop_block(&mut self, ready: &mut Vec<Chunk>) {
        let signature = std::mem::take(&mut self.signature);
        if !signature.is_empty() {
            ready.push(Chunk::ReasoningSignature(seal(&signer(&self.model), &signature)));
        }
    }

    fn count(&mut self, usage: Option<AnthropicUsage>, ready: &mut Vec<Chunk>) {
        if let Some(usage) = usage {
            self.usage.update(usage);
            ready.push(Chunk::Tokens(self.usage.tokens()));
        }
    }
}

impl Decode for AnthropicDecoder {
    fn frame(&mut self, frame: Frame<'_>, ready: &mut Vec<Chunk>) -> Result<Option<Finish>, ModelFault> {
        if frame.data.trim().is_empty() {
            return Ok(None);
        }
        let event: AnthropicEvent<'_> = serde_json::from_str(frame.data).map_err(|_| {
            // An error of a gateway has no `type`.
            let fault = ModelFault::from_body(None, frame.data);
            ModelFault { message: format!("an event cannot be read: {}", fault.message), ..fault }
        })?;
        match event.r#type.as_ref() {
            "message_start" => self.count(event.message.and_then(|message| message.usage), ready),
            "content_block_start" => {
                let (index, block) = indexed(event.index, event.content_block)?;
                self.begin(index, block, ready)?;
            }
            "content_block_delta" => {
                let (index, delta) = indexed(event.index, event.delta)?;
                self.go_on(index, delta, ready);
            }
            "content_block_stop" => self.stop_block(ready),
            "message_delta" => {
                let reason = event.delta.and_then(|delta| delta.stop_reason);
                self.finish = reason.map(|reason| finish(&reason.0)).or(self.finish);
                self.count(event.usage, ready);
            }
            "message_stop" => {
                self.finish.get_or_insert(Finish::Other);
                return self.end(ready).map(Some);
            }
            "error" => return Err(ModelFault::from_error(&event.error.unwrap_or_default())),
            // `ping`, and whatever will be added.
            _ => {}
        }
        Ok(None)
    }

    /// A gateway that loses the last event loses nothing of the message.
    fn end(&mut self, ready: &mut Vec<Chunk>) -> Result<Finish, ModelFault> {
        let finish = self.finish.ok_or_else(ModelFault::cut)?;
        self.calls.complete(ready);
        Ok(finish)
    }
}

fn indexed<T>(index: Option<u64>, part: Option<T>) -> Result<(u64, T), ModelFault> {
    index.zip(part).ok_or_else(|| ModelFault::malformed("an event lacks its index or its content"))
}

/// The one place where the text of a delta is copied.
fn say(text: Option<BorrowedText<'_>>, chunk: fn(String) -> Chunk, ready: &mut Vec<Chunk>) {
    ready.extend(text.filter(|text| !text.0.is_empty()).map(|text| chunk(text.into_string())));
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
