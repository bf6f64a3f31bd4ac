//! What goes with the baton: what was asked, why it is passed on, and what the giver found out.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::given::Site;
use crate::patterns::fence::{Enriched, Written};
use crate::patterns::handover::{shared, tail};
use crate::patterns::past::{self, Past};
use crate::run::{Input, Sent};

/// The arguments of a transfer.
#[derive(Debug, Deserialize)]
pub(super) struct Pass {
    reason: String,
    #[serde(default)]
    context: Map<String, Value>,
    #[serde(default)]
    message: String,
}

impl Pass {
    pub(super) fn because(reason: String) -> Self {
        Self { reason, context: Map::new(), message: String::new() }
    }
}

/// What the receiver is told. `input` is what the giver was asked.
pub(super) async fn onward(site: &Site<'_>, input: &Input, transfer: &Pass) -> Result<Input, Failure> {
    let giver = &site.scope.agent;
    let policy = &site.scope.run.engine.parts.policy;
    let most = policy.context_max_chars;
    let Past { history, summary, transcript } = Past::of(&site.scope, &input.history, Some(site)).await?;
    let reason = shared(giver, &transfer.reason);
    let sent = Some(Sent { by: giver.name.clone(), reason: reason.as_str().into() });
    // Masked before it is cut, so that no cut leaves half of a secret.
    let message = Enriched::of(input)
        .onward()
        .shared(giver)
        .with(Written::Reason, &giver.name, reason)
        .with_any(Written::Note, &giver.name, shared(giver, &transfer.message))
        .with_any(Written::Context, &giver.name, tail(&shared(giver, &context(transfer)), most))
        .with_any(Written::Summary, &giver.name, summary)
        .with_any(Written::Transcript, &giver.name, transcript)
        .with_work(&giver.name, shared(giver, &past::work(site)), most);
    let output_schema = input.output_schema.clone();
    let told = Input { history: history.into(), output_schema, sent, ..Input::default() };
    Ok(message.render(policy.enrich_format, told))
}

fn context(transfer: &Pass) -> String {
    if transfer.context.is_empty() {
        return String::new();
    }
    serde_json::to_string_pretty(&transfer.context).unwrap_or_default()
}
