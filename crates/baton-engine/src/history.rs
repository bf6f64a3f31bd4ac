//! The earlier messages of a thread, as a session sees them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use baton_core::chat::{ChatMessage, Reply};
use baton_core::message::{IncludedParts, Message, Part, Role, parts_to_text};
use baton_core::store::{HandoffNotes, HandoffSession, MessageQuery, RunRecord, ThreadMessage};
use baton_core::{AgentName, RunId, StoreError, TenantStore};

use crate::failure::Failure;
use crate::retry::retry;

/// Messages that a session starts with. Older ones would be dropped first anyway when the model's window is full.
const MAX_RECENT: u32 = 100;
const MAX_ATTEMPTS: u32 = 10;
const RETRY_DELAY: Duration = Duration::from_millis(300);

/// The messages of a thread before a run's message, and the parts of that message.
#[derive(Debug)]
pub(crate) struct ThreadHistory {
    history: Arc<Vec<ChatMessage>>,
    /// Where each entry of `history` comes from.
    origins: Vec<MessageOrigin>,
    pub(crate) parts: Arc<Vec<Part>>,
}

#[derive(Debug)]
struct MessageOrigin {
    number: u64,
    run_id: RunId,
    /// The author; `None` for a user.
    agent: Option<AgentName>,
}

impl ThreadHistory {
    /// Skips leading answers: some models require a user message first.
    fn new(before: Vec<ThreadMessage>, parts: Vec<Part>) -> Self {
        let is_answer = |said: &ThreadMessage| said.message.role == Role::Assistant;
        let said = before.into_iter().skip_while(is_answer).map(|said| {
            let (run_id, agent) = (said.message.run_id, said.message.agent.clone());
            (MessageOrigin { number: said.number, run_id, agent }, to_chat_message(said.message))
        });
        let (origins, history): (Vec<MessageOrigin>, Vec<ChatMessage>) = said.unzip();
        Self { history: history.into(), origins, parts: parts.into() }
    }

    /// All messages, as a session starts with them.
    pub(crate) fn history(&self) -> Arc<Vec<ChatMessage>> {
        Arc::clone(&self.history)
    }

    /// The last `recent` messages before message number `since`.
    pub(crate) fn recent(&self, since: u64, recent: u32) -> Vec<ChatMessage> {
        let before: Vec<&ChatMessage> = self.filtered(|one| one.number < since).collect();
        let skipped = before.len().saturating_sub(recent as usize);
        starting_with_user(before.into_iter().skip(skipped))
    }

    /// The messages of a handoff for its holder: without those of the runs that are kept from it, and without the sentence that
    /// announced it, which is not the holder's.
    pub(crate) fn since_handoff(&self, handoff: &HandoffSession) -> Vec<ChatMessage> {
        let HandoffNotes { since, aside, origin, .. } = &handoff.notes;
        let opened_in = origin.as_ref().and_then(|origin| origin.opened_in.as_ref()).map(|(run, _)| *run);
        let announces = |one: &MessageOrigin| {
            opened_in == Some(one.run_id) && one.agent.as_ref() == Some(&handoff.source_agent_id)
        };
        let is_wanted =
            |one: &MessageOrigin| one.number >= *since && !aside.contains(&one.run_id) && !announces(one);
        starting_with_user(self.filtered(is_wanted))
    }

    fn filtered(&self, is_wanted: impl Fn(&MessageOrigin) -> bool) -> impl Iterator<Item = &ChatMessage> {
        let messages = self.origins.iter().zip(self.history.iter());
        messages.filter(move |(origin, _)| is_wanted(origin)).map(|(_, message)| message)
    }
}

fn starting_with_user<'a>(messages: impl Iterator<Item = &'a ChatMessage>) -> Vec<ChatMessage> {
    messages.skip_while(|message| matches!(message, ChatMessage::Assistant(_))).cloned().collect()
}

/// Loads the messages up to the run's own. Without `is_said` the run has no message, and `parts` is empty.
pub(crate) async fn load(
    store: &dyn TenantStore,
    record: &RunRecord,
    is_said: bool,
) -> Result<ThreadHistory, Failure> {
    let own = record.message_number;
    let read = |query| retry(MAX_ATTEMPTS, RETRY_DELAY, move || store.messages(record.thread_id, query));
    let mut messages = read(MessageQuery::last(MAX_RECENT)).await?;
    if messages.first().is_some_and(|first| first.number > own) {
        // The run's message is not among the last ones: more than that were queued behind it.
        let query = MessageQuery { before: Some(own + 1), ..MessageQuery::last(MAX_RECENT) };
        messages.extend(read(query).await?);
    }
    from_messages(messages, record, is_said)
}

/// Like [`load`], from messages that were read with the claim.
pub(crate) fn from_messages(
    mut messages: Vec<ThreadMessage>,
    record: &RunRecord,
    is_said: bool,
) -> Result<ThreadHistory, Failure> {
    let own = record.message_number;
    // Messages that the run itself wrote before a crash are not part of its history.
    messages.retain(|message| message.message.run_id != record.run_id || message.number == own);
    let mut before = in_order(messages, own);
    if !is_said {
        return Ok(ThreadHistory::new(before, Vec::new()));
    }
    match before.pop() {
        Some(last) if last.number == own => Ok(ThreadHistory::new(before, last.message.parts)),
        _ => Err(StoreError::NotFound("the message of the run").into()),
    }
}

/// Orders messages so that each is followed by its answer, up to the run's own. By number, a queued message precedes the answer
/// to the message before it. Messages queued behind the run's own are dropped.
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

fn to_chat_message(message: Message) -> ChatMessage {
    match message.role {
        Role::User | Role::System => ChatMessage::User { parts: message.parts },
        // A JSON answer is text to the model that gave it. Its files are named.
        Role::Assistant => {
            let mut text = parts_to_text(&message.parts, IncludedParts::TextAndData);
            for name in message.parts.iter().filter_map(file_name) {
                let _ = write!(text, "\n[file: {name}]");
            }
            ChatMessage::Assistant(Reply { text, ..Reply::default() })
        }
    }
}

/// Characters of a file's name that a model reads as part of its own earlier answer.
const MAX_NAME_CHARS: usize = 60;

/// The name of a part that is a file, without anything that could be read as a sentence: strangers choose names of files.
fn file_name(part: &Part) -> Option<String> {
    let name = match part {
        Part::Image(image) => image.name.as_ref().unwrap_or(&image.media_type),
        Part::File { name, .. } => name,
        Part::Text { .. } | Part::Data { .. } => return None,
    };
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "._-/".contains(*c);
    Some(name.chars().filter(is_plain).take(MAX_NAME_CHARS).collect())
}
