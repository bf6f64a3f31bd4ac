//! Skills, as the API shows them.

use baton_core::{SkillFile, SkillHead, SkillOrigin};
use serde::Serialize;
use utoipa::ToSchema;

/// A skill in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SkillView {
    /// As agent files, `load_skill` and other routes name it.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    pub origin: OriginView,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OriginView {
    /// Of the project, for all tenants.
    Shared,
    /// Made by the people of this tenant, for them alone.
    Created,
}

/// A skill with its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SkillDetail {
    #[serde(flatten)]
    pub skill: SkillView,
    /// All of `SKILL.md`.
    pub text: String,
}

impl From<&SkillHead> for SkillView {
    fn from(head: &SkillHead) -> Self {
        let origin = match head.origin {
            SkillOrigin::Shared => OriginView::Shared,
            SkillOrigin::Created => OriginView::Created,
        };
        Self { name: head.name.as_str().to_owned(), description: head.description.clone(), origin }
    }
}

impl From<SkillFile> for SkillDetail {
    fn from(file: SkillFile) -> Self {
        Self { skill: SkillView::from(file.head.as_ref()), text: file.text }
    }
}
