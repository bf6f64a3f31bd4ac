//! Agents that the people of a tenant created, and drafts of them. Agents of files are not in the store.

use jiff::Timestamp;

use crate::id::{AgentName, TenantId, ThreadId, UserId};
use crate::store::{AuditEntry, Pending};

/// An agent file that is being written in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDraft {
    /// The whole file.
    pub text: String,
    /// The file of the saved agent that the draft changes. `None` for a new agent.
    pub replaces: Option<String>,
}

/// An agent to be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAgent {
    pub name: AgentName,
    /// The whole file.
    pub text: String,
    /// The file that it replaces. If the tenant has another one meanwhile, nothing is saved.
    pub replaces: Option<String>,
    /// Who saves it.
    pub user_id: UserId,
    /// The conversation whose draft it is, if it is one. The draft is deleted.
    pub thread_id: Option<ThreadId>,
}

/// An agent that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAgent {
    pub name: AgentName,
    /// The whole file.
    pub text: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The created agents of a tenant at one version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentSnapshot {
    /// Raised by every save and deletion. 0 if there never was a created agent.
    pub version: u64,
    /// By name.
    pub agents: Vec<StoredAgent>,
}

/// Result of [`CreatedAgents::save_agent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentSaving {
    Saved,
    /// The tenant has the agent with the same text.
    AlreadySaved,
    /// The tenant has another text of this name than the one to replace.
    Changed,
    /// The tenant has as many agents as it may.
    LimitReached,
}

/// A tenant and the version of its [`AgentSnapshot`].
pub type AgentsVersion = (TenantId, u64);

/// Created agents of the tenant. They outlive the conversation in which they were made; drafts are deleted with it.
pub trait CreatedAgents: Send + Sync {
    /// Stores a draft in place of one of the same name in the same conversation. Returns `false` if the conversation has `most`
    /// other drafts.
    fn put_agent_draft(
        &self,
        thread: ThreadId,
        name: &AgentName,
        draft: AgentDraft,
        most: u32,
    ) -> Pending<'_, bool>;

    fn agent_draft(&self, thread: ThreadId, name: &AgentName) -> Pending<'_, Option<AgentDraft>>;

    /// Saves an agent, deletes its draft and records `entry` in one transaction. Of several that save the same name at once, one
    /// succeeds. `entry` is recorded only if the agent is saved by this call.
    fn save_agent(&self, agent: NewAgent, entry: AuditEntry, most: u32) -> Pending<'_, AgentSaving>;

    /// All of the tenant, with the version that they have. Returns `None` after reading the version alone if it is `known`.
    fn agent_snapshot(&self, known: Option<u64>) -> Pending<'_, Option<AgentSnapshot>>;

    fn created_agent(&self, name: &AgentName) -> Pending<'_, Option<StoredAgent>>;

    /// Deletes an agent and records `entry` in one transaction. Returns whether it existed.
    fn delete_agent(&self, name: &AgentName, entry: AuditEntry) -> Pending<'_, bool>;
}
