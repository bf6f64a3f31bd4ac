//! What the source agent tells the user before another agent takes the thread (K7): the sentence that its model wrote, as an argument of
//! the transfer or as the text of its turn, or else a fixed one. It is a message of the thread, stored with the opened handoff.

use baton_core::MessageId;
use baton_core::agent::Agent;
use baton_core::event::EventKind;
use baton_core::message::{Message, Visibility};
use baton_core::store::HandoffSession;

use super::messages::introduction_message;
use crate::engine_tool::CallSite;
use crate::guard;
use crate::journal::Record;
use crate::outcome::{Answer, Outcome};
use crate::redaction::{head, redact};
use crate::scope::Scope;

/// Maximum length of a sentence that was not streamed, in characters.
const MAX_SENTENCE_CHARS: usize = 300;

/// How a handoff is announced.
#[derive(Debug)]
pub(crate) enum Announcement {
    /// By a sentence that the user has not seen. `None`: a fixed one.
    Sentence(Option<String>),
    /// The user has read the text of the source agent's turn.
    Shown { message_id: MessageId, text: String },
    /// Without a sentence of the source agent: the target resumes work of another thread.
    Resumed,
}

impl Announcement {
    /// Of a transfer: the turn's text, if the user has seen it, else `argument`, else the text that was held back, else a fixed sentence.
    pub(crate) fn of_transfer(site: &CallSite<'_>, argument: &str) -> Self {
        let text = site.turn_text();
        if let Some(message_id) = site.shown.filter(|_| !text.trim().is_empty()) {
            return Self::Shown { message_id, text: text.to_owned() };
        }
        let agent = site.scope.agent();
        // A judge decides on whole answers only, and nothing may be shown without its decision.
        let is_judged = guard::has_judge(&agent.guardrails.output);
        let written = [argument, text].into_iter().filter(|_| !is_judged);
        Self::Sentence(written.map(|text| sentence(agent, text)).find(|text| !text.is_empty()))
    }

    /// The sentence as a message of the thread and, if the user has not seen it, as an event.
    pub(crate) fn record(&self, scope: &Scope, handoff: &HandoffSession, target: &Agent) -> Record {
        let place = scope.at("announcement");
        let (message_id, text, is_shown) = match self {
            Self::Resumed => return Record::default(),
            // The user is not told of an agent that is not visible.
            Self::Sentence(_) if target.is_hidden() => return Record::default(),
            Self::Shown { message_id, text } => (*message_id, text.clone(), true),
            Self::Sentence(text) => {
                let text = text.clone().unwrap_or_else(|| introduction_message(target));
                (MessageId::from_uuid(place.uuid()), text, false)
            }
        };
        let said =
            EventKind::TextFinished { message_id, speaker: scope.speaker(scope.agent()), text: text.clone() };
        let events = if is_shown { Vec::new() } else { vec![place.event(Visibility::User, said)] };
        Record { events, messages: vec![message(scope, handoff, message_id, text)], ..Record::default() }
    }
}

/// The message has the time of the handoff, which follows it in the history.
fn message(scope: &Scope, handoff: &HandoffSession, message_id: MessageId, text: String) -> Message {
    let answer = Answer { message_id: Some(message_id), ..Answer::without_turn(text) };
    let said = Outcome { answer, agent: scope.name().clone(), is_shown: true, dissent: Vec::new() };
    Message { created_at: handoff.started_at, ..said.message(scope.run.run_id, Visibility::User) }
}

/// The first paragraph in one line, masked by the agent's rule and bounded.
fn sentence(agent: &Agent, text: &str) -> String {
    let first = text.trim().split("\n\n").next().unwrap_or_default();
    let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
    head(&redact(agent, &line), MAX_SENTENCE_CHARS)
}
