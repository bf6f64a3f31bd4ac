//! Files of workspaces.

use baton_core::{ThreadId, WorkspaceFile};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::schema::moment;

const LONGEST_PATH: usize = 4096;

/// A file of a workspace, without its bytes.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileView {
    /// Relative to the workspace.
    pub path: String,
    /// In bytes.
    pub size: u64,
    /// Where it can be downloaded.
    pub uri: String,
    #[schema(schema_with = moment)]
    pub modified_at: Timestamp,
}

impl FileView {
    pub fn of(thread: ThreadId, file: WorkspaceFile) -> Self {
        let path: String = form_urlencoded::byte_serialize(file.path.as_bytes()).collect();
        let uri = format!("/api/v1/threads/{thread}/files/content?path={path}");
        Self { path: file.path, size: file.size, uri, modified_at: file.modified_at }
    }
}

/// Which file is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct FileParams {
    /// `path` of the list of files.
    pub path: String,
}

/// Whether a text can be the path of a file in a list.
pub fn is_path(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST_PATH
}
