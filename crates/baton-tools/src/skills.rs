//! Agent Skills: folders with a `SKILL.md` that teach an agent one task.
//!
//! [`head`] reads the YAML at the top of the file; [`check`] knows the rules; [`mod@slug`] makes names; [`draft`] writes a
//! file from what a person said, in words that [`wording`] made safe; [`triggers`] tries when a skill would be used.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use baton_core::agent::SkillName;
use baton_core::{TenantId, ToolError};
use uuid::Uuid;

pub mod check;
pub mod draft;
pub mod head;
pub mod slug;
pub mod triggers;
pub mod wording;

pub use check::{Severity, SkillProblem, Strictness, validate};
pub use slug::slug;

pub const FILE: &str = "SKILL.md";
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;
const MAX_SKILLS: usize = 2_000;
/// Hidden, so that nobody who looks for skills finds drafts.
const DRAFTS: &str = ".drafts";
/// Names of files may have 255 bytes.
const MAX_NAME_BYTES: usize = 200;

/// The skills of one folder. Everything here blocks.
#[derive(Debug, Clone)]
pub struct Skills {
    dir: PathBuf,
}

/// What an agent is told before it decides to use a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub name: SkillName,
    pub description: String,
    pub path: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    Now,
    Before,
}

#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    #[error("there is already a skill `{name}`; choose another name, such as `{other}`")]
    Taken { name: String, other: String },
    #[error("there is no draft `{0}`; write it with write_skill first")]
    NoDraft(String),
    #[error("there is no skill `{0}`")]
    Unknown(String),
    #[error("the skill breaks the rules: {}", list(.0))]
    Invalid(Vec<SkillProblem>),
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn list(problems: &[SkillProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl From<SkillError> for ToolError {
    fn from(error: SkillError) -> Self {
        match error {
            SkillError::Taken { .. } => Self::InvalidArguments(error.to_string()),
            _ => Self::Execution(error.to_string()),
        }
    }
}

impl Skills {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// All saved skills that can be used, sorted by name. Small faults are overlooked; a skill without a description
    /// cannot be chosen and is left out.
    pub fn list(&self) -> Vec<Skill> {
        let Ok(entries) = fs::read_dir(&self.dir) else { return Vec::new() };
        let visible =
            |path: &PathBuf| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(visible).collect();
        folders.sort();
        let mut skills: Vec<Skill> =
            folders.iter().take(MAX_SKILLS).filter_map(|folder| load(folder)).collect();
        skills.sort_by(|a, b| a.name.cmp(&b.name));
        skills
    }

    /// The whole file of a saved skill.
    pub fn read(&self, name: &SkillName) -> Result<String, SkillError> {
        let own = self.dir.join(name.as_str());
        if own.join(FILE).is_file() {
            return Ok(read_file(&own)?);
        }
        let listed = self.list().into_iter().find(|skill| skill.name == *name);
        let folder = listed.and_then(|skill| skill.path.parent().map(Path::to_owned));
        Ok(read_file(&folder.ok_or_else(|| SkillError::Unknown(name.as_str().to_owned()))?)?)
    }

    /// Where a tenant's draft is; where the saved skill is, when there is no draft.
    pub fn find(&self, tenant: &TenantId, name: &SkillName) -> Result<PathBuf, SkillError> {
        let places = [self.draft_dir(tenant, name), self.dir.join(name.as_str())];
        let found = places.into_iter().find(|folder| folder.join(FILE).is_file());
        found.ok_or_else(|| SkillError::NoDraft(name.as_str().to_owned()))
    }

    /// Keeps a draft, in place of an earlier one of the same name.
    pub fn write_draft(&self, tenant: &TenantId, name: &SkillName, text: &str) -> Result<(), SkillError> {
        self.check_free(name)?;
        let folder = self.draft_dir(tenant, name);
        fs::create_dir_all(&folder)?;
        let temporary = folder.join(format!(".{}.tmp", Uuid::new_v4().simple()));
        let written = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, folder.join(FILE)));
        written.inspect_err(|_| drop(fs::remove_file(&temporary)))?;
        Ok(())
    }

    /// Moves a draft to where agents find it. A second time it does nothing.
    pub fn save(&self, tenant: &TenantId, name: &SkillName) -> Result<Saved, SkillError> {
        let (draft, target) = (self.draft_dir(tenant, name), self.dir.join(name.as_str()));
        if !draft.join(FILE).is_file() {
            let is_saved = target.join(FILE).is_file();
            return if is_saved {
                Ok(Saved::Before)
            } else {
                Err(SkillError::NoDraft(name.as_str().to_owned()))
            };
        }
        if target.join(FILE).is_file() && read_file(&target)? == read_file(&draft)? {
            fs::remove_dir_all(&draft)?;
            return Ok(Saved::Before);
        }
        self.check_free(name)?;
        let mut problems = validate(&draft, Strictness::Strict);
        problems.retain(|problem| problem.severity == Severity::Error);
        if !problems.is_empty() {
            return Err(SkillError::Invalid(problems));
        }
        match fs::rename(&draft, &target) {
            Ok(()) => Ok(Saved::Now),
            // Somebody else was faster.
            Err(_) if target.exists() => self.check_free(name).map(|()| Saved::Before),
            Err(error) => Err(error.into()),
        }
    }

    fn check_free(&self, name: &SkillName) -> Result<(), SkillError> {
        let is_taken = |name: &str| self.dir.join(name).exists();
        let name = name.as_str();
        if !is_taken(name) {
            return Ok(());
        }
        let numbered =
            (2..1_000).map(|number| format!("{}-{number}", name[..name.len().min(58)].trim_end_matches('-')));
        let other =
            numbered.into_iter().find(|other| !is_taken(other)).unwrap_or_else(|| "another".to_owned());
        Err(SkillError::Taken { name: name.to_owned(), other })
    }

    fn draft_dir(&self, tenant: &TenantId, name: &SkillName) -> PathBuf {
        let mut dir = self.dir.join(DRAFTS);
        dir.extend(tenant_folders(tenant));
        dir.join(name.as_str())
    }
}

/// A tenant's id as names of folders that differ whenever the ids do, also where case does not count. Ids of any
/// characters are possible; long ones need several folders, and the further ones begin with a mark that no skill has.
fn tenant_folders(tenant: &TenantId) -> Vec<String> {
    let mut folders = vec![String::new()];
    for byte in tenant.as_str().bytes() {
        let last = folders.last_mut().expect("one is always there");
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => last.push(char::from(byte)),
            _ => *last += &format!("%{byte:02x}"),
        }
        if last.len() > MAX_NAME_BYTES {
            folders.push("%+".to_owned());
        }
    }
    folders
}

fn load(folder: &Path) -> Option<Skill> {
    let text = read_file(folder).ok()?;
    let (head, _) = head::read(&text).ok()?;
    let description = head.text("description").filter(|text| !text.trim().is_empty())?.trim().to_owned();
    let of_folder = folder.file_name().and_then(|name| SkillName::parse(&name.to_string_lossy()).ok());
    let name = of_folder.or_else(|| SkillName::parse(head.text("name")?.trim()).ok())?;
    Some(Skill { name, description, path: folder.join(FILE) })
}

/// The file of a skill's folder, if it is UTF-8 and not too long.
pub(crate) fn read_file(folder: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(folder.join(FILE))?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("{FILE} has more than {MAX_FILE_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other(format!("{FILE} is not UTF-8")))
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
