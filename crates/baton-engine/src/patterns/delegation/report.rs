//! What the delegating model is told.

use baton_core::SubAgentResult;
use baton_core::agent::Synthesis;
use serde::Serialize;

use super::buffer::Buffer;
use crate::patterns::calling::told::{LIMITED, MATERIAL, on_your_own};

const ONE_VOICE: &str =
    "Write one answer of these results, in one voice, your own. Do not mention the agents.";

#[derive(Debug, Serialize)]
struct Told {
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

/// The result of `delegate`.
pub(super) fn of(buffer: &Buffer, synthesis: Synthesis) -> String {
    let told = Told {
        asked: buffer.asked(),
        succeeded: buffer.succeeded(),
        failed: buffer.failures().len(),
        not_used: buffer.not_used_count(),
        results: buffer.results(),
        synthesis: (synthesis == Synthesis::Concat).then(|| buffer.synthesis()),
        note: note(buffer, synthesis),
    };
    serde_json::json!(told).to_string()
}

fn note(buffer: &Buffer, synthesis: Synthesis) -> String {
    if buffer.succeeded() == 0 {
        return on_your_own();
    }
    let mut notes = vec![MATERIAL.to_owned()];
    if synthesis == Synthesis::Model {
        notes.push(ONE_VOICE.to_owned());
    }
    // Where one success is enough, it does not matter who failed.
    let failed: Vec<&str> = buffer.failures().iter().map(|failed| failed.agent_id.as_str()).collect();
    if !failed.is_empty() && !buffer.is_won() {
        notes.push(gap(&failed));
    }
    notes.join(" ")
}

fn gap(failed: &[&str]) -> String {
    format!(
        "{} gave no answer: fill the gap from your own knowledge. If that is not enough, begin the answer with \"{LIMITED}\" and say \
         what is missing.",
        failed.join(", ")
    )
}

/// What the one is told who has to write an answer of results that it did not ask for.
pub(super) fn instruction(results: &[&SubAgentResult]) -> String {
    if !results.iter().any(|result| result.success) {
        return on_your_own();
    }
    let failed = results.iter().filter(|result| !result.success).map(|result| result.agent_id.as_str());
    let failed: Vec<&str> = failed.collect();
    let answer = format!("Answer the request now. {ONE_VOICE}");
    if failed.is_empty() { answer } else { format!("{answer} {}", gap(&failed)) }
}
