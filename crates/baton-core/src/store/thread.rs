//! Threads and their messages.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::id::{AgentName, HandoffId, RunId, ThreadId, UserId};
use crate::message::Message;
use crate::store::{Page, PageRequest, Pending};

/// A stored thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    pub thread_id: ThreadId,
    pub user_id: UserId,
    /// The beginning of the first message, unless renamed.
    pub title: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The agent that answers next; `None` before the first answer.
    pub holder: Option<AgentName>,
    /// The holder's handoff.
    pub handoff: Option<HandoffId>,
    /// Messages of any visibility.
    pub total_messages: u64,
    /// Number of the last event; 0 if there is none.
    pub last_seq: u64,
    /// The run being executed, or orphaned by a crash.
    pub active_run: Option<RunId>,
    /// Number of queued runs.
    pub queued: u64,
}

/// A message with its position in the thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadMessage {
    /// From 1, without gaps.
    pub number: u64,
    #[serde(flatten)]
    pub message: Message,
}

/// Selects the newest matching messages, returned oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageQuery {
    pub limit: u32,
    /// Only messages with a smaller number.
    pub before: Option<u64>,
    /// Includes messages that only callers with access to traces may see.
    pub include_internal: bool,
    /// Includes messages of the role `system`.
    pub include_system: bool,
}

impl MessageQuery {
    pub const DEFAULT_LIMIT: u32 = 10;

    /// The last `count` messages visible to the user.
    pub fn last(count: u32) -> Self {
        Self { limit: count, before: None, include_internal: false, include_system: false }
    }
}

impl Default for MessageQuery {
    fn default() -> Self {
        Self::last(Self::DEFAULT_LIMIT)
    }
}

/// Operations on threads. [`super::Runs::accept`] creates them.
pub trait Threads: Send + Sync {
    /// With a user, finds only that user's thread.
    fn thread(&self, thread: ThreadId, user: Option<&UserId>) -> Pending<'_, Thread>;

    /// Most recently used first.
    fn threads(&self, user: Option<&UserId>, page: PageRequest) -> Pending<'_, Page<Thread>>;

    /// Threads whose title contains `text`, most recently used first. Ignores the case of ASCII letters; for other letters this
    /// depends on the database.
    fn find_threads(&self, user: Option<&UserId>, text: &str, page: PageRequest)
    -> Pending<'_, Page<Thread>>;

    /// Replaces the title, which later messages do not change. Does not count as a use of the thread, so its position in lists
    /// stays.
    fn rename_thread(&self, thread: ThreadId, user: Option<&UserId>, title: &str) -> Pending<'_, Thread>;

    /// Deletes the thread and all its data. A worker's next write fails.
    fn delete_thread(&self, thread: ThreadId, user: Option<&UserId>) -> Pending<'_, ()>;

    /// The cost does not depend on the length of the thread.
    fn messages(&self, thread: ThreadId, query: MessageQuery) -> Pending<'_, Vec<ThreadMessage>>;

    /// Last event numbers of many threads. Unknown threads are omitted.
    fn last_seqs(&self, threads: &[ThreadId]) -> Pending<'_, Vec<(ThreadId, u64)>>;

    /// Events with a number above `after`, in order.
    fn events(&self, thread: ThreadId, after: u64, limit: u32) -> Pending<'_, Vec<Event>>;
}
