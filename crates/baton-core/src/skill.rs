//! The trait for Agent Skills: folders with a `SKILL.md` that describes one task.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::agent::SkillName;
use crate::choices;
use crate::id::TenantId;
use crate::tool::ToolError;

/// A source of skills. Skills created in one tenant are not visible to others.
pub trait SkillSource: Send + Sync + fmt::Debug {
    /// All skills of a tenant, ordered by name, without duplicates. Called in every session, so unchanged skills must be cheap
    /// to list.
    fn list<'a>(&'a self, tenant: &'a TenantId) -> SkillFuture<'a, SkillHeads>;

    /// One skill with its text. `None` if the tenant has no skill of this name.
    fn read<'a>(&'a self, tenant: &'a TenantId, name: &'a SkillName) -> SkillFuture<'a, Option<SkillFile>>;
}

pub type SkillHeads = Vec<Arc<SkillHead>>;
pub type SkillFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// The part of a skill that an agent sees before it decides to use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillHead {
    pub name: SkillName,
    /// What the skill does and when to use it. Untrusted text.
    pub description: String,
    pub origin: SkillOrigin,
}

choices! {
    /// Owner of a skill.
    pub enum SkillOrigin {
        /// Part of the project, for all tenants.
        Shared = "shared",
        /// Created in one tenant, visible to it only.
        Created = "created",
    }
}

/// A skill with its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    pub head: Arc<SkillHead>,
    /// The whole of `SKILL.md`.
    pub text: String,
    /// Byte offset of the instructions, after the front matter.
    pub body_at: usize,
}

impl SkillFile {
    /// The instructions.
    pub fn body(&self) -> &str {
        self.text.get(self.body_at..).unwrap_or_default().trim()
    }
}
