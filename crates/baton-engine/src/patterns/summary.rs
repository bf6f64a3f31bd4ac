//! Shortens long texts with a fast model.

use baton_core::chat::ChatMessage;
use baton_core::model::ToolChoice;

use crate::failure::Failure;
use crate::fence::Fence;
use crate::redaction::head;
use crate::scope::Scope;
use crate::turn::{self, TurnRequest};
use crate::window::estimate;

const SYSTEM_PROMPT: &str = "You shorten texts. Keep facts, numbers, names, decisions and open questions; leave out everything else. \
                    Write plain sentences, nothing about the task.";

/// Returns `text` if it has at most `most` characters, else a model's summary, cut to `most` characters. If the model fails or
/// returns nothing, the beginning of the text.
pub(crate) async fn summarize(scope: &Scope, text: &str, most: usize) -> Result<String, Failure> {
    if text.chars().count() <= most {
        return Ok(text.to_owned());
    }
    let place = scope.at("summary").internal();
    let fence = Fence::new();
    let block = fence.block("text", "## TEXT", text);
    let task = format!("{}\n\n{block}\n\nShorten the text to at most {most} characters.", fence.material());
    let messages = [ChatMessage::user(task)];
    let ask = TurnRequest {
        system: SYSTEM_PROMPT,
        messages: messages.as_slice().into(),
        tools: &[],
        text_calls: None,
        tool_choice: ToolChoice::None,
        output_schema: None,
        guards: &[],
        input_estimate: estimate::text(SYSTEM_PROMPT) + estimate::message(&messages[0]),
        deadline: scope.session.bounds.deadline,
        closing: None,
    };
    let candidates = scope.models().fast_candidates(scope.agent())?;
    match turn::run_turn(&place, &candidates, ask).await {
        Ok(taken) if !taken.reply.text.trim().is_empty() => Ok(head(taken.reply.text.trim(), most)),
        Err(failure) if failure.is_fatal(&scope.run.control.cancel) => Err(failure),
        Ok(_) | Err(_) => Ok(head(text, most)),
    }
}
