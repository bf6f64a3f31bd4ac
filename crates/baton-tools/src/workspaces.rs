//! The workspaces of threads: `<data>/tenants/<tenant>/threads/<thread>/`.
//!
//! Only the server's user can enter them. A workspace is created when a tool first uses it, and deleted after its thread: if the
//! process dies in between, the next [`ThreadWorkspaces::sweep`] deletes it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use baton_core::workspace::{MAX_WORKSPACE_FILES, WorkspaceFuture};
use baton_core::{Store, StoreError, TenantId, ThreadId, WorkspaceError, WorkspaceFile, Workspaces};
use jiff::Timestamp;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, statat};
use uuid::Uuid;

use crate::work_dir::{OpenFolder, PathError, WorkDir, create_private};

const MAX_DEPTH: usize = 32;
/// Names of files may have 255 bytes.
const MAX_NAME_BYTES: usize = 200;
/// Threads that one query of a sweep asks for.
const SWEEP_BATCH: usize = 500;

/// The workspaces in a data folder. Several servers of one store have to share the folder.
#[derive(Debug, Clone)]
pub struct ThreadWorkspaces {
    data: PathBuf,
}

impl ThreadWorkspaces {
    /// The folder need not exist yet.
    pub fn new(data: PathBuf) -> Self {
        Self { data: std::path::absolute(&data).unwrap_or(data) }
    }

    /// Deletes the workspaces of threads that do not exist. Tenants that the store does not know are left alone, so that a
    /// server with a wrong store deletes nothing.
    pub async fn sweep(&self, store: &dyn Store) -> Result<u64, StoreError> {
        let mut deleted = 0;
        for tenant in store.tenants().await? {
            let threads = self.threads(&tenant).await;
            for batch in threads.chunks(SWEEP_BATCH) {
                let known = store.tenant(&tenant).last_seqs(batch).await?;
                let is_known = |thread: &&ThreadId| known.iter().any(|(known, _)| known == *thread);
                for thread in batch.iter().filter(|thread| !is_known(thread)) {
                    match self.delete(&tenant, *thread).await {
                        Ok(()) => deleted += 1,
                        Err(error) => tracing::warn!(%tenant, %thread, %error, "cannot delete a workspace"),
                    }
                }
            }
        }
        let left = self.deleted();
        let removed = blocking(move || {
            remove_entries(&left);
            Ok(())
        });
        let _ = removed.await;
        Ok(deleted)
    }

    /// The threads of a tenant that have a workspace.
    async fn threads(&self, tenant: &TenantId) -> Vec<ThreadId> {
        let folder = self.tenant(tenant);
        let listed = blocking(move || {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            Ok(entries.filter_map(|entry| ThreadId::parse(entry.file_name().to_str()?).ok()).collect())
        });
        listed.await.unwrap_or_default()
    }

    fn tenant(&self, tenant: &TenantId) -> PathBuf {
        let mut path = self.data.join("tenants");
        path.extend(tenant_folders(tenant));
        path.join("threads")
    }

    /// Workspaces on their way out, under names of their own.
    fn deleted(&self) -> PathBuf {
        self.data.join("deleted")
    }
}

impl Workspaces for ThreadWorkspaces {
    fn path(&self, tenant: &TenantId, thread: ThreadId) -> PathBuf {
        self.tenant(tenant).join(thread.to_string())
    }

    fn files(&self, tenant: &TenantId, thread: ThreadId) -> WorkspaceFuture<'_, Vec<WorkspaceFile>> {
        let path = self.path(tenant, thread);
        Box::pin(blocking(move || {
            if !path.is_dir() {
                return Ok(Vec::new());
            }
            let work_dir = WorkDir::open(&path, &[]).map_err(unavailable)?;
            let mut files = Vec::new();
            let root = work_dir.folder("").map_err(unavailable)?;
            list(&root, "", 0, &mut files);
            files.sort_by(|a: &WorkspaceFile, b| a.path.cmp(&b.path));
            Ok(files)
        }))
    }

    fn open(
        &self,
        tenant: &TenantId,
        thread: ThreadId,
        path: &str,
    ) -> WorkspaceFuture<'_, Option<(WorkspaceFile, File)>> {
        let (workspace, path) = (self.path(tenant, thread), path.to_owned());
        Box::pin(blocking(move || {
            let opened = WorkDir::open(&workspace, &[]).and_then(|work_dir| work_dir.file(&path));
            let file = match opened {
                Ok(file) => file,
                Err(PathError::Io { error, .. }) if !is_absence(&error) => return Err(unavailable(error)),
                Err(_) => return Ok(None),
            };
            let found = file.metadata().map_err(unavailable)?;
            let modified_at = found.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
            let modified_at = modified_at.unwrap_or(Timestamp::UNIX_EPOCH);
            Ok(Some((WorkspaceFile { path, size: found.len(), modified_at }, file)))
        }))
    }

    fn delete(&self, tenant: &TenantId, thread: ThreadId) -> WorkspaceFuture<'_, ()> {
        let (path, deleted) = (self.path(tenant, thread), self.deleted());
        Box::pin(blocking(move || {
            if !path.exists() {
                return Ok(());
            }
            create_private(&deleted).map_err(unavailable)?;
            // Renamed first: a program that still runs in the folder cannot bring it back under its name.
            let place = deleted.join(Uuid::new_v4().to_string());
            fs::rename(&path, &place).map_err(unavailable)?;
            remove(&place).map_err(unavailable)
        }))
    }
}

/// Whether the error means that there is no such file. No file has a name with a zero byte or one that is too long.
fn is_absence(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput | ErrorKind::InvalidFilename)
}

fn unavailable(error: impl std::fmt::Display) -> WorkspaceError {
    WorkspaceError(error.to_string())
}

/// Runs work that blocks off the async threads. It is not interrupted when the future is dropped.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(unavailable(error)))
}

/// A tenant's id as names of folders that differ whenever the ids do, also where case does not count. Ids of any characters are
/// possible; long ones need several folders, and the further ones begin with a mark that no other folder has.
fn tenant_folders(tenant: &TenantId) -> Vec<String> {
    let (mut folders, mut last) = (Vec::new(), String::new());
    for byte in tenant.as_str().bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => last.push(char::from(byte)),
            _ => last += &format!("%{byte:02x}"),
        }
        if last.len() > MAX_NAME_BYTES {
            folders.push(std::mem::replace(&mut last, "%+".to_owned()));
        }
    }
    folders.push(last);
    folders
}

/// Adds the regular files of a folder and those below. Links are not followed, and what cannot be read is left out.
fn list(folder: &OpenFolder, prefix: &str, depth: usize, files: &mut Vec<WorkspaceFile>) {
    let Ok(entries) = Dir::read_from(&folder.folder) else { return };
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let Some(text) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let Ok(status) = statat(&folder.folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let path = format!("{prefix}{text}");
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile if files.len() < MAX_WORKSPACE_FILES => {
                let modified_at = Timestamp::from_second(status.st_mtime).unwrap_or(Timestamp::UNIX_EPOCH);
                files.push(WorkspaceFile { path, size: status.st_size.unsigned_abs(), modified_at });
            }
            FileType::Directory if depth < MAX_DEPTH && files.len() < MAX_WORKSPACE_FILES => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let Ok(inner) = openat(&folder.folder, name, flags, Mode::empty()) else { continue };
                let inner = OpenFolder { folder: inner, names: Vec::new() };
                list(&inner, &format!("{path}/"), depth + 1, files);
            }
            _ => {}
        }
    }
}

/// Programs may have made folders that cannot be read; they are made readable then.
fn remove(path: &Path) -> std::io::Result<()> {
    fs::remove_dir_all(path).or_else(|_| {
        make_readable(CWD, path.as_os_str(), 0);
        fs::remove_dir_all(path)
    })
}

/// Never follows a link, also if a program that still runs puts one in place of a folder: it would change a file elsewhere.
fn make_readable(parent: BorrowedFd<'_>, name: &OsStr, depth: usize) {
    let _ = chmodat(parent, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(folder) = openat(parent, name, flags, Mode::empty()) else { return };
    let Ok(entries) = Dir::read_from(&folder) else { return };
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let is_folder = entry.file_type() == FileType::Directory && name != "." && name != "..";
        if is_folder && depth < 4 * MAX_DEPTH {
            make_readable(folder.as_fd(), name, depth + 1);
        }
    }
}

/// What a process that died has left.
fn remove_entries(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if let Err(error) = remove(&entry.path()) {
            tracing::warn!(%error, "cannot delete a workspace");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_get_folders_of_their_own() {
        let folders = |id: &str| tenant_folders(&TenantId::parse(id).unwrap()).join("/");
        assert_eq!(folders("acme-1"), "acme-1");
        assert_eq!(folders(".."), "%2e%2e");
        assert_eq!(folders("a/b"), "a%2fb");
        assert_eq!(folders("Acme"), "%41cme");
        assert!(folders(&"ü".repeat(255)).split('/').all(|part| part.len() <= 255));
        assert_ne!(folders(&"a".repeat(240)), folders(&"a".repeat(241)));
    }
}
