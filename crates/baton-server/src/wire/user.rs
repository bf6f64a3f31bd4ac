//! The erasure of a user.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// An erasure. The audit trail names it by its id.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErasureView {
    pub erasure_id: Uuid,
    /// `completed` or `in_progress`.
    pub status: &'static str,
}
