//! Skills that the people of a tenant created, and drafts of them. Skills of files are not in the store.

use jiff::Timestamp;

use crate::agent::SkillName;
use crate::id::{ThreadId, UserId};
use crate::store::{AuditEntry, Pending};

/// A skill to be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSkill {
    pub name: SkillName,
    pub description: String,
    /// The whole of `SKILL.md`.
    pub text: String,
    /// Who saves it.
    pub user_id: UserId,
    /// The conversation whose draft it is, if it is one. The draft is deleted.
    pub thread_id: Option<ThreadId>,
}

/// A skill that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSkill {
    pub name: SkillName,
    pub description: String,
    /// The whole of `SKILL.md`.
    pub text: String,
    pub created_at: Timestamp,
}

/// The part of a skill that lists show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillSummary {
    pub name: SkillName,
    pub description: String,
}

/// Result of [`CreatedSkills::save_skill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillSaving {
    Saved,
    /// The tenant has the same skill with the same text.
    AlreadySaved,
    /// The tenant has another skill of this name.
    NameTaken,
    /// The tenant has as many skills as it may.
    LimitReached,
}

/// Created skills of the tenant. They outlive the conversation in which they were made; drafts are deleted with it.
pub trait CreatedSkills: Send + Sync {
    /// Stores a draft in place of one of the same name in the same conversation. Returns `false` if the conversation has `most`
    /// other drafts.
    fn put_skill_draft(&self, thread: ThreadId, name: &SkillName, text: &str, most: u32)
    -> Pending<'_, bool>;

    fn skill_draft(&self, thread: ThreadId, name: &SkillName) -> Pending<'_, Option<String>>;

    /// Saves a skill, deletes its draft and records `entry` in one transaction. Of several that save the same name at once, one
    /// succeeds. `entry` is recorded only if the skill is saved by this call.
    fn save_skill(&self, skill: NewSkill, entry: AuditEntry, most: u32) -> Pending<'_, SkillSaving>;

    /// All of the tenant, by name.
    fn skills(&self) -> Pending<'_, Vec<SkillSummary>>;

    fn skill(&self, name: &SkillName) -> Pending<'_, Option<StoredSkill>>;

    /// Deletes a skill and records `entry` in one transaction. Returns whether it existed.
    fn delete_skill(&self, name: &SkillName, entry: AuditEntry) -> Pending<'_, bool>;
}
