//! Conversations and what was said in them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::id::{AgentName, HandoffId, RunId, ThreadId, UserId};
use crate::message::Message;
use crate::store::{Page, PageRequest, Pending};

/// A conversation as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    pub thread_id: ThreadId,
    pub user_id: UserId,
    /// The beginning of its first message, until it is renamed.
    pub title: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Who answers next; `None` until somebody has answered.
    pub holder: Option<AgentName>,
    /// The handoff under which the holder has the thread.
    pub handoff: Option<HandoffId>,
    /// Of every visibility.
    pub total_messages: u64,
    /// The number of its last event; 0 when there is none.
    pub last_seq: u64,
    /// The run that is being worked on, or was when its process died.
    pub active_run: Option<RunId>,
    /// Runs that wait for their turn.
    pub queued: u64,
}

/// A message and where it stands in its thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadMessage {
    /// From 1, without gaps.
    pub number: u64,
    #[serde(flatten)]
    pub message: Message,
}

/// Which messages are wanted: the newest that match, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageQuery {
    pub limit: u32,
    /// Only those with a smaller number.
    pub before: Option<u64>,
    /// Also what only those see who may read traces.
    pub include_internal: bool,
    /// Also messages of the role `system`.
    pub include_system: bool,
}

impl MessageQuery {
    pub const DEFAULT_LIMIT: u32 = 10;

    /// The last `count` that a person sees.
    pub fn last(count: u32) -> Self {
        Self { limit: count, before: None, include_internal: false, include_system: false }
    }
}

impl Default for MessageQuery {
    fn default() -> Self {
        Self::last(Self::DEFAULT_LIMIT)
    }
}

/// What can be done with threads. A thread begins with its first run, see [`super::Runs::accept`].
pub trait Threads: Send + Sync {
    /// With a user, only that user's thread is found.
    fn thread(&self, thread: ThreadId, user: Option<&UserId>) -> Pending<'_, Thread>;

    /// Those that were used last come first.
    fn threads(&self, user: Option<&UserId>, page: PageRequest) -> Pending<'_, Page<Thread>>;

    /// Those whose title contains `text`, in the same order. Upper and lower case of ASCII letters are the same; whether those of
    /// other letters are depends on the database.
    fn find_threads(&self, user: Option<&UserId>, text: &str, page: PageRequest)
    -> Pending<'_, Page<Thread>>;

    /// Replaces the title. It is not a use of the thread: its place in lists stays. Later messages leave the title as it is.
    fn rename_thread(&self, thread: ThreadId, user: Option<&UserId>, title: &str) -> Pending<'_, Thread>;

    /// Deletes it and all it owns. Whoever works on it notices at the next write.
    fn delete_thread(&self, thread: ThreadId, user: Option<&UserId>) -> Pending<'_, ()>;

    /// Costs the same in a long thread as in a short one.
    fn messages(&self, thread: ThreadId, query: MessageQuery) -> Pending<'_, Vec<ThreadMessage>>;

    /// The numbers of the last events of many threads. Threads that do not exist are left out.
    fn last_seqs(&self, threads: &[ThreadId]) -> Pending<'_, Vec<(ThreadId, u64)>>;

    /// Events with a number above `after`, in order.
    fn events(&self, thread: ThreadId, after: u64, limit: u32) -> Pending<'_, Vec<Event>>;
}
