//! Facts that only the binary knows: the store, the providers and the MCP servers. It provides them through a closure, so that
//! the server does not depend on them.

use baton_core::TenantId;

/// Returns the state of the system for a tenant. Called for each request, so it must not block.
pub type Inspect = Box<dyn Fn(&TenantId) -> SystemFacts + Send + Sync>;

/// Contains no secrets.
#[derive(Debug, Clone, Default)]
pub struct SystemFacts {
    pub store: StoreKind,
    pub providers: Vec<ProviderFacts>,
    pub mcp_servers: Vec<McpFacts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreKind {
    #[default]
    Sqlite,
    Postgres,
}

/// A provider of models.
#[derive(Debug, Clone)]
pub struct ProviderFacts {
    pub name: String,
    /// Whether it has a key, or an address if it needs no key.
    pub is_configured: bool,
    /// The environment variable for its key.
    pub key_variable: Option<String>,
}

#[derive(Debug, Clone)]
pub struct McpFacts {
    pub name: String,
    pub is_http: bool,
    pub state: McpState,
}

#[derive(Debug, Clone)]
pub enum McpState {
    Idle,
    Running { tools: Option<usize> },
    Failed { reason: String },
}
