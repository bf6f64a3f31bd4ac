//! What the server works with, as the API shows it.

use baton_sanitize::{Mask, sanitize};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::schema::moment;
use crate::system::{McpFacts, McpState, ProviderFacts, StoreKind, SystemFacts};

/// The provider that answers from rules, without a model.
const OFFLINE: &str = "offline/";

/// What the server works with, and whether it works.
#[derive(Debug, Serialize, ToSchema)]
pub struct SystemView {
    pub version: &'static str,
    pub store: StoreView,
    /// As `provider/model`; of agents that name no model.
    pub default_model: String,
    /// The default model is none: answers come from rules.
    pub offline: bool,
    pub providers: Vec<ProviderView>,
    /// As the caller's tenant has them.
    pub mcp_servers: Vec<McpServerView>,
    /// How many there are.
    pub agents: usize,
    /// Runs that this process works on, of all tenants; with `metrics:read` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub active_runs: Option<usize>,
    #[schema(schema_with = moment)]
    pub started_at: Timestamp,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct StoreView {
    pub kind: StoreKindView,
    pub status: StoreStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoreKindView {
    Sqlite,
    Postgres,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoreStatus {
    Ok,
    Unavailable,
}

/// Where models can come from.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProviderView {
    pub name: String,
    /// It has a key, or an address where it needs none. Whether it answers is not tried.
    pub configured: bool,
    /// The environment variable for its key; with `metrics:read` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub key_variable: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct McpServerView {
    pub name: String,
    pub transport: TransportView,
    pub state: McpStateView,
    /// How many it offers, once they were listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tools: Option<usize>,
    /// Why the last start failed; with `metrics:read` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransportView {
    Stdio,
    Http,
}

/// A server starts when a run needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpStateView {
    Idle,
    Running,
    Failed,
}

/// What the server itself knows.
#[derive(Debug)]
pub struct Vitals {
    pub version: &'static str,
    pub is_store_ok: bool,
    pub default_model: String,
    pub agents: usize,
    pub active_runs: usize,
    pub started_at: Timestamp,
    /// Also what only operators see.
    pub shows_details: bool,
}

impl SystemView {
    pub fn of(vitals: Vitals, facts: SystemFacts) -> Self {
        let details = vitals.shows_details;
        let kind = match facts.store {
            StoreKind::Sqlite => StoreKindView::Sqlite,
            StoreKind::Postgres => StoreKindView::Postgres,
        };
        let status = if vitals.is_store_ok { StoreStatus::Ok } else { StoreStatus::Unavailable };
        Self {
            version: vitals.version,
            store: StoreView { kind, status },
            offline: vitals.default_model.starts_with(OFFLINE),
            default_model: vitals.default_model,
            providers: facts.providers.into_iter().map(|one| ProviderView::of(one, details)).collect(),
            mcp_servers: facts.mcp_servers.into_iter().map(|one| McpServerView::of(one, details)).collect(),
            agents: vitals.agents,
            active_runs: details.then_some(vitals.active_runs),
            started_at: vitals.started_at,
        }
    }
}

impl ProviderView {
    fn of(provider: ProviderFacts, details: bool) -> Self {
        let ProviderFacts { name, is_configured, key_variable } = provider;
        Self { name, configured: is_configured, key_variable: key_variable.filter(|_| details) }
    }
}

impl McpServerView {
    fn of(server: McpFacts, details: bool) -> Self {
        let (state, tools, error) = match server.state {
            McpState::Idle => (McpStateView::Idle, None, None),
            McpState::Running { tools } => (McpStateView::Running, tools, None),
            McpState::Failed { reason } => (McpStateView::Failed, None, Some(shown(&reason))),
        };
        Self {
            name: server.name,
            transport: if server.is_http { TransportView::Http } else { TransportView::Stdio },
            state,
            tools,
            error: error.filter(|_| details),
        }
    }
}

/// A reason without secrets, and without the folders and paths that it names.
fn shown(reason: &str) -> String {
    let masked = sanitize(reason, Mask::SecretsOnly);
    masked.split(' ').map(without_path).collect::<Vec<_>>().join(" ")
}

/// Of a path its last part, of a URL its scheme and host.
fn without_path(word: &str) -> String {
    if let Some((scheme, rest)) = word.split_once("://") {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        return format!("{scheme}://{host}");
    }
    let Some(last) = word.rfind(['/', '\\']) else { return word.to_owned() };
    let first = word.find(|c: char| c.is_alphanumeric() || "/\\._-~".contains(c)).unwrap_or_default();
    format!("{}{}", &word[..first], &word[last + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_name_no_folder_and_no_secret() {
        for (reason, said) in [
            ("it ended soon after its start", "it ended soon after its start"),
            ("cannot start `/home/ada/bin/serve`: not found", "cannot start `serve`: not found"),
            ("cannot start `C:\\ada\\serve.exe`", "cannot start `serve.exe`"),
            (
                "error at https://x:pw@mcp.example:1/t0ken?key=1 (timeout)",
                "error at https://mcp.example:1 (timeout)",
            ),
        ] {
            assert_eq!(shown(reason), said);
        }
        assert!(!shown("token=sk-hunter2hunter2hunter2 was refused").contains("hunter2"));
    }
}
