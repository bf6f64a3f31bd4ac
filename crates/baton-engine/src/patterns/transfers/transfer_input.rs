//! Builds the input of a transfer's receiver: the request, the reason, the giver's context and its work so far.

use std::sync::Arc;

use baton_core::agent::{Agent, HistoryAccess};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::engine_tool::CallSite;
use crate::failure::Failure;
use crate::handoff::announcement::Announcement;
use crate::handoff::start::HandoffOffer;
use crate::input::{BlockKind, PromptEnvelope};
use crate::input::{Input, InputSource};
use crate::patterns::shared_history::{self, SharedHistory};
use crate::redaction::{head, redact, redact_value, tail};

/// Maximum length of a transfer's reason, in characters.
pub(crate) const MAX_REASON_CHARS: usize = 500;

/// Arguments of `transfer_to_<agent>`.
#[derive(Debug, Deserialize)]
pub(super) struct TransferArguments {
    reason: String,
    #[serde(default)]
    context: Map<String, Value>,
    #[serde(default)]
    message: String,
    /// What the user reads before the target takes the thread.
    #[serde(default)]
    announcement: String,
}

impl TransferArguments {
    /// Converts a transfer into a handoff of the thread. `asked` is the giver's input.
    pub(super) fn offer(self, site: &CallSite<'_>, target: &Arc<Agent>, asked: &Input) -> HandoffOffer {
        let request = asked.words();
        let announcement = Announcement::of_transfer(site, &self.announcement);
        let summary = if self.message.trim().is_empty() { request } else { self.message };
        HandoffOffer {
            target: Arc::clone(target),
            reason: self.reason,
            summary,
            known: self.context,
            paused: None,
            moved: None,
            announcement,
        }
    }

    /// Everything that the source agent wrote, one line each.
    pub(super) fn text(&self) -> String {
        let context = if self.context.is_empty() { String::new() } else { json!(self.context).to_string() };
        [self.reason.as_str(), self.message.as_str(), self.announcement.as_str(), context.as_str()].join("\n")
    }

    pub(super) fn because(reason: String) -> Self {
        Self { reason, context: Map::new(), message: String::new(), announcement: String::new() }
    }
}

/// Builds the receiver's input. `input` is the giver's own.
pub(super) async fn receiver_input(
    site: &CallSite<'_>,
    input: &Input,
    transfer: &TransferArguments,
) -> Result<Input, Failure> {
    let giver = site.scope.agent();
    let policy = &site.scope.run.policy;
    let most = policy.context_max_chars;
    let SharedHistory { history, summary, transcript } =
        SharedHistory::of(&site.scope, &input.history, Some(site)).await?;
    let reason = head(&redact(giver, transfer.reason.trim()), MAX_REASON_CHARS);
    let sent = Some(InputSource { by: giver.name.clone(), reason: reason.as_str().into() });
    let asked = PromptEnvelope::of(input).for_next_receiver();
    // A giver with `history: brief` passes on no summary of the conversation.
    let asked = if giver.history == HistoryAccess::Brief { asked.without(BlockKind::Summary) } else { asked };
    // Redacts before cutting, so that a cut cannot leave half of a secret unmasked.
    let message = asked
        .redacted_by(giver)
        .with(BlockKind::Reason, &giver.name, reason)
        .with_any(BlockKind::Note, &giver.name, tail(&redact(giver, &transfer.message), most))
        .with_any(BlockKind::Context, &giver.name, tail(&context(giver, transfer), most))
        .with_any(BlockKind::Summary, &giver.name, summary)
        .with_any(BlockKind::Transcript, &giver.name, transcript)
        .with_work(&giver.name, redact(giver, &shared_history::work(site)), most);
    let output_schema = input.output_schema.clone();
    let base_input = Input { history: history.into(), output_schema, sent, ..Input::default() };
    Ok(message.render(policy.enrich_format, base_input))
}

/// Redacts value by value first: in the serialized text a quotation mark within a password would end the match.
fn context(giver: &Agent, transfer: &TransferArguments) -> String {
    if transfer.context.is_empty() {
        return String::new();
    }
    let context = redact_value(giver, &Value::Object(transfer.context.clone()));
    redact(giver, &serde_json::to_string_pretty(&context).unwrap_or_default())
}
