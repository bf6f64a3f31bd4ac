//! What only the binary knows about the system: the store, the providers and the MCP servers. It says so through a closure, so that
//! the server depends on none of them.

use baton_core::TenantId;

/// The state of the system for a tenant. Called for each request, so it must not block.
pub type Inspect = Box<dyn Fn(&TenantId) -> SystemFacts + Send + Sync>;

/// No secret is among them.
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

/// Where models can come from.
#[derive(Debug, Clone)]
pub struct ProviderFacts {
    pub name: String,
    /// Whether it has a key, or an address where it needs none.
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
