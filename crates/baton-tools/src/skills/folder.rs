//! Shared skills: folders that people put into the project, for all tenants. Baton reads them and writes none.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::agent::SkillName;

use super::read_file;
use super::shelf::{FoundSkill, Shelf};

/// The skills below one folder, such as `.agents/skills/<name>/SKILL.md`. Everything here blocks.
#[derive(Debug, Clone)]
pub struct SkillFolder {
    dir: PathBuf,
    shelf: Arc<Shelf>,
}

impl SkillFolder {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), shelf: Arc::default() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All skills, sorted by name.
    pub fn all(&self) -> Vec<FoundSkill> {
        self.shelf.list(&self.dir)
    }

    pub fn found(&self, name: &SkillName) -> Option<FoundSkill> {
        self.all().into_iter().find(|found| found.head.name == *name)
    }

    /// One skill with the text of its file.
    pub fn read(&self, name: &SkillName) -> io::Result<Option<(FoundSkill, String)>> {
        let Some(found) = self.found(name) else { return Ok(None) };
        let text = read_file(&found.folder)?;
        Ok(Some((found, text)))
    }

    /// Whether something has this name, a skill that can be used or not.
    pub fn has_entry(&self, name: &str) -> bool {
        self.dir.join(name).exists()
    }
}
