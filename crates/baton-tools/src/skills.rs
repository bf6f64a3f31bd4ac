//! Agent Skills: folders with a `SKILL.md` that teach an agent one task.
//!
//! [`folders`] says where they are; [`shelf`] reads those of one folder, and [`source`] hands them to the engine. [`head`] reads
//! the YAML at the top of the file; [`check`] knows the rules; [`mod@slug`] makes names; [`draft`] writes a file from what a
//! person said, in words that [`wording`] made safe; [`triggers`] tries when a skill would be used.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::SkillName;
use baton_core::{SkillFile, SkillOrigin, TenantId, ToolError};
use uuid::Uuid;

pub mod check;
pub mod draft;
pub mod folders;
pub mod head;
pub mod shelf;
pub mod slug;
pub mod source;
pub mod triggers;
pub mod wording;

pub use check::{CheckSeverity, SkillProblem, SkillStrictness, validate};
pub use folders::DraftOwner;
pub use shelf::FoundSkill;
pub use slug::slug;

use shelf::{MAX_SKILLS, Shelves};

pub const FILE: &str = "SKILL.md";
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Nobody comes back to a draft after this; whoever does gets it written again.
const DRAFTS_LAST: Duration = Duration::from_hours(90 * 24);
/// Conversations whose drafts are looked at when a new one begins.
const MAX_SWEPT: usize = 1_000;

/// The skills below one folder. Everything here blocks.
#[derive(Debug, Clone)]
pub struct SkillFolder {
    dir: PathBuf,
    shelves: Arc<Shelves>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    Now,
    Before,
}

#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    #[error("{}; choose another name, such as `{other}`", already_there(.name))]
    Taken { name: String, other: String },
    #[error("there is no draft `{0}`; write it with write_skill first")]
    NoDraft(String),
    #[error("there is no skill `{0}`")]
    Unknown(String),
    #[error("there are {0} skills already, and more are not looked at; remove some that nobody uses")]
    Full(usize),
    #[error("the skill breaks the rules: {}", list(.0))]
    Invalid(Vec<SkillProblem>),
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn already_there(name: &str) -> String {
    format!("there is already a skill `{name}`")
}

fn list(problems: &[SkillProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl From<SkillError> for ToolError {
    fn from(error: SkillError) -> Self {
        match error {
            SkillError::Taken { name, other } => {
                Self::NameTaken { problem: already_there(&name), alternative: other }
            }
            SkillError::Full(_) => Self::Limit(error.to_string()),
            _ => Self::Execution(error.to_string()),
        }
    }
}

impl SkillFolder {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), shelves: Arc::default() }
    }

    /// The folder of the skills that all tenants share. Those of tenants are in hidden folders below it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All that a tenant can use, sorted by name. What its own people made wins over a shared skill that got the same name later.
    pub fn all(&self, tenant: &TenantId) -> Vec<FoundSkill> {
        let mut all = self.shelves.list(&folders::of_tenant(&self.dir, tenant), SkillOrigin::Created);
        all.extend(self.shelves.list(&self.dir, SkillOrigin::Shared));
        all.sort_by(|a, b| a.head.name.cmp(&b.head.name));
        all.dedup_by(|later, first| later.head.name == first.head.name);
        all
    }

    /// One skill that a tenant can use, with its text.
    pub fn file(&self, tenant: &TenantId, name: &SkillName) -> Result<SkillFile, SkillError> {
        let found = self.found(tenant, name).ok_or_else(|| SkillError::Unknown(name.as_str().to_owned()))?;
        let text = read_file(&found.folder)?;
        // It was read a moment ago; whoever broke it since gets all of it.
        let body_at = head::read(&text).map_or(0, |(_, body)| text.len() - body.len());
        Ok(SkillFile { head: found.head, text, body_at })
    }

    pub fn found(&self, tenant: &TenantId, name: &SkillName) -> Option<FoundSkill> {
        self.all(tenant).into_iter().find(|found| found.head.name == *name)
    }

    /// Where a draft is; where the saved skill is, when there is no draft.
    pub fn find(&self, desk: &DraftOwner, name: &SkillName) -> Result<PathBuf, SkillError> {
        let draft = folders::draft(&self.dir, desk, name);
        if draft.join(FILE).is_file() {
            return Ok(draft);
        }
        let saved = self.found(&desk.tenant, name).map(|found| found.folder);
        saved.ok_or_else(|| SkillError::NoDraft(name.as_str().to_owned()))
    }

    /// Keeps a draft, in place of an earlier one of the same name in the same conversation.
    pub fn write_draft(&self, desk: &DraftOwner, name: &SkillName, text: &str) -> Result<(), SkillError> {
        self.check_free(&desk.tenant, name)?;
        sweep(&folders::drafts(&self.dir, &desk.tenant));
        let folder = folders::draft(&self.dir, desk, name);
        fs::create_dir_all(&folder)?;
        let temporary = folder.join(format!(".{}.tmp", Uuid::new_v4().simple()));
        let written = write(&temporary, text).and_then(|()| fs::rename(&temporary, folder.join(FILE)));
        written.inspect_err(|_| drop(fs::remove_file(&temporary)))?;
        Ok(())
    }

    /// Puts a draft where the tenant's agents find it. A second time it does nothing.
    pub fn save(&self, desk: &DraftOwner, name: &SkillName) -> Result<Saved, SkillError> {
        let draft = folders::draft(&self.dir, desk, name);
        let target = folders::of_tenant(&self.dir, &desk.tenant).join(name.as_str());
        let text = match read_file(&draft) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let is_saved = target.join(FILE).is_file();
                let missing = || SkillError::NoDraft(name.as_str().to_owned());
                return is_saved.then_some(Saved::Before).ok_or_else(missing);
            }
            read => read?,
        };
        let saved = self.keep(&desk.tenant, name, &text, &target)?;
        // What is left of it is litter, and no reason to say that it was not saved.
        drop(fs::remove_dir_all(&draft));
        Ok(saved)
    }

    fn keep(
        &self,
        tenant: &TenantId,
        name: &SkillName,
        text: &str,
        target: &Path,
    ) -> Result<Saved, SkillError> {
        let is_there = || read_file(target).is_ok_and(|kept| kept == text);
        if is_there() {
            return Ok(Saved::Before);
        }
        self.check_free(tenant, name)?;
        self.check_room(tenant)?;
        let mut problems = check::validate_text(text, name.as_str(), SkillStrictness::Strict);
        problems.retain(|problem| problem.severity == CheckSeverity::Error);
        if !problems.is_empty() {
            return Err(SkillError::Invalid(problems));
        }
        match publish(target, text) {
            Ok(()) => Ok(Saved::Now),
            // Somebody else was faster.
            Err(_) if is_there() => Ok(Saved::Before),
            Err(error) => self.check_free(tenant, name).and(Err(error.into())),
        }
    }

    /// One that is never listed must not be called saved.
    fn check_room(&self, tenant: &TenantId) -> Result<(), SkillError> {
        let own = self.shelves.list(&folders::of_tenant(&self.dir, tenant), SkillOrigin::Created).len();
        if own < MAX_SKILLS { Ok(()) } else { Err(SkillError::Full(own)) }
    }

    fn check_free(&self, tenant: &TenantId, name: &SkillName) -> Result<(), SkillError> {
        let (known, own) = (self.all(tenant), folders::of_tenant(&self.dir, tenant));
        let is_taken = |name: &str| {
            known.iter().any(|found| found.head.name.as_str() == name)
                || [&self.dir, &own].into_iter().any(|dir| dir.join(name).exists())
        };
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
}

/// Writes a skill so that it is there as a whole or not at all, whatever happens in between. Fails when there is one already.
fn publish(target: &Path, text: &str) -> io::Result<()> {
    let dir = target.parent().ok_or(ErrorKind::InvalidInput)?;
    fs::create_dir_all(dir)?;
    let staged = dir.join(format!(".{}", Uuid::new_v4().simple()));
    fs::create_dir(&staged)?;
    // A folder takes the name only if nothing has it, or an empty folder: of two at once, one wins.
    let published = write(&staged.join(FILE), text).and_then(|()| fs::rename(&staged, target));
    published.inspect_err(|_| drop(fs::remove_dir_all(&staged)))?;
    File::open(dir)?.sync_all()
}

/// On the disk when it returns.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Drafts of conversations that nobody went on with. What cannot be removed stays.
fn sweep(drafts: &Path) {
    let Ok(conversations) = fs::read_dir(drafts) else { return };
    for conversation in conversations.take(MAX_SWEPT).flatten() {
        let modified = conversation.metadata().and_then(|data| data.modified());
        if modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > DRAFTS_LAST)) {
            drop(fs::remove_dir_all(conversation.path()));
        }
    }
}

/// The file of a skill's folder, if it is UTF-8 and not too long.
pub(crate) fn read_file(folder: &Path) -> io::Result<String> {
    let path = folder.join(FILE);
    if !fs::metadata(&path)?.is_file() {
        return Err(io::Error::other(format!("{FILE} is not a file")));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("{FILE} has more than {MAX_FILE_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other(format!("{FILE} is not UTF-8")))
}
