//! Formats the results of a delegation for the delegating model.

use baton_core::SubAgentResult;
use baton_core::agent::Synthesis;
use serde::Serialize;

use super::buffer::ResultBuffer;
use crate::patterns::calling::task::{LIMITED_ANSWER_OPENING, MATERIAL_NOTE, fallback_instruction};

const SYNTHESIS_NOTE: &str =
    "Write one answer of these results, in one voice, your own. Do not mention the agents.";

/// JSON result of `delegate`.
#[derive(Debug, Serialize)]
struct DelegateResult {
    asked: usize,
    succeeded: usize,
    failed: usize,
    #[serde(skip_serializing_if = "is_zero")]
    not_used: usize,
    results: Vec<SubAgentResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    synthesis: Option<String>,
    note: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Formats the buffer as the result of `delegate`.
pub(super) fn render(buffer: &ResultBuffer, synthesis: Synthesis) -> String {
    let result = DelegateResult {
        asked: buffer.asked(),
        succeeded: buffer.succeeded(),
        failed: buffer.failures().len(),
        not_used: buffer.not_used_count(),
        results: buffer.results(),
        synthesis: (synthesis == Synthesis::Concat).then(|| buffer.synthesis()),
        note: note(buffer, synthesis),
    };
    serde_json::json!(result).to_string()
}

fn note(buffer: &ResultBuffer, synthesis: Synthesis) -> String {
    if buffer.succeeded() == 0 {
        return fallback_instruction();
    }
    let mut notes = vec![MATERIAL_NOTE.to_owned()];
    if synthesis == Synthesis::Model {
        notes.push(SYNTHESIS_NOTE.to_owned());
    }
    // After a win, the failures of other agents do not matter.
    let failed: Vec<&str> = buffer.failures().iter().map(|failed| failed.agent_id.as_str()).collect();
    if !failed.is_empty() && !buffer.has_winner() {
        notes.push(failed_note(&failed));
    }
    notes.join(" ")
}

fn failed_note(failed: &[&str]) -> String {
    format!(
        "{} gave no answer: fill the gap from your own knowledge. If that is not enough, begin the answer with \"{LIMITED_ANSWER_OPENING}\" and say \
         what is missing.",
        failed.join(", ")
    )
}

/// Instruction for the agent that synthesizes the results of a requested delegation.
pub(super) fn instruction(results: &[&SubAgentResult]) -> String {
    if !results.iter().any(|result| result.success) {
        return fallback_instruction();
    }
    let failed = results.iter().filter(|result| !result.success).map(|result| result.agent_id.as_str());
    let failed: Vec<&str> = failed.collect();
    let answer = format!("Answer the request now. {SYNTHESIS_NOTE}");
    if failed.is_empty() { answer } else { format!("{answer} {}", failed_note(&failed)) }
}
