//! The workspaces of threads: `<data>/tenants/<tenant>/threads/<thread>/`.
//!
//! Only the server's user can enter them. A workspace is created when a tool first uses it, and deleted after its thread: if the
//! process dies in between, the next [`ThreadWorkspaces::sweep`] deletes it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use baton_core::workspace::{MAX_WORKSPACE_FILES, WorkspaceFuture};
use baton_core::{Store, StoreError, TenantId, ThreadId, WorkspaceError, WorkspaceFile, Workspaces};
use jiff::Timestamp;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
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

    fn size(&self, tenant: &TenantId, thread: ThreadId) -> WorkspaceFuture<'_, u64> {
        let path = self.path(tenant, thread);
        Box::pin(blocking(move || Ok(size_of(&path))))
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

/// Bytes on the disk of the files in a folder and those below. Links are not followed.
pub(crate) fn size_of(folder: &Path) -> u64 {
    let mut size = FolderSize::default();
    if let Ok(folder) = openat(CWD, folder, FOLDER, Mode::empty()) {
        size.add(&folder, 0);
    }
    size.bytes
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Entries that are looked at. Each further one, and each folder that is too deep or cannot be read, counts as [`UNSEEN_BYTES`].
const MAX_SIZED: usize = 100_000;
const UNSEEN_BYTES: u64 = 1 << 20;
/// The unit of `st_blocks`.
const BLOCK_BYTES: u64 = 512;

#[derive(Default)]
struct FolderSize {
    bytes: u64,
    entries: usize,
}

impl FolderSize {
    fn add(&mut self, folder: &impl AsFd, depth: usize) {
        let Ok(entries) = Dir::read_from(folder) else {
            self.bytes = self.bytes.saturating_add(UNSEEN_BYTES);
            return;
        };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            self.entries += 1;
            // First: it adds to the sum as well.
            let own = self.entry(folder, name, depth);
            self.bytes = self.bytes.saturating_add(own);
        }
    }

    /// Bytes of an entry itself. Those below a folder are added.
    fn entry(&mut self, folder: &impl AsFd, name: &OsStr, depth: usize) -> u64 {
        if self.entries > MAX_SIZED {
            return UNSEEN_BYTES;
        }
        // Deleted meanwhile.
        let Ok(status) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return 0 };
        if FileType::from_raw_mode(status.st_mode) == FileType::Directory {
            let inner = openat(folder, name, FOLDER, Mode::empty());
            let Some(inner) = inner.ok().filter(|_| depth < MAX_DEPTH) else { return UNSEEN_BYTES };
            self.add(&inner, depth + 1);
        }
        u64::try_from(status.st_blocks).unwrap_or_default().saturating_mul(BLOCK_BYTES)
    }
}

/// Deletes a folder with everything in it, however deep it is. Folders in it are moved beside it before they are emptied, so that neither
/// the stack nor the number of open files grows with the depth. What a crash leaves beside it is deleted by the next sweep.
///
/// Never follows a link, also if a program that still runs puts one in place of a folder: it would delete files elsewhere.
fn remove(path: &Path) -> std::io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let around = openat(CWD, parent, FOLDER, Mode::empty())?;
    let mut left = vec![name.to_owned()];
    let mut failed = None;
    while let Some(name) = left.pop() {
        if let Err(error) = remove_one(&around, &name, &mut left) {
            failed = Some(error);
        }
    }
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// Attempts to empty a folder to which a program that still runs adds files.
const EMPTYINGS: usize = 3;

/// Deletes a folder after its own folders were moved beside it, with their new names in `left`.
fn remove_one(around: &OwnedFd, name: &OsStr, left: &mut Vec<OsString>) -> rustix::io::Result<()> {
    for _ in 0..EMPTYINGS {
        // Programs may have made folders that cannot be read.
        let _ = chmodat(around, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW);
        match openat(around, name, FOLDER, Mode::empty()) {
            Ok(folder) => empty(around, &folder, left)?,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno),
        }
        match unlinkat(around, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            removed => return removed,
        }
    }
    Err(Errno::NOTEMPTY)
}

fn empty(around: &OwnedFd, folder: &OwnedFd, left: &mut Vec<OsString>) -> rustix::io::Result<()> {
    // Entries are removed while they are listed, so the list is complete first.
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    for name in names {
        match unlinkat(folder, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => continue,
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(errno) => return Err(errno),
        }
        // A folder that is moved needs write permission itself.
        let _ = chmodat(folder, &name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW);
        let moved = OsString::from(Uuid::new_v4().to_string());
        match renameat(folder, &name, around, &moved) {
            Ok(()) => left.push(moved),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
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

    /// 20,000 folders within each other, one that cannot be read, and a link that leads out.
    #[test]
    fn very_deep_folders_are_deleted_and_measured() {
        const DEPTH: usize = 20_000;
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("outside.txt"), "stays").unwrap();
        let top = dir.path().join("deleted/workspace");
        fs::create_dir_all(top.join("closed")).unwrap();
        fs::write(top.join("closed/file.txt"), "x").unwrap();
        chmodat(CWD, top.join("closed"), Mode::empty(), AtFlags::empty()).unwrap();
        std::os::unix::fs::symlink(dir.path(), top.join("link")).unwrap();
        let mut folder = openat(CWD, &top, FOLDER, Mode::empty()).unwrap();
        for _ in 0..DEPTH {
            rustix::fs::mkdirat(&folder, "d", Mode::RWXU).unwrap();
            folder = openat(&folder, "d", FOLDER, Mode::empty()).unwrap();
        }
        assert!(size_of(&top) >= UNSEEN_BYTES, "what is too deep counts");
        // A small stack, as threads of the runtime have.
        let removed = std::thread::Builder::new().stack_size(256 << 10).spawn(move || remove(&top));
        removed.unwrap().join().unwrap().unwrap();
        assert_eq!(fs::read_dir(dir.path().join("deleted")).unwrap().count(), 0);
        assert!(dir.path().join("outside.txt").exists());
    }

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
