//! The text of a remote agent's reply as listeners see it.

use baton_core::MessageId;
use baton_core::event::EventKind;
use baton_core::store::NewEvent;
use uuid::Uuid;

use crate::scope::Scope;

/// A message that is published piece by piece.
#[derive(Debug)]
pub(super) struct StreamedReply {
    pub(super) id: MessageId,
    /// The text of the reply so far.
    pub(super) text: String,
    /// Whether the user sees the text while it is streamed.
    is_streamed: bool,
    is_begun: bool,
}

impl StreamedReply {
    pub(super) fn new(is_streamed: bool) -> Self {
        Self { id: new_id(), text: String::new(), is_streamed, is_begun: false }
    }

    pub(super) async fn add(&mut self, scope: &Scope, delta: String) {
        self.text.push_str(&delta);
        if self.is_streamed && !delta.is_empty() {
            self.publish(scope, delta).await;
        }
    }

    async fn publish(&mut self, scope: &Scope, delta: String) {
        if !self.is_begun {
            self.is_begun = true;
            let speaker = scope.speaker(scope.agent());
            scope.emit(scope.visibility(), EventKind::TextStarted { message_id: self.id, speaker }).await;
        }
        let delta = EventKind::TextDelta { message_id: self.id, delta };
        scope.emit(scope.visibility(), delta).await;
    }

    /// Replaces the text by the final one. Publishes what is missing of it, or withdraws what was published if it differs. Returns
    /// the last event and the id of the published message.
    pub(super) async fn finish(
        &mut self,
        scope: &Scope,
        text: &str,
    ) -> (Option<NewEvent>, Option<MessageId>) {
        if !self.is_streamed || (!self.is_begun && text.trim().is_empty()) {
            text.clone_into(&mut self.text);
            return (None, None);
        }
        let missing = text.strip_prefix(self.text.as_str()).map(str::to_owned);
        let missing = match missing {
            Some(missing) => missing,
            None => {
                let withdrawn = EventKind::TurnRestarted { message_id: self.id };
                scope.emit(scope.visibility(), withdrawn).await;
                (self.id, self.is_begun) = (new_id(), false);
                text.to_owned()
            }
        };
        text.clone_into(&mut self.text);
        if !missing.is_empty() {
            self.publish(scope, missing).await;
        }
        let speaker = scope.speaker(scope.agent());
        let said = EventKind::TextFinished { message_id: self.id, speaker, text: text.to_owned() };
        (self.is_begun.then(|| scope.event(scope.visibility(), said)), self.is_begun.then_some(self.id))
    }

    /// The event that ends a reply without an answer: its text is withdrawn.
    pub(super) fn withdraw(&self, scope: &Scope) -> Option<NewEvent> {
        let withdrawn = EventKind::TurnRestarted { message_id: self.id };
        self.is_begun.then(|| scope.event(scope.visibility(), withdrawn))
    }
}

fn new_id() -> MessageId {
    MessageId::from_uuid(Uuid::now_v7())
}
