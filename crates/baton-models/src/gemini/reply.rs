//! The frames of a streamed answer. Each is a whole response with a piece of the answer; none says that it is the last.

use baton_core::model::Finish;
use baton_core::usage::Tokens;
use baton_core::{Chunk, ModelErrorKind};
use serde::Deserialize;
use serde_json::Value;

use super::signer;
use crate::answer::Decode;
use crate::calls::Calls;
use crate::fault::Fault;
use crate::frames::Frame;
use crate::signature::seal;
use crate::tool_names::ToolNames;

#[derive(Debug)]
pub(crate) struct Decoder {
    calls: Calls,
    signer: String,
    finish: Option<Finish>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    candidates: Option<Vec<Candidate>>,
    usage_metadata: Option<Usage>,
    prompt_feedback: Option<Feedback>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    thought_signature: Option<String>,
    function_call: Option<FunctionCall>,
}

#[derive(Deserialize)]
struct FunctionCall {
    id: Option<String>,
    name: String,
    args: Option<Value>,
}

#[derive(Deserialize)]
struct Usage {
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
struct Feedback {
    block_reason: Option<String>,
}

impl Decoder {
    pub fn new(names: ToolNames, model: &str) -> Self {
        Self { calls: Calls::new(names), signer: signer(model), finish: None }
    }

    fn take_part(&mut self, part: Part, ready: &mut Vec<Chunk>) -> Result<(), Fault> {
        let signature = part.thought_signature.map(|signature| seal(&self.signer, &signature));
        if let Some(text) = part.text.filter(|text| !text.is_empty()) {
            ready.push(if part.thought { Chunk::Reasoning(text) } else { Chunk::Text(text) });
        }
        match part.function_call {
            Some(call) => {
                let index = self.calls.begin(None, call.id.as_deref(), &call.name, signature, ready)?;
                let args = call.args.filter(|args| !args.is_null());
                self.calls.arguments(index, args.map(|args| args.to_string()).unwrap_or_default(), ready);
            }
            None => ready.extend(signature.map(Chunk::ReasoningSignature)),
        }
        Ok(())
    }
}

impl Decode for Decoder {
    fn frame(&mut self, frame: Frame<'_>, ready: &mut Vec<Chunk>) -> Result<Option<Finish>, Fault> {
        if frame.data.trim().is_empty() {
            return Ok(None);
        }
        let response: Response = serde_json::from_str(frame.data).map_err(|error| Fault::not_json(&error))?;
        if let Some(error) = response.error {
            return Err(Fault::from_error(&error));
        }
        for candidate in response.candidates.into_iter().flatten() {
            for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
                self.take_part(part, ready)?;
            }
            if let Some(reason) = candidate.finish_reason {
                self.finish = Some(finish(&reason)?);
            }
        }
        ready.extend(response.usage_metadata.map(|usage| Chunk::Tokens(tokens(&usage))));
        match response.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            Some(reason) => {
                let message = format!("the prompt was blocked: {reason}");
                Err(Fault::new(ModelErrorKind::ContentFilter, message))
            }
            None => Ok(None),
        }
    }

    fn end(&mut self, ready: &mut Vec<Chunk>) -> Result<Finish, Fault> {
        let finish = self.finish.ok_or_else(Fault::cut)?;
        self.calls.complete(ready);
        match finish {
            Finish::Stop if !self.calls.is_empty() => Ok(Finish::ToolCalls),
            finish => Ok(finish),
        }
    }
}

fn finish(reason: &str) -> Result<Finish, Fault> {
    Ok(match reason {
        "STOP" => Finish::Stop,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "IMAGE_SAFETY" => Finish::ContentFilter,
        // The next attempt often gets it right.
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
            return Err(Fault::malformed(format!("the model failed to write a tool call: {reason}")));
        }
        _ => Finish::Other,
    })
}

/// Thoughts are output, though they are counted apart.
fn tokens(usage: &Usage) -> Tokens {
    let count = |count: Option<u64>| count.unwrap_or(0);
    Tokens {
        input_tokens: count(usage.prompt).saturating_add(count(usage.tool_use_prompt)),
        output_tokens: count(usage.candidates).saturating_add(count(usage.thoughts)),
        cached_tokens: count(usage.cached_content),
        reasoning_tokens: count(usage.thoughts),
    }
}
