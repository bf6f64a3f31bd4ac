//! The workspace of a thread: the files that its tools read and write.

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use jiff::Timestamp;

use crate::id::{TenantId, ThreadId};

/// The workspaces of all threads. No path leads from one to another.
pub trait Workspaces: Send + Sync + fmt::Debug {
    /// The folder of a thread, which need not exist yet.
    fn path(&self, tenant: &TenantId, thread: ThreadId) -> PathBuf;

    /// The files of a thread, sorted by path, at most [`MAX_WORKSPACE_FILES`]. Hidden ones and links are left out.
    fn files(&self, tenant: &TenantId, thread: ThreadId) -> WorkspaceFuture<'_, Vec<WorkspaceFile>>;

    /// Opens a file of a thread. `None` if there is no regular file at this path, or a hidden one.
    fn open(
        &self,
        tenant: &TenantId,
        thread: ThreadId,
        path: &str,
    ) -> WorkspaceFuture<'_, Option<(WorkspaceFile, File)>>;

    /// Bytes on the disk of all files of a thread, also hidden ones.
    fn size(&self, tenant: &TenantId, thread: ThreadId) -> WorkspaceFuture<'_, u64>;

    /// Deletes all files of a thread.
    fn delete(&self, tenant: &TenantId, thread: ThreadId) -> WorkspaceFuture<'_, ()>;
}

pub const MAX_WORKSPACE_FILES: usize = 10_000;

pub type WorkspaceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, WorkspaceError>> + Send + 'a>>;

/// A file of a workspace, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceFile {
    /// Relative to the workspace.
    pub path: String,
    /// In bytes.
    pub size: u64,
    pub modified_at: Timestamp,
}

/// Why files cannot be read or deleted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the files of the thread are not available: {0}")]
pub struct WorkspaceError(pub String);
