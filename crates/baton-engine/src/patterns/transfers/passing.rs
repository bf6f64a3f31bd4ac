//! What goes with the baton: what was asked, why it is passed on, and what the giver found out.

use std::sync::Arc;

use baton_core::agent::{Agent, History};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::given::Site;
use crate::handoff::opening::Offer;
use crate::patterns::fence::{Enriched, Written};
use crate::patterns::handover::{head, shared, shared_value, tail};
use crate::patterns::past::{self, Past};
use crate::run::{Input, Sent};

/// Of why the baton is passed on, in characters.
pub(crate) const REASON: usize = 500;

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
    /// The same for a whole thread. `asked` is what the giver was asked.
    pub(super) fn offer(self, target: &Arc<Agent>, asked: &Input) -> Offer {
        let request = asked.words();
        let summary = if self.message.trim().is_empty() { request } else { self.message };
        Offer { target: Arc::clone(target), reason: self.reason, summary, known: self.context }
    }

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
    let reason = head(&shared(giver, transfer.reason.trim()), REASON);
    let sent = Some(Sent { by: giver.name.clone(), reason: reason.as_str().into() });
    let asked = Enriched::of(input).onward();
    // Whoever got the conversation as a summary has nothing else to pass on of it.
    let asked = if giver.history == History::Brief { asked.without(Written::Summary) } else { asked };
    // Masked before it is cut, so that no cut leaves half of a secret.
    let message = asked
        .shared(giver)
        .with(Written::Reason, &giver.name, reason)
        .with_any(Written::Note, &giver.name, tail(&shared(giver, &transfer.message), most))
        .with_any(Written::Context, &giver.name, tail(&context(giver, transfer), most))
        .with_any(Written::Summary, &giver.name, summary)
        .with_any(Written::Transcript, &giver.name, transcript)
        .with_work(&giver.name, shared(giver, &past::work(site)), most);
    let output_schema = input.output_schema.clone();
    let told = Input { history: history.into(), output_schema, sent, ..Input::default() };
    Ok(message.render(policy.enrich_format, told))
}

/// Masked value by value: written down, a quotation mark within a password would end it too early.
fn context(giver: &Agent, transfer: &Pass) -> String {
    if transfer.context.is_empty() {
        return String::new();
    }
    let context = shared_value(giver, &Value::Object(transfer.context.clone()));
    shared(giver, &serde_json::to_string_pretty(&context).unwrap_or_default())
}
