//! All skills that a tenant can use: the shared ones of [`SkillFolder`], and those that its people created, which are in the store
//! with their drafts. Every process that shares the store sees a created skill as soon as it is saved.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::agent::SkillName;
use baton_core::skill::{SkillFuture, SkillHeads};
use baton_core::store::{AuditEntry, NewSkill, SkillSaving};
use baton_core::{
    CallContext, SkillFile, SkillHead, SkillOrigin, SkillSource, Store, TenantId, ToolError, TraceParent,
    UserId,
};
use serde_json::json;

use super::{CheckSeverity, FoundSkill, SkillError, SkillFolder, SkillProblem, SkillStrictness, check, head};
use crate::offload::offload;

/// Created skills of one tenant.
const MAX_SKILLS: u32 = 2_000;
/// Drafts of one conversation.
const MAX_DRAFTS: u32 = 100;

#[derive(Debug, Clone)]
pub struct SkillLibrary {
    shared: SkillFolder,
    store: Arc<dyn Store>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    Now,
    Before,
}

impl SkillLibrary {
    pub fn new(shared: SkillFolder, store: Arc<dyn Store>) -> Self {
        Self { shared, store }
    }

    /// All that a tenant can use, sorted by name. A created skill takes precedence over a shared one of the same name.
    async fn all(&self, tenant: &TenantId) -> Result<SkillHeads, ToolError> {
        let created = self.store.tenant(tenant).skills().await.map_err(SkillError::from)?;
        let created = created.into_iter().map(|skill| {
            let (name, description) = (skill.name, skill.description);
            Arc::new(SkillHead { name, description, origin: SkillOrigin::Created })
        });
        let shared = self.shared().await?.into_iter().map(|found| found.head);
        let mut all: SkillHeads = created.chain(shared).collect();
        // Stable, so that a created skill stays before a shared one.
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all.dedup_by(|later, first| later.name == first.name);
        Ok(all)
    }

    async fn shared(&self) -> Result<Vec<FoundSkill>, ToolError> {
        let folder = self.shared.clone();
        offload(move |_| Ok(folder.all())).await
    }

    /// One skill that a tenant can use, with its text.
    async fn file(&self, tenant: &TenantId, name: &SkillName) -> Result<Option<SkillFile>, ToolError> {
        let created = self.store.tenant(tenant).skill(name).await.map_err(SkillError::from)?;
        let (head, text) = match created {
            Some(skill) => {
                let (name, description) = (skill.name, skill.description);
                (Arc::new(SkillHead { name, description, origin: SkillOrigin::Created }), skill.text)
            }
            None => match self.shared_file(name).await? {
                Some((found, text)) => (found.head, text),
                None => return Ok(None),
            },
        };
        // A file that was broken since it was listed is given whole.
        let body_at = head::read(&text).map_or(0, |(_, body)| text.len() - body.len());
        Ok(Some(SkillFile { head, text, body_at }))
    }

    async fn shared_file(&self, name: &SkillName) -> Result<Option<(FoundSkill, String)>, ToolError> {
        let (folder, name) = (self.shared.clone(), name.clone());
        offload(move |_| folder.read(&name).map_err(|error| SkillError::from(error).into())).await
    }

    /// The draft of the call's conversation, or else the saved skill: the name of its folder, and its text.
    pub async fn find(&self, context: &CallContext, name: &SkillName) -> Result<(String, String), ToolError> {
        let tenant = self.store.tenant(&context.tenant);
        let draft = tenant.skill_draft(context.thread_id, name).await.map_err(SkillError::from)?;
        let created = match draft {
            Some(draft) => Some(draft),
            None => tenant.skill(name).await.map_err(SkillError::from)?.map(|skill| skill.text),
        };
        if let Some(text) = created {
            return Ok((name.as_str().to_owned(), text));
        }
        let (found, text) =
            self.shared_file(name).await?.ok_or_else(|| SkillError::NoDraft(name.as_str().to_owned()))?;
        let folder = found.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((folder, text))
    }

    /// Stores a draft in place of an earlier one of the same name in the same conversation.
    pub async fn write_draft(
        &self,
        context: &CallContext,
        name: &SkillName,
        text: &str,
    ) -> Result<(), ToolError> {
        self.check_free(&context.tenant, name).await?;
        let tenant = self.store.tenant(&context.tenant);
        let written = tenant.put_skill_draft(context.thread_id, name, text, MAX_DRAFTS).await;
        let is_written = written.map_err(SkillError::from)?;
        if is_written { Ok(()) } else { Err(SkillError::TooManyDrafts(MAX_DRAFTS).into()) }
    }

    /// Makes a skill of a draft. The audit entry is written with it. A second time it does nothing, also after a crash.
    pub async fn save(&self, context: &CallContext, name: &SkillName) -> Result<Saved, ToolError> {
        let tenant = self.store.tenant(&context.tenant);
        let created = tenant.skill(name).await.map_err(SkillError::from)?;
        let draft = tenant.skill_draft(context.thread_id, name).await.map_err(SkillError::from)?;
        let Some(text) = draft else {
            let missing = || SkillError::NoDraft(name.as_str().to_owned()).into();
            return created.map(|_| Saved::Before).ok_or_else(missing);
        };
        if created.is_none() {
            self.check_free(&context.tenant, name).await?;
        }
        let skill = NewSkill {
            name: name.clone(),
            description: description(&text, name)?,
            text,
            user_id: context.user.clone(),
            thread_id: Some(context.thread_id),
        };
        self.put(&context.tenant, skill, entry(context, name)).await
    }

    /// Adds a skill that was not made in a conversation.
    pub async fn import(
        &self,
        tenant: &TenantId,
        name: &SkillName,
        text: String,
        entry: AuditEntry,
        user: UserId,
    ) -> Result<Saved, ToolError> {
        if self.store.tenant(tenant).skill(name).await.map_err(SkillError::from)?.is_none() {
            self.check_free(tenant, name).await?;
        }
        let description = description(&text, name)?;
        let skill = NewSkill { name: name.clone(), description, text, user_id: user, thread_id: None };
        self.put(tenant, skill, entry).await
    }

    async fn put(&self, tenant: &TenantId, skill: NewSkill, entry: AuditEntry) -> Result<Saved, ToolError> {
        let name = skill.name.clone();
        let saving = self.store.tenant(tenant).save_skill(skill, entry, MAX_SKILLS).await;
        match saving.map_err(SkillError::from)? {
            SkillSaving::Saved => Ok(Saved::Now),
            SkillSaving::AlreadySaved => Ok(Saved::Before),
            SkillSaving::NameTaken => Err(self.taken(tenant, &name).await?),
            SkillSaving::LimitReached => Err(SkillError::Full(MAX_SKILLS).into()),
        }
    }

    async fn check_free(&self, tenant: &TenantId, name: &SkillName) -> Result<(), ToolError> {
        let names = self.names(tenant).await?;
        let is_taken = names.contains(name.as_str()) || self.shared.has_entry(name.as_str());
        if is_taken { Err(self.taken(tenant, name).await?) } else { Ok(()) }
    }

    async fn names(&self, tenant: &TenantId) -> Result<BTreeSet<String>, ToolError> {
        Ok(self.all(tenant).await?.iter().map(|head| head.name.as_str().to_owned()).collect())
    }

    /// The error for a name that is in use, with a similar one that is free.
    async fn taken(&self, tenant: &TenantId, name: &SkillName) -> Result<ToolError, ToolError> {
        let names = self.names(tenant).await?;
        let name = name.as_str();
        let mut numbered =
            (2..1_000).map(|number| format!("{}-{number}", name[..name.len().min(58)].trim_end_matches('-')));
        let is_free = |other: &String| !names.contains(other) && !self.shared.has_entry(other);
        let other = numbered.find(is_free).unwrap_or_else(|| "another".to_owned());
        Ok(SkillError::Taken { name: name.to_owned(), other }.into())
    }
}

/// What the head of a skill says that it is for. A skill that breaks the rules has none.
fn description(text: &str, name: &SkillName) -> Result<String, SkillError> {
    let mut problems = check::validate_text(text, name.as_str(), SkillStrictness::Strict);
    problems.retain(|problem: &SkillProblem| problem.severity == CheckSeverity::Error);
    match head::read(text) {
        Ok((head, _)) if problems.is_empty() => {
            Ok(head.text("description").unwrap_or_default().trim().to_owned())
        }
        _ => Err(SkillError::Invalid(problems)),
    }
}

fn entry(context: &CallContext, name: &SkillName) -> AuditEntry {
    AuditEntry {
        actor: context.agent.to_string(),
        on_behalf_of: Some(context.user.to_string()),
        action: "skill.save".to_owned(),
        thread_id: Some(context.thread_id),
        run_id: Some(context.run_id),
        decision: "saved".to_owned(),
        trace_id: context.trace.as_ref().map(TraceParent::trace_id),
        address: None,
        detail: json!({ "skill": name.as_str() }),
    }
}

impl SkillSource for SkillLibrary {
    fn list<'a>(&'a self, tenant: &'a TenantId) -> SkillFuture<'a, SkillHeads> {
        Box::pin(self.all(tenant))
    }

    fn read<'a>(&'a self, tenant: &'a TenantId, name: &'a SkillName) -> SkillFuture<'a, Option<SkillFile>> {
        Box::pin(self.file(tenant, name))
    }
}
