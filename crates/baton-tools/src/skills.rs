//! Agent Skills: a `SKILL.md` teaches an agent one task.
//!
//! [`folder`] has the shared skills, which are files that people put there, and [`shelf`] caches them. [`library`] has all that a
//! tenant can use: the shared ones, and those that its people created, which are in the store. [`head`] reads the YAML at the top
//! of the file; [`check`] knows the rules; [`mod@slug`] makes names; [`draft`] writes a file from what a person said, in words
//! that [`wording`] made safe; [`triggers`] tries when a skill would be used; [`mod@export`] writes a folder for other programs.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use baton_core::{StoreError, ToolError};

pub mod check;
pub mod draft;
pub mod export;
pub mod folder;
pub mod head;
pub mod library;
pub mod shelf;
pub mod slug;
pub mod triggers;
pub mod wording;

pub use check::{CheckSeverity, SkillProblem, SkillStrictness, validate};
pub use export::export;
pub use folder::SkillFolder;
pub use library::{Saved, SkillLibrary};
pub use shelf::FoundSkill;
pub use slug::slug;

pub const FILE: &str = "SKILL.md";
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    #[error("{}; choose another name, such as `{other}`", already_there(.name))]
    Taken { name: String, other: String },
    #[error("there is no draft `{0}`; write it with write_skill first")]
    NoDraft(String),
    #[error("there are {0} skills already, which is the limit; delete some that are not used")]
    Full(u32),
    #[error(
        "this conversation has {0} drafts already, which is the limit; save one, or write one again under its name"
    )]
    TooManyDrafts(u32),
    #[error("the skill breaks the rules: {}", list(.0))]
    Invalid(Vec<SkillProblem>),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
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
            SkillError::Full(_) | SkillError::TooManyDrafts(_) => Self::Limit(error.to_string()),
            _ => Self::Execution(error.to_string()),
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
