//! A message that was accepted, for callers that do not wait for its run.

use baton_core::{MessageId, RunId, ThreadId};
use serde::Serialize;
use utoipa::ToSchema;

use super::run::StatusView;

/// The message is kept and its run is queued, or was before.
#[derive(Debug, Serialize, ToSchema)]
pub struct AcceptedView {
    #[schema(value_type = Uuid)]
    pub run_id: RunId,
    #[schema(value_type = Uuid)]
    pub thread_id: ThreadId,
    /// The message that was sent, as the history shows it.
    #[schema(value_type = Uuid)]
    pub message_id: MessageId,
    /// The status of the run now.
    pub status: StatusView,
}
