//! The messages of a run, as a client has them that saw everything of it so far. The same rules as those of `@ag-ui/client`, as far as
//! Baton's events need them, with one more: what a restarted turn had said is gone.

use std::collections::HashSet;

use serde_json::Value;

use crate::wire::message::{Function, MessageBody, Provenance, ToolCall};
use crate::wire::{AguiEvent, AguiMessage, Body, Metadata};

#[derive(Debug, Default)]
pub(super) struct Transcript {
    messages: Vec<AguiMessage>,
    /// So that nobody has to look through all messages for one that is not there.
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
            Body::TextMessageStart { message_id, name, .. } => {
                let (name, content) = (Some(name), Some(String::new()));
                let text = MessageBody::Assistant { name, content, tool_calls: Vec::new() };
                self.begin(new(message_id, text), metadata);
            }
            Body::ReasoningMessageStart { message_id, .. } => {
                self.begin(new(message_id, MessageBody::Reasoning { content: String::new() }), metadata);
            }
            Body::TextMessageContent { message_id, delta }
            | Body::ReasoningMessageContent { message_id, delta } => {
                self.change(&message_id, metadata, |body| body.append(&delta));
            }
            Body::TextMessageEnd { message_id } | Body::ReasoningMessageEnd { message_id } => {
                self.change(&message_id, metadata, |_| ());
            }
            Body::ActivitySnapshot { message_id, activity_type, content } => {
                let activity = new(message_id, MessageBody::Activity { activity_type, content });
                self.replace(activity, metadata);
            }
            Body::ToolCallStart { tool_call_id: id, tool_call_name: name } => {
                let function = Function { name, arguments: String::new() };
                let call = ToolCall { id: id.clone(), kind: "function", function, metadata };
                let call = MessageBody::Assistant { name: None, content: None, tool_calls: vec![call] };
                self.push(new(id, call));
            }
            Body::ToolCallArgs { tool_call_id, delta } => self.change_call(&tool_call_id, &delta, metadata),
            Body::ToolCallEnd { tool_call_id } => self.change_call(&tool_call_id, "", metadata),
            Body::ToolCallResult { message_id, tool_call_id, content, .. } => {
                let at = self.behind(&tool_call_id);
                let result = new(message_id, MessageBody::Tool { tool_call_id, content });
                self.ids.insert(result.id.clone());
                self.messages
                    .insert(at, AguiMessage { metadata: Some(Provenance::Event(metadata)), ..result });
            }
            Body::Custom { name: "baton.turn_restarted", value } => self.forget(&value),
            _ => {}
        }
    }

    fn push(&mut self, message: AguiMessage) {
        self.ids.insert(message.id.clone());
        self.messages.push(message);
    }

    /// A message that may be there already: a thought that goes on.
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

    /// What is known of a call belongs to the call, not to the message around it.
    fn change_call(&mut self, id: &str, delta: &str, metadata: Metadata) {
        let Some(at) = self.at(id) else { return };
        if let MessageBody::Assistant { tool_calls, .. } = &mut self.messages[at].body
            && let [call] = tool_calls.as_mut_slice()
        {
            call.function.arguments.push_str(delta);
            call.metadata = metadata;
        }
    }

    /// Behind the call, and behind what it has returned before.
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

    /// What changes is mostly among the last.
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
