//! Feedback: ratings of messages by users.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::choices;
use crate::id::{MessageId, ThreadId, UserId};
use crate::store::{Pending, ThreadMessage};

choices! {
    pub enum Rating {
        Good = "good",
        Bad = "bad",
    }
}

/// One rating per message and user; a later one replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    pub message_id: MessageId,
    pub user_id: UserId,
    pub rating: Rating,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    pub at: Timestamp,
}

pub trait Feedbacks: Send + Sync {
    /// Stores a rating. The message must exist. The rating also counts for the patterns of its run's hops.
    fn put_feedback(&self, feedback: Feedback) -> Pending<'_, ()>;

    /// Ratings of one message, oldest first.
    fn feedback(&self, message: MessageId) -> Pending<'_, Vec<Feedback>>;

    /// Ratings by one user for the messages of a thread with these numbers. Messages without a rating are omitted.
    fn ratings(
        &self,
        thread: ThreadId,
        user: &UserId,
        numbers: RangeInclusive<u64>,
    ) -> Pending<'_, Vec<(MessageId, Rating)>>;

    /// A message and its thread.
    fn message(&self, message: MessageId) -> Pending<'_, (ThreadId, ThreadMessage)>;
}
