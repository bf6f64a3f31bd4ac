//! The tables of `baton.toml`, each with the contract's defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::{Component, Path, PathBuf};

use baton_agents::OnError;
use baton_core::agent::{AgentPattern, McpServer, ModelName, StdioAccess};
use baton_core::{AgentName, HumanDuration, InvalidId, choices};
use baton_engine::EnrichFormat;
use baton_models::ProviderSettings;
use baton_models::settings::{ModelSettings, TimeoutSettings};
use baton_sandbox::Limits;
use baton_server::client_address::ProxyNetwork;
use baton_server::settings::AllowedOrigin;
use indexmap::IndexMap;
use serde::Deserialize;

use super::tools::{PythonConfig, SemanticSearchConfig, WebSearchConfig, WikiConfig};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    pub listen: String,
    /// Pages of these origins may call the server from a browser.
    pub allowed_origins: Vec<AllowedOrigin>,
    /// PEM files of a certificate chain and its key, relative to the folder of `baton.toml`.
    pub tls: Option<TlsConfig>,
    /// Whether a proxy in front of this server encrypts.
    pub behind_proxy: bool,
    /// Addresses and networks of proxies that say for which client they ask.
    pub trusted_proxies: Vec<ProxyNetwork>,
    /// How long running runs may go on after the server was asked to end.
    pub drain: HumanDuration,
    /// How long new connections are still answered before that, so that a load balancer can notice.
    pub grace: HumanDuration,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8420".into(),
            allowed_origins: Vec::new(),
            tls: None,
            behind_proxy: false,
            trusted_proxies: Vec::new(),
            drain: HumanDuration::from_secs(20),
            grace: HumanDuration::from_secs(0),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// `sqlite://file` or `postgres://…`.
    pub url: String,
    /// The folder of the threads' workspaces. Relative to the folder of `baton.toml`.
    pub data: PathBuf,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self { url: "sqlite://baton.db".into(), data: "data".into() }
    }
}

/// What programs that Baton starts may consume: commands of `shell` and MCP servers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxConfig {
    /// Memory of all processes of one program together.
    pub memory_bytes: u64,
    pub processes: NonZeroU32,
    /// Of one file.
    pub file_bytes: u64,
    /// Of all files of a workspace.
    pub disk_bytes: u64,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        let Limits { memory_bytes, processes, file_bytes, disk_bytes, .. } = Limits::default();
        let processes = NonZeroU32::new(processes).expect("not zero");
        Self { memory_bytes, processes, file_bytes, disk_bytes }
    }
}

impl SandboxConfig {
    pub fn limits(&self) -> Limits {
        Limits {
            memory_bytes: self.memory_bytes,
            processes: self.processes.get(),
            file_bytes: self.file_bytes,
            disk_bytes: self.disk_bytes,
            ..Limits::default()
        }
    }
}

choices! {
    /// Whether programs are confined.
    pub enum SandboxMode {
        On = "on",
        Off = "off",
    }
}

/// How servers that share a store learn of each other's events. The store decides it, so nothing else can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bus {
    pub url: BusUrl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "String")]
pub enum BusUrl {
    /// What fits the store.
    #[default]
    Auto,
    /// In force with SQLite.
    Memory,
    /// In force with PostgreSQL.
    Postgres,
}

impl TryFrom<String> for BusUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "auto" => Ok(Self::Auto),
            "memory:" => Ok(Self::Memory),
            "postgres:" => Ok(Self::Postgres),
            _ => Err("there is no such bus: servers learn of each other's events from the store they share. Remove `bus.url`, \
                      or write \"auto\""
                .to_owned()),
        }
    }
}

impl Bus {
    /// Why the bus is not the one of this store, if it is not.
    pub fn contradiction(&self, store: &StoreConfig) -> Option<String> {
        let is_postgres = store.url.starts_with("postgres");
        let (named, has) = match self.url {
            BusUrl::Memory if is_postgres => ("memory:", "PostgreSQL, whose servers share \"postgres:\""),
            BusUrl::Postgres if !is_postgres => ("postgres:", "SQLite, which has \"memory:\""),
            _ => return None,
        };
        Some(format!("`bus.url` is \"{named}\", and the store is {has}: write \"auto\", or remove it"))
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentsConfig {
    /// Relative to the folder of `baton.toml`.
    pub dirs: Vec<PathBuf>,
    /// Who answers first.
    pub main: Main,
    /// Who answers with `main = "auto"` when the message does not say enough.
    pub fallback: Option<AgentName>,
    /// How sure `auto` has to be, from 0 to 1.
    #[serde(deserialize_with = "share")]
    pub threshold: f64,
    /// Whether changed files are loaded while the server runs.
    pub watch: bool,
    /// What happens when a file of another program cannot be used.
    pub on_error: OnError,
    /// Agents whose `sanitize: false` has an effect. Without it: all in open mode, none otherwise.
    pub allow_unmasked: Option<Vec<AgentPattern>>,
}

impl Default for AgentsConfig {
    fn default() -> Self {
        let main = Main::Agent(AgentName::parse("assistant").expect("a valid name"));
        Self {
            dirs: vec!["agents".into()],
            main,
            fallback: None,
            threshold: 0.25,
            watch: true,
            on_error: OnError::Skip,
            allow_unmasked: None,
        }
    }
}

/// Who answers first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Main {
    /// The agent that matches the message best.
    Auto,
    Agent(AgentName),
}

impl Main {
    /// The agent that is named, if one is.
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Auto => None,
            Self::Agent(name) => Some(name),
        }
    }
}

impl TryFrom<String> for Main {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        if text == "auto" { Ok(Self::Auto) } else { AgentName::parse(&text).map(Self::Agent) }
    }
}

fn share<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let share = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(serde::de::Error::custom("`threshold` is 0 to 1"))
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelsConfig {
    pub default: ModelName,
    pub aliases: IndexMap<String, ModelName>,
    pub providers: IndexMap<String, ProviderConfig>,
}

impl Default for ModelsConfig {
    fn default() -> Self {
        let offline = || ModelName::Alias("offline".into());
        let aliases = [("fast".to_owned(), offline()), ("smart".to_owned(), offline())];
        Self { default: offline(), aliases: aliases.into_iter().collect(), providers: IndexMap::new() }
    }
}

/// Where a provider is. Its key comes from the environment, never from this file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderConfig {
    pub base_url: Option<String>,
    pub timeouts: TimeoutSettings,
    /// Facts about its models, by name.
    pub models: BTreeMap<String, ModelSettings>,
}

impl ProviderConfig {
    pub fn settings(&self) -> ProviderSettings {
        ProviderSettings { timeouts: self.timeouts, models: self.models.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsConfig {
    pub search_docs: SearchDocsConfig,
    pub semantic_search: SemanticSearchConfig,
    pub web_fetch: WebFetchConfig,
    pub web_search: WebSearchConfig,
    pub wiki: WikiConfig,
    pub shell: ShellConfig,
    pub python: PythonConfig,
}

/// Which addresses beside the public ones may be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebFetchConfig {
    /// Loopback and private addresses too: only where everything on the network may be read.
    pub allow_private: bool,
    /// These hosts, wherever they are.
    pub allow_hosts: Vec<String>,
}

/// Off unless enabled: it runs commands on the machine that Baton runs on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShellConfig {
    pub enabled: bool,
    /// Environment variables that commands see, beside a few harmless ones.
    pub env: Vec<String>,
    /// `off` runs commands with all rights of the server.
    pub sandbox: SandboxMode,
    /// Whether commands can use the network, loopback included.
    pub network: bool,
    /// Files and folders that commands can read and execute, beside those of the system.
    pub read: Vec<PathBuf>,
}

impl Default for ShellConfig {
    fn default() -> Self {
        let (env, read) = (Vec::new(), Vec::new());
        Self { enabled: false, env, sandbox: SandboxMode::On, network: false, read }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchDocsConfig {
    pub dirs: Vec<PathBuf>,
}

impl Default for SearchDocsConfig {
    fn default() -> Self {
        Self { dirs: vec!["docs".into()] }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpServers {
    #[serde(deserialize_with = "mcp_servers")]
    pub servers: IndexMap<String, McpServer>,
    /// Servers whose hints about their tools are believed: that one only reads, that one destroys nothing.
    pub trusted: BTreeSet<String>,
    /// Processes that one tenant may have at once.
    pub max_processes_per_tenant: NonZeroU32,
    /// Whether server processes are confined. By default they are if `auth.mode` is `required`.
    pub sandbox: Option<SandboxMode>,
}

impl Default for McpServers {
    fn default() -> Self {
        let max_processes_per_tenant = NonZeroU32::new(32).expect("not zero");
        Self { servers: IndexMap::new(), trusted: BTreeSet::new(), max_processes_per_tenant, sandbox: None }
    }
}

/// The fields of `.mcp.json`, so that an entry can be moved from one file to the other.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct McpServerTable {
    command: Option<String>,
    args: Vec<String>,
    env: IndexMap<String, String>,
    url: Option<String>,
    headers: IndexMap<String, String>,
    network: bool,
    read: Vec<String>,
}

impl McpServerTable {
    /// A key that has no effect on a server of this kind.
    fn misplaced(&self) -> Option<&'static str> {
        let of_programs: [(&'static str, bool); 4] = [
            ("args", !self.args.is_empty()),
            ("env", !self.env.is_empty()),
            ("network", self.network),
            ("read", !self.read.is_empty()),
        ];
        if self.url.is_some() {
            return of_programs.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key);
        }
        (!self.headers.is_empty()).then_some("headers")
    }
}

fn mcp_servers<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<IndexMap<String, McpServer>, D::Error> {
    let tables = IndexMap::<String, McpServerTable>::deserialize(deserializer)?;
    let servers = tables.into_iter().map(|(name, table)| {
        let misplaced = table.misplaced();
        match (table.command, table.url, misplaced) {
            (Some(command), None, None) => {
                let access = StdioAccess { network: table.network, read: table.read };
                Ok((name, McpServer::Stdio { command, args: table.args, env: table.env, access }))
            }
            (None, Some(url), None) => Ok((name, McpServer::Http { url, headers: table.headers })),
            (Some(_), None, Some(key)) => Err(serde::de::Error::custom(format!(
                "the MCP server `{name}` has `command`, so `{key}` has no effect: remove it"
            ))),
            (None, Some(_), Some(key)) => Err(serde::de::Error::custom(format!(
                "the MCP server `{name}` has `url`, so `{key}` has no effect: remove it"
            ))),
            _ => Err(serde::de::Error::custom(format!(
                "the MCP server `{name}` needs either `command` or `url`"
            ))),
        }
    });
    servers.collect()
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalsConfig {
    /// Tools of this risk and above wait for a person.
    pub ask_at: ApprovalLevel,
    /// URL that receives a POST for every new approval and question.
    pub notify_url: Option<String>,
    /// Whether `notify_url` may be on a private network.
    pub notify_allow_private: bool,
    /// How long a call waits before it counts as denied.
    pub expiry: HumanDuration,
}

impl Default for ApprovalsConfig {
    fn default() -> Self {
        Self {
            ask_at: ApprovalLevel::High,
            expiry: HumanDuration::from_mins(24 * 60),
            notify_url: None,
            notify_allow_private: false,
        }
    }
}

choices! {
    pub enum ApprovalLevel {
        Low = "low",
        Medium = "medium",
        High = "high",
        Never = "never",
    }
}

/// Whether a feature is on: for all, for none, or for a part of the tenants.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "FeatureValue")]
pub enum Feature {
    Switch(bool),
    Rollout { percent: u8, tenants: Vec<String> },
}

/// What can be switched off. A name that is not here is an error: an off switch that does nothing is worse than none.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Features {
    /// Agents pass the baton to colleagues.
    pub transfers: Feature,
    /// Agents call others as tools.
    pub agent_tool: Feature,
    /// Routers and main agents get hints from experience.
    pub learning: Feature,
}

impl Default for Features {
    fn default() -> Self {
        let on = || Feature::Switch(true);
        Self { transfers: on(), agent_tool: on(), learning: Feature::Switch(false) }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FeatureValue {
    Switch(bool),
    Rollout(Rollout),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rollout {
    #[serde(default)]
    percent: u8,
    #[serde(default)]
    tenants: Vec<String>,
}

impl TryFrom<FeatureValue> for Feature {
    type Error = &'static str;
    fn try_from(value: FeatureValue) -> Result<Self, Self::Error> {
        match value {
            FeatureValue::Switch(on) => Ok(Self::Switch(on)),
            FeatureValue::Rollout(Rollout { percent, .. }) if percent > 100 => Err("`percent` is 0 to 100"),
            FeatureValue::Rollout(Rollout { percent, tenants }) => Ok(Self::Rollout { percent, tenants }),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub struct Orchestration {
    pub max_concurrent_delegations: u32,
    /// Concurrent sub-agents of one agent, of all patterns together.
    pub max_live_children: u32,
    pub sub_agent_max_steps: u32,
    pub sub_agent_tool_allowlist: Vec<String>,
    /// The profile whose models, limits and tools sub-agents have.
    pub sub_agent_profile: Option<String>,
    /// The folder of sub-agents' files, below the one of their caller's.
    pub sub_agent_work_dir: Option<SubFolder>,
    pub summarize_results: bool,
    pub summary_max_length: u32,
    pub enable_result_cache: bool,
    pub cache_ttl_seconds: u64,
    pub stream_sub_agent_events: bool,
    /// Whether models may define an agent for one task.
    pub offer_custom_agents: bool,
    /// How a message sets apart what others wrote.
    pub enrich_format: EnrichFormat,
}

impl Default for Orchestration {
    fn default() -> Self {
        Self {
            max_concurrent_delegations: 5,
            max_live_children: 16,
            sub_agent_max_steps: 30,
            sub_agent_tool_allowlist: Vec::new(),
            sub_agent_profile: None,
            sub_agent_work_dir: None,
            summarize_results: false,
            summary_max_length: 2000,
            enable_result_cache: false,
            cache_ttl_seconds: 3600,
            stream_sub_agent_events: true,
            offer_custom_agents: false,
            enrich_format: EnrichFormat::Fenced,
        }
    }
}

/// A folder below another one: relative, without `..` and hidden names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct SubFolder(PathBuf);

impl SubFolder {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<String> for SubFolder {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let path = PathBuf::from(text);
        let is_plain = |part: Component<'_>| match part {
            Component::Normal(name) => !name.as_encoded_bytes().starts_with(b"."),
            _ => false,
        };
        if path.as_os_str().is_empty() || !path.components().all(is_plain) {
            return Err(
                "a folder inside the work folder is needed, such as \"sub-agents\": relative, without `..` and hidden names",
            );
        }
        Ok(Self(path))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Handoff {
    pub max_transfers: u32,
    pub context_max_chars: u32,
    pub recent_messages: u32,
    pub state_retention: HumanDuration,
}

impl Default for Handoff {
    fn default() -> Self {
        let thirty_days = HumanDuration::from_mins(30 * 24 * 60);
        Self { max_transfers: 5, context_max_chars: 2000, recent_messages: 5, state_retention: thirty_days }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Per tenant.
    pub requests_per_minute: NonZeroU32,
    pub max_body_bytes: u64,
    /// For files that are uploaded.
    pub max_upload_bytes: u64,
    /// Open at once, of all clients together.
    pub max_connections: NonZeroU32,
    /// Of one address, or of one IPv6 network of 64 bits.
    pub max_connections_per_address: NonZeroU32,
    /// Open at once: SSE, WebSocket and A2A.
    pub max_streams_per_user: u32,
    pub max_streams_per_tenant: u32,
    /// Per tenant.
    pub max_concurrent_runs: u32,
    /// Bytes of messages, files and long tool outputs. Unlimited if not set.
    pub max_stored_bytes_per_user: Option<u64>,
    pub max_stored_bytes_per_tenant: Option<u64>,
    pub max_concurrent_runs_per_user: u32,
    /// Long tool output that is kept for the threads of one tenant.
    pub max_spooled_bytes: u64,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let many = |number| NonZeroU32::new(number).expect("not zero");
        Self {
            requests_per_minute: many(600),
            max_body_bytes: 1 << 20,
            max_upload_bytes: 10 << 20,
            max_connections: many(10_000),
            max_connections_per_address: many(1000),
            max_streams_per_user: 100,
            max_streams_per_tenant: 5000,
            max_concurrent_runs: 1000,
            max_stored_bytes_per_user: None,
            max_stored_bytes_per_tenant: None,
            max_concurrent_runs_per_user: 100,
            max_spooled_bytes: 1 << 30,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// The collector that traces go to, such as `http://127.0.0.1:4318`. Without one they go nowhere.
    pub otlp_endpoint: Option<OtlpEndpoint>,
    /// What this server is called in traces.
    pub service_name: String,
    pub log_format: LogFormat,
    /// What is logged if `BATON_LOG` does not say. Without it, servers log from `info` on and commands from `warn` on.
    pub log_level: Option<LogLevel>,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            otlp_endpoint: None,
            service_name: "baton".into(),
            log_format: LogFormat::Text,
            log_level: None,
        }
    }
}

choices! {
    /// The least important events that are logged.
    pub enum LogLevel {
        Off = "off",
        Error = "error",
        Warn = "warn",
        Info = "info",
        Debug = "debug",
    }
}

choices! {
    /// What a line of the log looks like.
    pub enum LogFormat {
        Text = "text",
        /// An object with the same fields by name.
        Json = "json",
    }
}

/// Where an OTLP collector listens, without the path.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct OtlpEndpoint(String);

impl OtlpEndpoint {
    /// Where it takes traces.
    pub fn traces(&self) -> String {
        format!("{}/v1/traces", self.0.trim_end_matches('/'))
    }
}

impl TryFrom<String> for OtlpEndpoint {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        match host.map(|rest| rest.split('/').next().unwrap_or_default()) {
            Some(host) if !host.is_empty() && !text.contains(char::is_whitespace) => Ok(Self(text)),
            _ => Err("a collector is named by its address, such as http://127.0.0.1:4318"),
        }
    }
}
