//! The messages of a run, as a client has them that got all events. Follows the rules of `@ag-ui/client` for the events that
//! Baton sends, with one addition: the text of a restarted turn is removed.

use std::collections::HashSet;

use serde_json::Value;

use crate::wire::message::{AguiFunction, AguiToolCall, MessageBody, Provenance};
use crate::wire::{AguiEvent, AguiMessage, EventBody, Metadata};

/// Messages that are built from AG-UI events.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    messages: Vec<AguiMessage>,
    /// Ids of all messages, to skip the search for an id that is not there.
    ids: HashSet<String>,
}

impl Transcript {
    pub(super) fn into_messages(self) -> Vec<AguiMessage> {
        self.messages
    }

    pub(super) fn add(&mut self, event: AguiEvent) {
        let AguiEvent { body, subagent, metadata, .. } = event;
        let new = |id: String, body: MessageBody| AguiMessage { id, body, subagent, metadata: None };
        match body {
            EventBody::TextMessageStart { message_id, name, .. } => {
                let (name, content) = (Some(name), Some(String::new()));
                let text = MessageBody::Assistant { name, content, tool_calls: Vec::new() };
                self.begin(new(message_id, text), metadata);
            }
            EventBody::ReasoningMessageStart { message_id, .. } => {
                self.begin(new(message_id, MessageBody::Reasoning { content: String::new() }), metadata);
            }
            EventBody::TextMessageContent { message_id, delta }
            | EventBody::ReasoningMessageContent { message_id, delta } => {
                self.change(&message_id, metadata, |body| body.append(&delta));
            }
            EventBody::TextMessageEnd { message_id } | EventBody::ReasoningMessageEnd { message_id } => {
                self.change(&message_id, metadata, |_| ());
            }
            EventBody::ActivitySnapshot { message_id, activity_type, content } => {
                let activity = new(message_id, MessageBody::Activity { activity_type, content });
                self.replace(activity, metadata);
            }
            EventBody::ToolCallStart { tool_call_id: id, tool_call_name: name } => {
                let function = AguiFunction { name, arguments: String::new() };
                let call = AguiToolCall { id: id.clone(), kind: "function", function, metadata };
                let call = MessageBody::Assistant { name: None, content: None, tool_calls: vec![call] };
                self.push(new(id, call));
            }
            EventBody::ToolCallArgs { tool_call_id, delta } => {
                self.change_call(&tool_call_id, &delta, metadata);
            }
            EventBody::ToolCallEnd { tool_call_id } => self.change_call(&tool_call_id, "", metadata),
            EventBody::ToolCallResult { message_id, tool_call_id, content, .. } => {
                let at = self.behind(&tool_call_id);
                let result = new(message_id, MessageBody::Tool { tool_call_id, content });
                self.ids.insert(result.id.clone());
                self.messages
                    .insert(at, AguiMessage { metadata: Some(Provenance::Event(metadata)), ..result });
            }
            EventBody::Custom { name: "baton.turn_restarted", value } => self.forget(&value),
            _ => {}
        }
    }

    fn push(&mut self, message: AguiMessage) {
        self.ids.insert(message.id.clone());
        self.messages.push(message);
    }

    /// Adds a message unless it exists: a thought can be reopened.
    fn begin(&mut self, message: AguiMessage, metadata: Metadata) {
        let id = message.id.clone();
        if !self.ids.contains(&id) {
            self.push(message);
        }
        self.change(&id, metadata, |_| ());
    }

    fn replace(&mut self, message: AguiMessage, metadata: Metadata) {
        let metadata = Some(Provenance::Event(metadata));
        let message = AguiMessage { metadata, ..message };
        match self.at(&message.id) {
            Some(at) => self.messages[at] = message,
            None => self.push(message),
        }
    }

    fn change(&mut self, id: &str, metadata: Metadata, change: impl FnOnce(&mut MessageBody)) {
        if let Some(at) = self.at(id) {
            let message = &mut self.messages[at];
            change(&mut message.body);
            message.metadata = Some(Provenance::Event(metadata));
        }
    }

    /// Metadata of a call belongs to the call, not to the message around it.
    fn change_call(&mut self, id: &str, delta: &str, metadata: Metadata) {
        let Some(at) = self.at(id) else { return };
        if let MessageBody::Assistant { tool_calls, .. } = &mut self.messages[at].body
            && let [call] = tool_calls.as_mut_slice()
        {
            call.function.arguments.push_str(delta);
            call.metadata = metadata;
        }
    }

    /// The index behind the call and its earlier results.
    fn behind(&self, call: &str) -> usize {
        let Some(at) = self.at(call) else { return self.messages.len() };
        let is_result = |message: &&AguiMessage| matches!(message.body, MessageBody::Tool { .. });
        at + 1 + self.messages[at + 1..].iter().take_while(is_result).count()
    }

    fn forget(&mut self, value: &Value) {
        let id = value["message_id"].as_str().unwrap_or_default();
        if let Some(at) = self.at(id) {
            self.messages.remove(at);
            self.ids.remove(id);
        }
    }

    /// Searches from the end, because most changes affect the latest messages.
    fn at(&self, id: &str) -> Option<usize> {
        if !self.ids.contains(id) {
            return None;
        }
        self.messages.iter().rposition(|message| message.id == id)
    }
}

impl MessageBody {
    fn append(&mut self, delta: &str) {
        if let Self::Assistant { content: Some(content), .. } | Self::Reasoning { content } = self {
            content.push_str(delta);
        }
    }
}
