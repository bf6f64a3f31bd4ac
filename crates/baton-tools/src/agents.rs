//! Agents that people create in a conversation.
//!
//! [`draft`] writes an agent file from what a person said; [`diff`](mod@diff) compares it with the saved one. [`AgentDrafts`] has the drafts of a
//! conversation and saves them. The rules of agent files come from [`AgentLibrary`].

use std::sync::Arc;

use baton_core::agent_library::WRITE_AGENTS;
use baton_core::store::{AgentDraft, AgentSaving, AuditEntry, NewAgent};
use baton_core::tool::{Effect, Risk};
use baton_core::{
    AgentCheck, AgentLibrary, AgentName, CallContext, CheckedAgent, HumanDuration, Store, StoreError,
    ToolError, ToolSpec, TraceParent,
};
use serde::Deserialize;
use serde_json::json;

use crate::schema::object;

pub mod diff;
pub mod draft;

/// Created agents of one tenant.
const MAX_AGENTS: u32 = 200;
/// Drafts of one conversation.
const MAX_DRAFTS: u32 = 20;
/// Actors of audit entries that are no agents.
const RESERVED_NAMES: &[&str] = &["anonymous", "system", "user"];

/// The drafts of agents, and what they are checked against.
#[derive(Debug, Clone)]
pub struct AgentDrafts {
    store: Arc<dyn Store>,
    library: Option<Arc<dyn AgentLibrary>>,
}

/// Result of [`AgentDrafts::save`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentSaved {
    Now,
    Before,
}

/// Arguments of the tools that work on a draft.
#[derive(Debug, Deserialize)]
pub(crate) struct DraftArguments {
    name: String,
}

impl DraftArguments {
    /// The spec of a read-only tool whose only argument is the name of a draft.
    pub(crate) fn read_only_spec(name: &str, description: &str) -> ToolSpec {
        let draft = json!({"type": "string", "minLength": 1, "description": "The name of the draft, such as travel-helper"});
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: object(json!({"name": draft}), &["name"]),
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: HumanDuration::from_secs(30),
        }
    }

    /// The same name as the draft got, however it is written.
    pub(crate) fn name(&self) -> Result<AgentName, ToolError> {
        named(&self.name)
    }
}

/// "Travel Helper" becomes `travel-helper`.
pub(crate) fn named(text: &str) -> Result<AgentName, ToolError> {
    let missing =
        || ToolError::InvalidArguments("`name` has no letter or digit of the Latin alphabet".to_owned());
    let name = AgentName::slug(text).ok_or_else(missing)?;
    if RESERVED_NAMES.contains(&name.as_str()) {
        return Err(ToolError::InvalidArguments(format!("`{name}` is reserved; choose another name")));
    }
    Ok(name)
}

fn check_permitted(context: &CallContext) -> Result<(), ToolError> {
    if context.rights.allow(WRITE_AGENTS) {
        return Ok(());
    }
    Err(ToolError::NotPermitted(format!("saving an agent needs the permission `{WRITE_AGENTS}`")))
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of `map_err`")]
fn unavailable(error: StoreError) -> ToolError {
    ToolError::Execution(error.to_string())
}

impl AgentDrafts {
    /// Without a library no agent can be created.
    pub fn new(store: Arc<dyn Store>, library: Option<Arc<dyn AgentLibrary>>) -> Self {
        Self { store, library }
    }

    fn library(&self) -> Result<&Arc<dyn AgentLibrary>, ToolError> {
        let missing = || ToolError::NotPermitted("agents cannot be created here".to_owned());
        self.library.as_ref().ok_or_else(missing)
    }

    /// Stores a draft in place of an earlier one of the same name in the same conversation. Returns whether it changes a saved agent.
    pub async fn write(
        &self,
        context: &CallContext,
        name: &AgentName,
        text: String,
    ) -> Result<bool, ToolError> {
        check_permitted(context)?;
        self.check_free(context, name).await?;
        let tenant = self.store.tenant(&context.tenant);
        let saved = tenant.created_agent(name).await.map_err(unavailable)?;
        let draft = AgentDraft { text, replaces: saved.map(|saved| saved.text) };
        let is_change = draft.replaces.is_some();
        let written = tenant.put_agent_draft(context.thread_id, name, draft, MAX_DRAFTS).await;
        if written.map_err(unavailable)? {
            return Ok(is_change);
        }
        Err(ToolError::Limit(format!(
            "this conversation has {MAX_DRAFTS} drafts already, which is the limit; save one, or write one again under its name"
        )))
    }

    /// The draft of the conversation. A saved agent is found when there is no draft of that name.
    pub async fn find(&self, context: &CallContext, name: &AgentName) -> Result<AgentDraft, ToolError> {
        let tenant = self.store.tenant(&context.tenant);
        if let Some(draft) = tenant.agent_draft(context.thread_id, name).await.map_err(unavailable)? {
            return Ok(draft);
        }
        let saved = tenant.created_agent(name).await.map_err(unavailable)?;
        let saved = saved.map(|saved| AgentDraft { replaces: Some(saved.text.clone()), text: saved.text });
        saved.ok_or_else(|| no_draft(name))
    }

    /// Checks a file by the rules of agent files, and what its creator may give to it.
    pub async fn check(
        &self,
        context: &CallContext,
        name: &AgentName,
        text: &str,
    ) -> Result<CheckedAgent, ToolError> {
        let CallContext { tenant, rights, .. } = context;
        let check = AgentCheck { tenant, name, text, rights };
        self.library()?.check(check).await.map_err(unavailable)
    }

    /// Makes an agent of a draft. The audit entry is written with it. A second time it does nothing, also after a crash.
    pub async fn save(&self, context: &CallContext, name: &AgentName) -> Result<AgentSaved, ToolError> {
        check_permitted(context)?;
        let tenant = self.store.tenant(&context.tenant);
        let draft = tenant.agent_draft(context.thread_id, name).await.map_err(unavailable)?;
        let Some(AgentDraft { text, replaces }) = draft else {
            let saved = tenant.created_agent(name).await.map_err(unavailable)?;
            return saved.map(|_| AgentSaved::Before).ok_or_else(|| no_draft(name));
        };
        self.check_free(context, name).await?;
        let checked = self.check(context, name, &text).await?;
        if !checked.is_valid() {
            return Err(ToolError::Execution(problems(&checked)));
        }
        let entry = entry(context, name, replaces.is_some());
        let agent = NewAgent {
            name: name.clone(),
            text,
            replaces,
            user_id: context.user.clone(),
            thread_id: Some(context.thread_id),
        };
        let saving = tenant.save_agent(agent, entry, MAX_AGENTS).await.map_err(unavailable)?;
        let saved = match saving {
            AgentSaving::Saved => AgentSaved::Now,
            AgentSaving::AlreadySaved => AgentSaved::Before,
            AgentSaving::Changed => {
                let text = format!(
                    "the agent `{name}` was changed by another person meanwhile; write the draft again"
                );
                return Err(ToolError::Execution(text));
            }
            AgentSaving::LimitReached => {
                let text = format!(
                    "there are {MAX_AGENTS} created agents already, which is the limit; delete some that are not used"
                );
                return Err(ToolError::Limit(text));
            }
        };
        // If this fails, it is in use with the next look at the store.
        if let Err(error) = self.library()?.refresh(&context.tenant).await {
            tracing::warn!(%error, agent = %name, "a created agent is saved, and could not be read");
        }
        Ok(saved)
    }

    /// Refuses the name of an agent of a file, with a similar name that is free.
    async fn check_free(&self, context: &CallContext, name: &AgentName) -> Result<(), ToolError> {
        let library = self.library()?;
        if !library.is_file(&context.tenant, name) {
            return Ok(());
        }
        let tenant = self.store.tenant(&context.tenant);
        for number in 2_u32.. {
            let Some(other) = AgentName::slug(&format!("{}-{number}", shortened(name))) else { break };
            let is_created = tenant.created_agent(&other).await.map_err(unavailable)?.is_some();
            if !is_created && !library.is_file(&context.tenant, &other) {
                let problem = format!("`{name}` is an agent of a file, which a created agent cannot replace");
                return Err(ToolError::NameTaken { problem, alternative: other.to_string() });
            }
        }
        Err(ToolError::InvalidArguments(format!("`{name}` is an agent of a file")))
    }
}

/// The name, with room for a number behind it.
fn shortened(name: &AgentName) -> &str {
    &name.as_str()[..name.as_str().len().min(50)]
}

fn no_draft(name: &AgentName) -> ToolError {
    ToolError::Execution(format!("there is no draft `{name}`; write it with write_agent first"))
}

/// What must be corrected, each with its place in the file.
pub(crate) fn problems(checked: &CheckedAgent) -> String {
    let lines: Vec<String> = checked.problems.iter().map(|problem| format!("\n- {problem}")).collect();
    let count = match lines.len() {
        1 => "one thing must be corrected".to_owned(),
        many => format!("{many} things must be corrected"),
    };
    // Without the name: the value that a problem quotes is the one to correct.
    format!("The draft is not ready, {count}.\n{}", lines.concat())
}

fn entry(context: &CallContext, name: &AgentName, is_change: bool) -> AuditEntry {
    AuditEntry {
        actor: context.agent.to_string(),
        on_behalf_of: Some(context.user.to_string()),
        action: "agent.save".to_owned(),
        thread_id: Some(context.thread_id),
        run_id: Some(context.run_id),
        decision: "saved".to_owned(),
        trace_id: context.trace.as_ref().map(TraceParent::trace_id),
        address: None,
        detail: json!({ "agent": name.as_str(), "change": is_change }),
    }
}
