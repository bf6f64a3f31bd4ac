//! The trait for agents that people of a tenant created, beside the agents of files.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::agent::Agent;
use crate::id::{AgentName, TenantId};
use crate::rights::Rights;
use crate::store::StoreError;

/// Permission to create, change and delete agents.
pub const WRITE_AGENTS: &str = "agent:write";

/// The created agents of all tenants, and the rules of agent files. Agents created in one tenant are not visible to others.
pub trait AgentLibrary: Send + Sync + fmt::Debug {
    /// All agents of a tenant that has created some: those of files and its own. `None` if it has none. Returns the same value
    /// until something changes, and never waits: [`AgentLibrary::refresh`] reads the store, and changed files are merged in the
    /// background.
    fn agents(&self, tenant: &TenantId) -> Option<Arc<BTreeMap<AgentName, Arc<Agent>>>>;

    /// Whether an agent of the tenant is in use and was created, as opposed to one of a file.
    fn is_created(&self, tenant: &TenantId, agent: &AgentName) -> bool;

    /// Whether a file defines an agent of this name. A created agent cannot replace it.
    fn is_file(&self, tenant: &TenantId, agent: &AgentName) -> bool;

    /// Reads the created agents of a tenant again if they changed.
    fn refresh<'a>(&'a self, tenant: &'a TenantId) -> LibraryFuture<'a, ()>;

    /// Checks the file of a created agent together with all other agents of the tenant, as if it were saved.
    fn check<'a>(&'a self, file: AgentCheck<'a>) -> LibraryFuture<'a, CheckedAgent>;
}

pub type LibraryFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A file to be checked.
#[derive(Debug, Clone, Copy)]
pub struct AgentCheck<'a> {
    pub tenant: &'a TenantId,
    /// The agent that the file must define.
    pub name: &'a AgentName,
    /// The whole file.
    pub text: &'a str,
    /// What its creator may do. An agent with collaborators needs `orchestration:delegate`; tools are compared with those of agents
    /// of files, not with these rights.
    pub rights: &'a Rights,
}

/// Result of [`AgentLibrary::check`].
#[derive(Debug, Clone)]
pub struct CheckedAgent {
    /// The agent as far as the file could be read.
    pub agent: Option<Arc<Agent>>,
    /// In the order of the file.
    pub problems: Vec<FileProblem>,
}

impl CheckedAgent {
    /// Whether the file can be used.
    pub fn is_valid(&self) -> bool {
        self.agent.is_some() && self.problems.is_empty()
    }
}

/// A reason why an agent file cannot be used, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// Starts at 1.
    pub line: usize,
    /// Starts at 1, in characters.
    pub column: usize,
    /// Stable name of the rule, such as `unknown-tool`.
    pub rule: String,
    pub message: String,
    /// How to correct it.
    pub help: String,
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, rule, message, help } = self;
        write!(f, "line {line}, column {column}: {message} [{rule}]")?;
        if help.is_empty() { Ok(()) } else { write!(f, "; {help}") }
    }
}
