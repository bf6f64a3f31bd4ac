//! The folder that file tools are confined to.
//!
//! A path is walked one name at a time, each folder opened relative to the one before it and never through a link.
//! Links are read and walked by the same rules, so one that stays inside works and one that leads out is refused.
//! Nothing is looked up by its full path again after it was checked: a folder that is swapped for a link in between
//! changes nothing. `..` goes back to a folder that is already open and never asks the file system.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

use baton_core::{CallContext, ToolError};
use rustix::fs::{
    FileType, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, mkdirat, open, openat, readlinkat,
};
use rustix::io::Errno;

use crate::protected::{Protected, is_secret};

/// Every folder on the way is open at once, so this also bounds file handles.
const MAX_DEPTH: usize = 64;
/// As in the kernel.
const MAX_LINKS: usize = 40;
const MAX_PATH_BYTES: usize = 4096;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[derive(Debug, thiserror::Error)]
pub enum PathError {
    #[error("`{0}` leads out of the work folder; use a path relative to it")]
    Escapes(String),
    #[error(
        "`{0}` is protected: tools neither read nor write hidden files and folders, baton.toml, the agent folders and the \
         server's data; use another path"
    )]
    Protected(String),
    #[error("`{0}` is not read: files named .env… hold secrets; ask the user for the values that you need")]
    Secret(String),
    #[error("`{0}` does not exist")]
    Missing(String),
    #[error("`{0}` is not a folder")]
    NotAFolder(String),
    #[error("`{0}` is not a regular file")]
    NotAFile(String),
    #[error("`{0}` is too long, too deep or has too many links in it")]
    TooComplex(String),
    #[error("`{path}`: {error}")]
    Io { path: String, error: std::io::Error },
}

impl From<PathError> for ToolError {
    fn from(error: PathError) -> Self {
        match error {
            PathError::Escapes(_) | PathError::Protected(_) | PathError::Secret(_) => {
                Self::NotPermitted(error.to_string())
            }
            PathError::TooComplex(_) => Self::Limit(error.to_string()),
            _ => Self::Execution(error.to_string()),
        }
    }
}

/// Where a file is, or would be: an open folder and a name in it that is no link.
#[derive(Debug)]
pub struct ResolvedFile {
    pub folder: OwnedFd,
    pub name: OsString,
}

#[derive(Debug)]
pub struct WorkDir {
    root: OwnedFd,
    /// Both as configured and without links, to recognise absolute paths that lead inside.
    paths: [PathBuf; 2],
    protected: Protected,
}

/// A folder that is open, and its name below the work folder.
#[derive(Debug)]
pub struct OpenFolder {
    pub folder: OwnedFd,
    pub names: Vec<OsString>,
}

impl WorkDir {
    /// The work folder of a call without the protected paths, which are absolute or relative to it. The workspace of a thread is
    /// created if it does not exist; no file of the server is in it.
    pub fn of(context: &CallContext, protected: &[PathBuf]) -> Result<Self, PathError> {
        let (root, protected) = match context.workspace() {
            None => (Self::open(&context.work_dir, protected)?, protected),
            Some(workspace) => {
                create_private(workspace)
                    .map_err(|error| PathError::Io { path: workspace.display().to_string(), error })?;
                (Self::open(workspace, &[])?, &[][..])
            }
        };
        match &context.subfolder {
            Some(subfolder) => root.subfolder(subfolder, protected),
            None => Ok(root),
        }
    }

    /// The folder at `path` as a work folder of its own. It is created if it does not exist, and reached as every path is: a link
    /// that leads out is refused.
    fn subfolder(&self, path: &Path, protected: &[PathBuf]) -> Result<Self, PathError> {
        let shown = path.to_string_lossy();
        let mut walk = self.walk(&shown, Access::Write)?;
        if let Some(name) = walk.reach_end()? {
            walk.enter(&name)?;
        }
        let below: PathBuf = walk.names.iter().collect();
        let paths = [self.paths[0].join(&below), self.paths[1].join(&below)];
        let protected = Protected::new(&paths[1], protected);
        Ok(Self { root: walk.into_folder()?, paths, protected })
    }

    /// The folder without links.
    pub fn real_path(&self) -> &Path {
        &self.paths[1]
    }

    pub fn open(path: &Path, protected: &[PathBuf]) -> Result<Self, PathError> {
        let shown = || path.display().to_string();
        let real = path.canonicalize().map_err(|error| PathError::Io { path: shown(), error })?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(&real, flags, Mode::empty()).map_err(|errno| io(&shown(), errno))?;
        let protected = Protected::new(&real, protected);
        Ok(Self { root, paths: [path.to_owned(), real], protected })
    }

    /// Whether tools leave alone what has this name in an open folder of the work folder.
    pub fn protects(&self, folder: &[OsString], name: &OsStr) -> bool {
        Protected::has_name(name) || self.protected.covers(folder, name)
    }

    /// Opens a file that exists, for reading.
    pub fn file(&self, path: &str) -> Result<File, PathError> {
        let place = self.walk(path, Access::Read)?.into_place()?;
        // Without `NONBLOCK`, opening a named pipe would wait for somebody to write into it.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&place.folder, &place.name, flags, Mode::empty()).map_err(|e| io(path, e))?;
        let status = fstat(&file).map_err(|errno| io(path, errno))?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(PathError::NotAFile(path.to_owned()));
        }
        // Of a work folder such as `/`: it shows the environment of processes.
        let is_process = fstatfs(&file).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC);
        let is_protected = || status.st_nlink > 1 && self.protected.has_file(status.st_dev, status.st_ino);
        if is_process || is_protected() {
            return Err(PathError::Protected(path.to_owned()));
        }
        Ok(File::from(file))
    }

    pub fn folder(&self, path: &str) -> Result<OpenFolder, PathError> {
        let mut walk = self.walk(path, Access::Read)?;
        if let Some(name) = walk.reach_end()? {
            walk.enter(&name)?;
        }
        let names = std::mem::take(&mut walk.names);
        // A path that ends in `..` ends in a folder that was only passed.
        if let Some((last, above)) = names.split_last()
            && self.protected.covers(above, last)
        {
            return Err(PathError::Protected(path.to_owned()));
        }
        Ok(OpenFolder { folder: walk.into_folder()?, names })
    }

    /// Where `path` leads, whether or not something is there, for writing. Makes missing folders.
    pub fn place(&self, path: &str) -> Result<ResolvedFile, PathError> {
        self.walk(path, Access::Write)?.into_place()
    }

    fn walk<'a>(&'a self, path: &'a str, access: Access) -> Result<PathWalk<'a>, PathError> {
        let root = self.root.try_clone().map_err(|error| PathError::Io { path: path.to_owned(), error })?;
        let (open, names, todo) = (vec![root], Vec::new(), Vec::new());
        let mut walk = PathWalk { dir: self, path, open, names, todo, links: 0, access };
        if path.len() > MAX_PATH_BYTES {
            return Err(PathError::TooComplex(path.chars().take(64).collect()));
        }
        walk.push(Path::new(path))?;
        Ok(walk)
    }

    /// An absolute path as seen from inside.
    fn relative<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        self.paths.iter().find_map(|root| path.strip_prefix(root).ok())
    }
}

/// A path half walked.
struct PathWalk<'a> {
    dir: &'a WorkDir,
    path: &'a str,
    /// The folders from the root to where the walk is.
    open: Vec<OwnedFd>,
    /// Those of the open folders below the root.
    names: Vec<OsString>,
    /// What is still to walk, next last.
    todo: Vec<PathStep>,
    links: usize,
    access: Access,
}

/// What a path is walked for. Missing folders are made for writing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

enum PathStep {
    Up,
    Into(OsString),
}

impl PathWalk<'_> {
    fn push(&mut self, path: &Path) -> Result<(), PathError> {
        let mut path = path;
        if path.is_absolute() {
            path = self.dir.relative(path).ok_or_else(|| self.escapes())?;
            self.open.truncate(1);
            self.names.clear();
        }
        for component in path.components().rev() {
            match component {
                Component::Normal(name) => self.todo.push(PathStep::Into(name.to_owned())),
                Component::ParentDir => self.todo.push(PathStep::Up),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return Err(self.escapes()),
            }
        }
        Ok(())
    }

    /// Walks up to the last name, which is left to the caller; `None` when the path ends in a folder that is open.
    fn reach_end(&mut self) -> Result<Option<OsString>, PathError> {
        while let Some(step) = self.todo.pop() {
            match step {
                PathStep::Up if self.open.len() == 1 => return Err(self.escapes()),
                PathStep::Up => {
                    self.open.pop();
                    self.names.pop();
                }
                PathStep::Into(name) => {
                    // Also the names of links: `.mcp.json` is protected wherever it leads.
                    if self.access == Access::Read && is_secret(&name) {
                        return Err(PathError::Secret(self.path.to_owned()));
                    }
                    if Protected::has_name(&name) {
                        return Err(self.protected());
                    }
                    match self.link(&name)? {
                        Some(target) => self.push(&target)?,
                        None if self.todo.is_empty() => {
                            self.check(&name)?;
                            return Ok(Some(name));
                        }
                        None => self.enter(&name)?,
                    }
                }
            }
        }
        Ok(None)
    }

    fn link(&mut self, name: &OsStr) -> Result<Option<PathBuf>, PathError> {
        match readlinkat(self.here(), name, Vec::new()) {
            Ok(target) => {
                self.links += 1;
                if self.links > MAX_LINKS {
                    return Err(PathError::TooComplex(self.path.to_owned()));
                }
                Ok(Some(PathBuf::from(OsString::from_vec(target.into_bytes()))))
            }
            // Not a link, or nothing there yet.
            Err(Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(errno) => Err(io(self.path, errno)),
        }
    }

    fn enter(&mut self, name: &OsStr) -> Result<(), PathError> {
        if self.open.len() > MAX_DEPTH {
            return Err(PathError::TooComplex(self.path.to_owned()));
        }
        let mut opened = openat(self.here(), name, FOLDER, Mode::empty());
        if matches!(opened, Err(Errno::NOENT)) && self.access == Access::Write {
            self.check(name)?;
            match mkdirat(self.here(), name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => opened = openat(self.here(), name, FOLDER, Mode::empty()),
                Err(errno) => return Err(io(self.path, errno)),
            }
        }
        self.open.push(opened.map_err(|errno| io(self.path, errno))?);
        self.names.push(name.to_owned());
        Ok(())
    }

    /// Whether something may be read or written under this name, here.
    fn check(&self, name: &OsStr) -> Result<(), PathError> {
        if self.dir.protected.covers(&self.names, name) { Err(self.protected()) } else { Ok(()) }
    }

    fn here(&self) -> impl AsFd {
        self.open.last().expect("the root stays open")
    }

    fn into_place(mut self) -> Result<ResolvedFile, PathError> {
        let name = self.reach_end()?.ok_or_else(|| PathError::NotAFile(self.path.to_owned()))?;
        Ok(ResolvedFile { folder: self.into_folder()?, name })
    }

    fn into_folder(mut self) -> Result<OwnedFd, PathError> {
        self.open.pop().ok_or_else(|| PathError::Escapes(self.path.to_owned()))
    }

    fn protected(&self) -> PathError {
        PathError::Protected(self.path.to_owned())
    }

    fn escapes(&self) -> PathError {
        PathError::Escapes(self.path.to_owned())
    }
}

/// Creates a folder that only the server's user can enter, and those above it.
pub fn create_private(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Also used by the tools for what happens after a path was resolved.
pub fn io(path: &str, errno: Errno) -> PathError {
    match errno {
        Errno::NOENT => PathError::Missing(path.to_owned()),
        // A name that became a link after it was looked at ends here too: nothing follows it.
        Errno::NOTDIR | Errno::LOOP => PathError::NotAFolder(path.to_owned()),
        errno => PathError::Io { path: path.to_owned(), error: errno.into() },
    }
}
