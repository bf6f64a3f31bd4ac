//! What was said before, as a session sees it.

use std::collections::HashMap;
use std::sync::Arc;
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
    history: Arc<Vec<ChatMessage>>,
    /// The number of each message of the history.
    numbers: Vec<u64>,
    pub(crate) parts: Arc<Vec<Part>>,
}

impl Said {
    /// Some models want to hear a person first.
    fn new(before: Vec<ThreadMessage>, parts: Vec<Part>) -> Self {
        let is_answer = |said: &ThreadMessage| said.message.role == Role::Assistant;
        let said = before.into_iter().skip_while(is_answer).map(|said| (said.number, as_said(said.message)));
        let (numbers, history): (Vec<u64>, Vec<ChatMessage>) = said.unzip();
        Self { history: history.into(), numbers, parts: parts.into() }
    }

    /// All of it that a session begins with.
    pub(crate) fn history(&self) -> Arc<Vec<ChatMessage>> {
        Arc::clone(&self.history)
    }

    /// The last `recent` before the message with the number `since`, as far as they are its giver's to give.
    pub(crate) fn recent(&self, since: u64, recent: u32) -> Vec<ChatMessage> {
        let before: Vec<&ChatMessage> = self.numbered(|number| number < since).collect();
        let skipped = before.len().saturating_sub(recent as usize);
        from_a_person(before.into_iter().skip(skipped))
    }

    /// From the message with the number `since` on.
    pub(crate) fn since(&self, since: u64) -> Vec<ChatMessage> {
        from_a_person(self.numbered(|number| number >= since))
    }

    fn numbered(&self, is_wanted: impl Fn(u64) -> bool) -> impl Iterator<Item = &ChatMessage> {
        let numbered = self.numbers.iter().zip(self.history.iter());
        numbered.filter(move |(number, _)| is_wanted(**number)).map(|(_, message)| message)
    }
}

fn from_a_person<'a>(messages: impl Iterator<Item = &'a ChatMessage>) -> Vec<ChatMessage> {
    messages.skip_while(|message| matches!(message, ChatMessage::Assistant(_))).cloned().collect()
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
    said(messages, record, is_said)
}

/// The same from messages that were read with the claim.
pub(crate) fn said(
    mut messages: Vec<ThreadMessage>,
    record: &RunRecord,
    is_said: bool,
) -> Result<Said, Failure> {
    let own = record.message_number;
    // What the run itself has said before a crash is not what it is about.
    messages.retain(|message| message.message.run_id != record.run_id || message.number == own);
    let mut before = in_order(messages, own);
    if !is_said {
        return Ok(Said::new(before, Vec::new()));
    }
    match before.pop() {
        Some(last) if last.number == own => Ok(Said::new(before, last.message.parts)),
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
