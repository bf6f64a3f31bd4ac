//! Long texts made short by a quick model.

use baton_core::chat::ChatMessage;
use baton_core::model::ToolChoice;

use super::fence::Fence;
use super::handover::head;
use crate::failure::Failure;
use crate::scope::Scope;
use crate::turn::{self, Ask};
use crate::window::estimate;

const TASK: &str = "You shorten texts. Keep facts, numbers, names, decisions and open questions; leave out everything else. \
                    Write plain sentences, nothing about the task.";

/// The text in at most `most` characters: itself, what a model makes of it, or its beginning if no model can.
pub(crate) async fn summarize(scope: &Scope, text: &str, most: usize) -> Result<String, Failure> {
    if text.chars().count() <= most {
        return Ok(text.to_owned());
    }
    let place = scope.at("summary").internal();
    let fence = Fence::new();
    let block = fence.block("text", "## TEXT", text);
    let task = format!("{}\n\n{block}\n\nShorten the text to at most {most} characters.", fence.material());
    let messages = [ChatMessage::user(task)];
    let ask = Ask {
        system: TASK,
        messages: messages.as_slice().into(),
        tools: &[],
        tool_choice: ToolChoice::None,
        output_schema: None,
        input_estimate: estimate::text(TASK) + estimate::message(&messages[0]),
        deadline: scope.bounds.deadline,
        closing: None,
    };
    let candidates = scope.run.engine.parts.models.quick(&scope.agent)?;
    match turn::take(&place, &candidates, ask).await {
        Ok(taken) if !taken.reply.text.trim().is_empty() => Ok(head(taken.reply.text.trim(), most)),
        Err(failure) if failure.ends_the_run(scope) => Err(failure),
        Ok(_) | Err(_) => Ok(head(text, most)),
    }
}
