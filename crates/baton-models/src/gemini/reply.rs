//! The frames of a streamed answer. Each is a whole response with a piece of the answer; none says that it is the last.

use baton_core::model::Finish;
use baton_core::usage::Tokens;
use baton_core::{Chunk, ModelErrorKind};
use serde::Deserialize;
use serde_json::Value;

use super::signer;
use crate::answer::Decode;
use crate::borrowed::{BorrowedText, Few};
use crate::calls::CallNumbers;
use crate::fault::ModelFault;
use crate::frames::Frame;
use crate::parts::inline_file;
use crate::signature::seal;
use crate::tool_names::ToolNames;

#[derive(Debug)]
pub(crate) struct GeminiDecoder {
    calls: CallNumbers,
    signer: String,
    finish: Option<Finish>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiResponse<'a> {
    #[serde(borrow)]
    candidates: Option<Few<GeminiCandidate<'a>>>,
    usage_metadata: Option<GeminiUsage>,
    #[serde(borrow)]
    prompt_feedback: Option<PromptFeedback<'a>>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate<'a> {
    #[serde(borrow)]
    content: Option<GeminiReplyContent<'a>>,
    #[serde(borrow)]
    finish_reason: Option<BorrowedText<'a>>,
}

#[derive(Deserialize)]
struct GeminiReplyContent<'a> {
    #[serde(borrow)]
    parts: Option<Few<GeminiReplyPart<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiReplyPart<'a> {
    #[serde(borrow)]
    text: Option<BorrowedText<'a>>,
    #[serde(default)]
    thought: bool,
    #[serde(borrow)]
    thought_signature: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    function_call: Option<GeminiReplyCall<'a>>,
    inline_data: Option<Box<GeminiInlineData>>,
}

/// An image or sound that the model made.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiInlineData {
    mime_type: String,
    data: String,
}

#[derive(Deserialize)]
struct GeminiReplyCall<'a> {
    #[serde(borrow)]
    id: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    name: BorrowedText<'a>,
    args: Option<Value>,
}

#[derive(Deserialize)]
struct GeminiUsage {
    #[serde(rename = "promptTokenCount")]
    prompt: Option<u64>,
    #[serde(rename = "toolUsePromptTokenCount")]
    tool_use_prompt: Option<u64>,
    #[serde(rename = "candidatesTokenCount")]
    candidates: Option<u64>,
    #[serde(rename = "thoughtsTokenCount")]
    thoughts: Option<u64>,
    #[serde(rename = "cachedContentTokenCount")]
    cached_content: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(borrow)]
    block_reason: Option<BorrowedText<'a>>,
}

impl GeminiDecoder {
    pub fn new(names: ToolNames, model: &str) -> Self {
        Self { calls: CallNumbers::new(names), signer: signer(model), finish: None }
    }

    fn take_part(&mut self, part: GeminiReplyPart<'_>, ready: &mut Vec<Chunk>) -> Result<(), ModelFault> {
        let signature = part.thought_signature.map(|signature| seal(&self.signer, &signature.0));
        if let Some(text) = part.text.filter(|text| !text.0.is_empty()).map(BorrowedText::into_string) {
            ready.push(if part.thought { Chunk::Reasoning(text) } else { Chunk::Text(text) });
        }
        // Drafts that are part of the thoughts are not shown.
        let made = part.inline_data.filter(|_| !part.thought);
        ready.extend(made.and_then(|made| inline_file(&made.mime_type, &made.data)).map(Chunk::File));
        match part.function_call {
            Some(call) => {
                let id = call.id.as_ref().map(BorrowedText::as_ref);
                let index = self.calls.begin(None, id, &call.name.0, signature, ready)?;
                let args = call.args.filter(|args| !args.is_null());
                self.calls.arguments(index, args.map(|args| args.to_string()).unwrap_or_default(), ready);
            }
            None => ready.extend(signature.map(Chunk::ReasoningSignature)),
        }
        Ok(())
    }
}

impl Decode for GeminiDecoder {
    fn frame(&mut self, frame: Frame<'_>, ready: &mut Vec<Chunk>) -> Result<Option<Finish>, ModelFault> {
        if frame.data.trim().is_empty() {
            return Ok(None);
        }
        let response: GeminiResponse<'_> =
            serde_json::from_str(frame.data).map_err(|error| ModelFault::not_json(&error))?;
        if let Some(error) = response.error {
            return Err(ModelFault::from_error(&error));
        }
        for candidate in response.candidates.into_iter().flatten() {
            for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
                self.take_part(part, ready)?;
            }
            if let Some(reason) = candidate.finish_reason {
                self.finish = Some(finish(&reason.0)?);
            }
        }
        ready.extend(response.usage_metadata.map(|usage| Chunk::Tokens(tokens(&usage))));
        match response.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            Some(reason) => {
                let message = format!("the prompt was blocked: {}", reason.0);
                Err(ModelFault::new(ModelErrorKind::ContentFilter, message))
            }
            None => Ok(None),
        }
    }

    fn end(&mut self, ready: &mut Vec<Chunk>) -> Result<Finish, ModelFault> {
        let finish = self.finish.ok_or_else(ModelFault::cut)?;
        self.calls.complete(ready);
        match finish {
            Finish::Stop if !self.calls.is_empty() => Ok(Finish::ToolCalls),
            finish => Ok(finish),
        }
    }
}

fn finish(reason: &str) -> Result<Finish, ModelFault> {
    Ok(match reason {
        "STOP" => Finish::Stop,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "IMAGE_SAFETY" => Finish::ContentFilter,
        // The next attempt often gets it right.
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
            return Err(ModelFault::malformed(format!("the model failed to write a tool call: {reason}")));
        }
        _ => Finish::Other,
    })
}

/// Thoughts are output, though they are counted apart.
fn tokens(usage: &GeminiUsage) -> Tokens {
    let count = |count: Option<u64>| count.unwrap_or(0);
    Tokens {
        input_tokens: count(usage.prompt).saturating_add(count(usage.tool_use_prompt)),
        output_tokens: count(usage.candidates).saturating_add(count(usage.thoughts)),
        cached_tokens: count(usage.cached_content),
        // Implicit caches are written without a price of their own.
        cache_write_tokens: 0,
        reasoning_tokens: count(usage.thoughts),
    }
}
