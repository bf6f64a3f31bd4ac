//! Events of a stream, as far as they are described here; AG-UI describes the rest.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// One AG-UI 1.0 event. What each type carries, AG-UI says; what Baton adds is in `metadata.baton`.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventView {
    /// `RUN_STARTED`, `TEXT_MESSAGE_CONTENT`, …
    pub r#type: String,
    /// Where it comes from: `{thread_id, run_id, agent, path, seq}`.
    pub metadata: Value,
}

/// One server-sent event. The first says only `retry`; every other one has an `id` and `data`.
#[derive(Debug, Serialize, ToSchema)]
pub struct SentEvent {
    /// An `EventView` as JSON.
    #[schema(required = false, value_type = String, content_media_type = "application/json")]
    pub data: Option<EventView>,
    /// The number to come back with, as `Last-Event-ID`.
    #[schema(required = false, value_type = String, pattern = "^[0-9]+$")]
    pub id: Option<String>,
    /// Milliseconds until a client that was cut off comes back.
    #[schema(required = false, value_type = u32)]
    pub retry: Option<u32>,
}
