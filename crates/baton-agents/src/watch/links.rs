//! Where links lead: a change there changes the agents, and a watch on the folders alone does not see it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::files;

/// Links to links to links are followed this far.
const MAX_HOPS: usize = 8;

/// Paths outside of the folders that matter to them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Links {
    /// Links to folders, which may be swapped, and what links to files lead to.
    pub(super) paths: BTreeSet<PathBuf>,
}

impl Links {
    pub(super) fn of(dirs: &[PathBuf]) -> Self {
        let mut links = Self::default();
        for dir in dirs {
            // Any folder on the way may be the link: `current/agents`, where `current` leads to a release.
            let dir = absolute(dir);
            links.paths.extend(dir.ancestors().filter(|folder| folder.is_symlink()).map(Path::to_owned));
        }
        for file in files::discover(dirs, &mut Vec::new()).iter().filter(|file| file.is_symlink()) {
            links.follow(absolute(file));
        }
        links
    }

    fn follow(&mut self, mut path: PathBuf) {
        self.paths.extend(path.canonicalize());
        for _ in 0..MAX_HOPS {
            let Ok(target) = fs::read_link(&path) else { return };
            path = path.parent().unwrap_or(Path::new("")).join(target);
            self.paths.insert(path.clone());
        }
    }

    /// The folders these paths stand in: a file or link that is replaced is only seen from there.
    pub(super) fn folders(&self) -> BTreeSet<&Path> {
        self.paths.iter().filter_map(|path| path.parent()).collect()
    }
}

pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(if path == Path::new("") { Path::new(".") } else { path })
        .unwrap_or_else(|_| path.to_owned())
}
