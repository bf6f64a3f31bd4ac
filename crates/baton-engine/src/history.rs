//! What was said before, as a session sees it.

use std::collections::HashMap;
use std::time::Duration;

use baton_core::chat::{ChatMessage, Reply};
use baton_core::message::{Message, Part, Role};
use baton_core::store::{MessageQuery, RunRecord, ThreadMessage};
use baton_core::{RunId, StoreError, TenantStore};

use crate::again::again;
use crate::failure::Failure;

/// Messages that a session begins with. A thread may be any length; what does not fit into the model goes first anyway.
const RECENT: u32 = 100;
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(300);

/// What was said in a thread up to a run's message, and the message.
#[derive(Debug)]
pub(crate) struct Said {
    before: Vec<ThreadMessage>,
    pub(crate) parts: Vec<Part>,
}

impl Said {
    /// All of it that a session begins with.
    pub(crate) fn history(&self) -> Vec<ChatMessage> {
        as_history(self.before.iter().map(|earlier| &earlier.message))
    }

    /// The last `recent` before the message with the number `since`, as far as they are its giver's to give.
    pub(crate) fn recent(&self, since: u64, recent: u32) -> Vec<ChatMessage> {
        let before: Vec<&ThreadMessage> = self.before.iter().filter(|said| said.number < since).collect();
        let skipped = before.len().saturating_sub(recent as usize);
        as_history(before.into_iter().skip(skipped).map(|said| &said.message))
    }

    /// From the message with the number `since` on.
    pub(crate) fn since(&self, since: u64) -> Vec<ChatMessage> {
        as_history(self.before.iter().filter(|said| said.number >= since).map(|said| &said.message))
    }
}

/// Some models want to hear a person first.
fn as_history<'a>(messages: impl Iterator<Item = &'a Message>) -> Vec<ChatMessage> {
    let said = messages.cloned().map(as_said);
    said.skip_while(|message| matches!(message, ChatMessage::Assistant(_))).collect()
}

/// The conversation before the run's message, and the message. Nobody may have said anything: then there is none.
pub(crate) async fn load(
    store: &dyn TenantStore,
    record: &RunRecord,
    is_said: bool,
) -> Result<Said, Failure> {
    let own = record.message_number;
    let read = |query| again(TRIES, PAUSE, move || store.messages(record.thread_id, query));
    let mut messages = read(MessageQuery::last(RECENT)).await?;
    if messages.first().is_some_and(|first| first.number > own) {
        // So many came in after it that it is not among the last.
        let query = MessageQuery { before: Some(own + 1), ..MessageQuery::last(RECENT) };
        messages.extend(read(query).await?);
    }
    // What the run itself has said before a crash is not what it is about.
    messages.retain(|message| message.message.run_id != record.run_id || message.number == own);
    let mut before = in_order(messages, own);
    if !is_said {
        return Ok(Said { before, parts: Vec::new() });
    }
    match before.pop() {
        Some(last) if last.number == own => Ok(Said { before, parts: last.message.parts }),
        _ => Err(StoreError::NotFound("the message of the run").into()),
    }
}

/// Each question with its answer, up to the run's own. A message that had to wait was said before the answer to the one before
/// it, and those behind it in the queue are not its business.
fn in_order(mut messages: Vec<ThreadMessage>, own: u64) -> Vec<ThreadMessage> {
    let mut asked: HashMap<RunId, u64> = HashMap::new();
    for message in &messages {
        let first = asked.entry(message.message.run_id).or_insert(message.number);
        *first = message.number.min(*first);
    }
    let place = |message: &ThreadMessage| (asked[&message.message.run_id], message.number);
    messages.retain(|message| place(message).0 <= own);
    messages.sort_by_key(place);
    messages.dedup_by_key(|message| message.number);
    messages
}

fn as_said(message: Message) -> ChatMessage {
    match message.role {
        Role::User | Role::System => ChatMessage::User { parts: message.parts },
        Role::Assistant => ChatMessage::Assistant(Reply { text: words(&message.parts), ..Reply::default() }),
    }
}

/// An answer of JSON is text to the model that gave it.
fn words(parts: &[Part]) -> String {
    let words = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.clone()),
        Part::Data { data } => Some(data.to_string()),
        Part::Image(_) | Part::File { .. } => None,
    });
    words.collect::<Vec<_>>().join("\n")
}
