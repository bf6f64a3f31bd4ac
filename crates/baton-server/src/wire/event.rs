//! Events of a stream, as far as they are described here; AG-UI describes the rest.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// One AG-UI 1.0 event, the `data` of one server-sent event. What each type carries, AG-UI says; what Baton adds is in `metadata.baton`.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventView {
    /// `RUN_STARTED`, `TEXT_MESSAGE_CONTENT`, …
    pub r#type: String,
    /// Where it comes from: `{thread_id, run_id, agent, path, seq}`.
    pub metadata: Value,
}
