//! What people think of an answer.

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

/// One per message and user; a later one replaces it.
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
    /// The message must exist. What is thought of an answer counts for the ways the baton took in its run.
    fn put_feedback(&self, feedback: Feedback) -> Pending<'_, ()>;

    /// Of one message, the oldest first.
    fn feedback(&self, message: MessageId) -> Pending<'_, Vec<Feedback>>;

    /// How one user rated messages of a thread, for those whose number is in the range. What was not rated is left out.
    fn ratings(
        &self,
        thread: ThreadId,
        user: &UserId,
        numbers: RangeInclusive<u64>,
    ) -> Pending<'_, Vec<(MessageId, Rating)>>;

    /// A message and the thread it stands in.
    fn message(&self, message: MessageId) -> Pending<'_, (ThreadId, ThreadMessage)>;
}
