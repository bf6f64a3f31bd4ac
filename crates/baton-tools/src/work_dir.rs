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
use std::path::{Component, Path, PathBuf};

use baton_core::ToolError;
use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, open, openat, readlinkat};
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
        "`{0}` is protected: hidden files and folders, baton.toml and the agent folders are changed by people only; \
         write to another path"
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
    /// What no tool looks into, as if it were not there.
    private: Option<Protected>,
}

impl WorkDir {
    pub fn open(path: &Path) -> Result<Self, PathError> {
        let shown = || path.display().to_string();
        let real = path.canonicalize().map_err(|error| PathError::Io { path: shown(), error })?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(&real, flags, Mode::empty()).map_err(|errno| io(&shown(), errno))?;
        Ok(Self { root, paths: [path.to_owned(), real], private: None })
    }

    /// The same without these folders, which hold what is not for every tenant.
    #[must_use]
    pub fn without(self, paths: &[PathBuf]) -> Self {
        // They may be given relative to the folder the process runs in.
        let paths: Vec<PathBuf> = paths.iter().filter_map(|path| std::path::absolute(path).ok()).collect();
        let private = Protected::only(&self.paths[1], &paths);
        Self { private: Some(private), ..self }
    }

    /// The paths are relative to this folder, or absolute.
    pub fn protected(&self, paths: &[PathBuf]) -> Protected {
        Protected::new(&self.paths[1], paths)
    }

    /// Opens a file that exists, for reading; none that holds secrets by its name.
    pub fn file(&self, path: &str) -> Result<File, PathError> {
        if Path::new(path).file_name().is_some_and(is_secret) {
            return Err(PathError::Secret(path.to_owned()));
        }
        let place = self.walk(path, None)?.into_place()?;
        if is_secret(&place.name) {
            return Err(PathError::Secret(path.to_owned()));
        }
        // Without `NONBLOCK`, opening a named pipe would wait for somebody to write into it.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&place.folder, &place.name, flags, Mode::empty()).map_err(|e| io(path, e))?;
        let status = fstat(&file).map_err(|errno| io(path, errno))?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => Ok(File::from(file)),
            _ => Err(PathError::NotAFile(path.to_owned())),
        }
    }

    pub fn folder(&self, path: &str) -> Result<OwnedFd, PathError> {
        let mut walk = self.walk(path, None)?;
        if let Some(name) = walk.reach_end()? {
            walk.enter(&name)?;
        }
        walk.into_folder()
    }

    /// Where `path` leads, whether or not something is there, for writing. Makes missing folders.
    pub fn place(&self, path: &str, protected: &Protected) -> Result<ResolvedFile, PathError> {
        self.walk(path, Some(protected))?.into_place()
    }

    fn walk<'a>(&'a self, path: &'a str, writing: Option<&'a Protected>) -> Result<PathWalk<'a>, PathError> {
        let root = self.root.try_clone().map_err(|error| PathError::Io { path: path.to_owned(), error })?;
        let (open, names, todo) = (vec![root], Vec::new(), Vec::new());
        let mut walk = PathWalk { dir: self, path, open, names, todo, links: 0, writing };
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
    /// What may not be written; missing folders are made. `None` when the path is only read.
    writing: Option<&'a Protected>,
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
                    if self.writing.is_some() && Protected::has_name(&name) {
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
        if self.dir.private.as_ref().is_some_and(|private| private.covers(&self.names, name)) {
            return Err(PathError::Missing(self.path.to_owned()));
        }
        let mut opened = openat(self.here(), name, FOLDER, Mode::empty());
        if matches!(opened, Err(Errno::NOENT)) && self.writing.is_some() {
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

    /// Whether something may be written under this name, here.
    fn check(&self, name: &OsStr) -> Result<(), PathError> {
        match self.writing {
            Some(protected) if protected.covers(&self.names, name) => Err(self.protected()),
            _ => Ok(()),
        }
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

/// Also used by the tools for what happens after a path was resolved.
pub fn io(path: &str, errno: Errno) -> PathError {
    match errno {
        Errno::NOENT => PathError::Missing(path.to_owned()),
        // A name that became a link after it was looked at ends here too: nothing follows it.
        Errno::NOTDIR | Errno::LOOP => PathError::NotAFolder(path.to_owned()),
        errno => PathError::Io { path: path.to_owned(), error: errno.into() },
    }
}
