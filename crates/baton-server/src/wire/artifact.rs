//! Files that people sent or agents made: what they may be called, and where they are.

use baton_core::store::Artifact;
use baton_core::{RunId, ThreadId};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use super::schema::moment;
pub use baton_core::media::{
    UNKNOWN_TYPE as ANY, artifact_in as id_in, artifact_uri as uri, clean_name, is_media_type,
};

/// A file, without its bytes.
#[derive(Debug, Serialize, ToSchema)]
pub struct ArtifactView {
    pub artifact_id: Uuid,
    #[schema(value_type = Uuid)]
    pub thread_id: ThreadId,
    /// The run that made it; absent for a file that a person sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>, nullable = false)]
    pub run_id: Option<RunId>,
    pub name: String,
    pub media_type: String,
    /// In bytes.
    pub size: u64,
    /// Where it can be downloaded, and how messages refer to it.
    pub uri: String,
    #[schema(schema_with = moment)]
    pub created_at: Timestamp,
}

impl From<Artifact> for ArtifactView {
    fn from(artifact: Artifact) -> Self {
        Self {
            artifact_id: artifact.artifact_id,
            thread_id: artifact.thread_id,
            run_id: artifact.run_id,
            name: artifact.name,
            media_type: artifact.media_type,
            size: artifact.size,
            uri: uri(artifact.artifact_id),
            created_at: artifact.created_at,
        }
    }
}

/// What is taken when a file is sent.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "only described: a form is read piece by piece")]
pub struct ArtifactForm {
    /// The thread it is for, which begins if there is none.
    #[schema(value_type = Uuid)]
    thread_id: String,
    /// With its name and media type.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// The bytes of a file, about which a schema has nothing to say.
#[derive(Debug)]
pub struct Contents;

impl PartialSchema for Contents {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
    }
}

impl ToSchema for Contents {}

/// Scripts and style sheets, which a page of this server could load as its own. Sent as plain text, no browser runs them.
pub fn is_loaded_by_pages(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.contains("javascript")
        || essence.contains("ecmascript")
        || essence.contains("jscript")
        || essence == "text/css"
}

pub fn is_image(media_type: &str) -> bool {
    is_media_type(media_type) && media_type.to_ascii_lowercase().starts_with("image/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_their_type() {
        assert!(is_image("Image/PNG") && !is_image("imagine/png") && !is_image("image/"));
    }
}
