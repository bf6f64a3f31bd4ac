//! How the engine helps models that do not call tools reliably.

mod agent_tools;
mod grounding;
mod prefix;
mod repeated_calls;
mod text_calls;
mod workflow_values;

use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::model::{ModelAssists, ModelFacts, ModelSupport};
use baton_models::scripted::Scripted;

use crate::Ran;

/// A model with these abilities, and with the assists that are on.
fn model(supports: ModelSupport, assists: ModelAssists) -> Scripted {
    Scripted::default().with_facts(ModelFacts { supports, assists, ..ModelFacts::default() })
}

/// The texts that the person saw, streamed or not.
fn shown(ran: &Ran) -> Vec<&str> {
    let events = ran.events.iter().filter(|event| event.visibility == Visibility::User);
    let texts = events.filter_map(|event| match &event.kind {
        EventKind::TextFinished { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The status lines of the run.
fn statuses(ran: &Ran) -> Vec<&str> {
    let texts = ran.events.iter().filter_map(|event| match &event.kind {
        EventKind::Status { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
