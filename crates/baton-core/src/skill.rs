//! The seam to Agent Skills: folders with a `SKILL.md` that teach an agent one task.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::agent::SkillName;
use crate::choices;
use crate::id::TenantId;
use crate::tool::ToolError;

/// Where skills come from. What a tenant's people made is never seen by another tenant.
pub trait SkillSource: Send + Sync + fmt::Debug {
    /// All that a tenant has, by name, each name once. Asked for in every session: what did not change must cost little.
    fn list<'a>(&'a self, tenant: &'a TenantId) -> SkillFuture<'a, SkillHeads>;

    /// One of them with its text. `None` when the tenant has no skill of this name.
    fn read<'a>(&'a self, tenant: &'a TenantId, name: &'a SkillName) -> SkillFuture<'a, Option<SkillFile>>;
}

pub type SkillHeads = Vec<Arc<SkillHead>>;
pub type SkillFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// What an agent is told of a skill before it decides to use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillHead {
    pub name: SkillName,
    /// What it does and when to use it, in words that somebody else wrote.
    pub description: String,
    pub origin: SkillOrigin,
}

choices! {
    /// Whose a skill is.
    pub enum SkillOrigin {
        /// Of the project, for all tenants.
        Shared = "shared",
        /// Made by the people of one tenant, for them alone.
        Created = "created",
    }
}

/// A skill with its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    pub head: Arc<SkillHead>,
    /// All of `SKILL.md`.
    pub text: String,
    /// Where in it the instructions begin, below the head.
    pub body_at: usize,
}

impl SkillFile {
    /// What an agent follows.
    pub fn body(&self) -> &str {
        self.text.get(self.body_at..).unwrap_or_default().trim()
    }
}
