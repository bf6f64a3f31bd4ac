//! The lines of a streamed chat.

use baton_core::Chunk;
use baton_core::model::Finish;
use baton_core::usage::Tokens;
use serde::Deserialize;
use serde_json::Value;

use crate::answer::Decode;
use crate::borrowed::{BorrowedText, Few};
use crate::calls::CallNumbers;
use crate::fault::ModelFault;
use crate::frames::Frame;
use crate::tool_names::ToolNames;

#[derive(Debug)]
pub(crate) struct OllamaDecoder {
    calls: CallNumbers,
}

#[derive(Deserialize)]
struct OllamaLine<'a> {
    #[serde(borrow)]
    message: Option<OllamaReplyMessage<'a>>,
    #[serde(default)]
    done: bool,
    #[serde(borrow)]
    done_reason: Option<BorrowedText<'a>>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct OllamaReplyMessage<'a> {
    #[serde(borrow)]
    content: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    thinking: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Few<OllamaReplyCall<'a>>>,
}

#[derive(Deserialize)]
struct OllamaReplyCall<'a> {
    #[serde(borrow)]
    id: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    function: OllamaFunction<'a>,
}

#[derive(Deserialize)]
struct OllamaFunction<'a> {
    #[serde(borrow)]
    name: BorrowedText<'a>,
    arguments: Option<Value>,
}

impl OllamaDecoder {
    pub fn new(names: ToolNames) -> Self {
        Self { calls: CallNumbers::new(names) }
    }

    fn take(&mut self, message: OllamaReplyMessage<'_>, ready: &mut Vec<Chunk>) -> Result<(), ModelFault> {
        let said = |text: Option<BorrowedText<'_>>| {
            text.filter(|text| !text.0.is_empty()).map(BorrowedText::into_string)
        };
        ready.extend(said(message.thinking).map(Chunk::Reasoning));
        ready.extend(said(message.content).map(Chunk::Text));
        // Calls arrive whole.
        for call in message.tool_calls.into_iter().flatten() {
            let id = call.id.as_ref().map(BorrowedText::as_ref);
            let index = self.calls.begin(None, id, &call.function.name.0, None, ready)?;
            let arguments = call.function.arguments.filter(|arguments| !arguments.is_null());
            self.calls.arguments(index, arguments.map(|value| value.to_string()).unwrap_or_default(), ready);
        }
        Ok(())
    }
}

impl Decode for OllamaDecoder {
    fn frame(&mut self, frame: Frame<'_>, ready: &mut Vec<Chunk>) -> Result<Option<Finish>, ModelFault> {
        let line: OllamaLine<'_> =
            serde_json::from_str(frame.data).map_err(|error| ModelFault::not_json(&error))?;
        if let Some(error) = line.error {
            return Err(ModelFault::from_error(&error));
        }
        if let Some(message) = line.message {
            self.take(message, ready)?;
        }
        if !line.done {
            return Ok(None);
        }
        self.calls.complete(ready);
        ready.push(Chunk::Tokens(Tokens {
            input_tokens: line.prompt_eval_count.unwrap_or(0),
            output_tokens: line.eval_count.unwrap_or(0),
            ..Tokens::default()
        }));
        Ok(Some(match line.done_reason.as_ref().map(BorrowedText::as_ref) {
            Some("length") => Finish::Length,
            _ if !self.calls.is_empty() => Finish::ToolCalls,
            Some("stop") | None => Finish::Stop,
            Some(_) => Finish::Other,
        }))
    }

    fn end(&mut self, _: &mut Vec<Chunk>) -> Result<Finish, ModelFault> {
        Err(ModelFault::cut())
    }
}
