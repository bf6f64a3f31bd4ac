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

/// The conversation before the run's message, and the message.
pub(crate) async fn load(
    store: &dyn TenantStore,
    record: &RunRecord,
) -> Result<(Vec<ChatMessage>, Vec<Part>), Failure> {
    let own = record.message_number;
    let read = |query| again(TRIES, PAUSE, move || store.messages(record.thread_id, query));
    let mut messages = read(MessageQuery::last(RECENT)).await?;
    if messages.first().is_some_and(|first| first.number > own) {
        // So many came in after it that it is not among the last.
        let query = MessageQuery { before: Some(own + 1), ..MessageQuery::last(RECENT) };
        messages.extend(read(query).await?);
    }
    let mut messages = in_order(messages, own);
    match messages.pop() {
        Some(last) if last.number == own => {
            let said = messages.into_iter().map(|earlier| as_said(earlier.message));
            // Some models want to hear a person first.
            let history = said.skip_while(|message| matches!(message, ChatMessage::Assistant(_))).collect();
            Ok((history, last.message.parts))
        }
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
