//! The engine with its models and tools, as the configuration says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use baton_a2a::client::{A2aAgents, ClientTimeouts};
use baton_a2a::signature::JwkSet;
use baton_core::agent::{McpServer, ModelName, ToolPattern};
use baton_core::budget::BudgetLimit;
use baton_core::store::Retention;
use baton_core::tool::{Risk, SHOWN_OUTPUT_BYTES, ToolError, ToolSource, ToolsFuture};
use baton_core::{AgentLibrary, Store, TenantId, Workspaces};
use baton_engine::lifecycle::RetentionSettings;
use baton_engine::storage::StorageLimits;
use baton_engine::{
    Agents, ApprovalSettings, ApprovalTerms, Engine, EngineParts, Extensions, HeartbeatConfig, ModelRegistry,
    Observer, Policy, Switch, TenantSettings, Tenants, ThreadChannels, WorkerLifetime,
};
use baton_mcp::Servers;
use baton_models::registry::{default_base, key_variable};
use baton_models::{Endpoint, WireFormat};
use baton_offline::Offline;
use baton_store::{AuditKeys, Database};
use baton_tools::documents::DocumentReader;
use baton_tools::process::ProcessSettings;
use baton_tools::python::PythonSettings;
use baton_tools::semantic_search::EmbeddingSettings;
use baton_tools::web::Reach;
use baton_tools::web_search::WebSearchSettings;
use baton_tools::wiki::WikiSettings;
use baton_tools::{DocFolders, SKILLS_DIR, SkillFolder, SkillLibrary, ToolSettings};
use jiff::SignedDuration;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::watch;
use url::Url;

use crate::agent_catalog::{AgentCatalog, FileRosters};
use crate::config::{ApprovalLevel, Config, Feature, TenantConfig, WebSearchConfig};
use crate::confinement;
use crate::exit::Exit;
use crate::identity::identity;
use crate::project::Project;

/// A model call that lasts longer is on record before a crash can cut it.
const FLUSH: Duration = Duration::from_millis(50);

/// Everything a run needs.
#[derive(Debug)]
pub struct Wired {
    pub engine: Arc<Engine>,
    /// The servers that the engine uses, to stop them.
    pub servers: Servers,
}

/// Opens the store. Providers that no agent refers to are not connected, and no server is started yet.
pub async fn wire(project: &Project, agents: Arc<Agents>) -> anyhow::Result<Wired> {
    let servers = servers(project)?;
    let store: Arc<dyn Store> = Arc::new(store(project).await?);
    let catalog = catalog(project, &store).await?;
    let engine = Engine::new(parts(project, agents, servers.clone(), store, catalog)?);
    Ok(Wired { engine, servers })
}

/// The created agents of a command's project.
async fn catalog(project: &Project, store: &Arc<dyn Store>) -> anyhow::Result<Arc<AgentCatalog>> {
    let catalog = AgentCatalog::of_command(project, Arc::clone(store));
    catalog.load().await.context("cannot read the created agents")?;
    Ok(catalog)
}

/// The same for a chat: runs without a waiter are executed too, such as the answer after a handoff that was left.
pub async fn wire_chat(project: &Project, agents: Arc<Agents>) -> anyhow::Result<Wired> {
    let servers = servers(project)?;
    let store: Arc<dyn Store> = Arc::new(store(project).await?);
    let catalog = catalog(project, &store).await?;
    let parts = parts(project, agents, servers.clone(), store, catalog)?;
    Ok(Wired {
        engine: Engine::new(EngineParts { worker_lifetime: WorkerLifetime::UntilDone, ..parts }),
        servers,
    })
}

/// The agents of the tenants that have folders of their own.
pub type TenantAgents = BTreeMap<TenantId, watch::Receiver<Arc<Agents>>>;

/// The same for a server: its agents may be reloaded, it executes runs without a live process, and an observer counts.
pub async fn wire_server(
    project: &Project,
    agents: watch::Receiver<Arc<Agents>>,
    rosters: &TenantAgents,
    files: FileRosters,
    observer: Arc<dyn Observer>,
) -> anyhow::Result<(Wired, Arc<AgentCatalog>)> {
    let servers = servers(project)?;
    let store: Arc<dyn Store> = Arc::new(store(project).await?);
    let now = Arc::clone(&agents.borrow());
    let catalog = AgentCatalog::new(project, Arc::clone(&store), files);
    catalog.load().await.context("cannot read the created agents")?;
    let parts = parts(project, now, servers.clone(), store, Arc::clone(&catalog))?;
    let config = &project.config;
    let wanted = |config: &Config| {
        let mut wanted = providers_within_reach(config, &agents.borrow());
        for roster in rosters.values() {
            wanted.extend(providers_within_reach(config, &roster.borrow()));
        }
        wanted
    };
    let models = Arc::new(models(config, wanted)?);
    let engine = Engine::new(EngineParts {
        tenants: tenants(config, &parts.policy, &models, rosters)
            .with_created(Arc::clone(&catalog) as Arc<_>),
        models,
        agents,
        worker_lifetime: WorkerLifetime::UntilDone,
        observer: Some(observer),
        ..parts
    });
    Ok((Wired { engine, servers }, catalog))
}

/// The same for looking only: a store that does not exist is not created.
pub async fn wire_to_look(project: &Project, agents: Arc<Agents>) -> anyhow::Result<Wired> {
    let servers = servers(project)?;
    let store: Arc<dyn Store> = Arc::new(store_to_look(project).await?);
    let catalog = catalog(project, &store).await?;
    let engine = Engine::new(parts(project, agents, servers.clone(), store, catalog)?);
    Ok(Wired { engine, servers })
}

/// The store that the configuration names, its schema up to date.
pub async fn store(project: &Project) -> anyhow::Result<Database> {
    let opened = baton_store::open_signed(&project.config.store.url, &root(project), audit_keys()?).await;
    opened.context("cannot open the store").map_err(|error| Exit::Invalid.because(error))
}

/// The same for looking only: an empty store in memory if there is none.
pub async fn store_to_look(project: &Project) -> anyhow::Result<Database> {
    if has_store(project) {
        return store(project).await;
    }
    Ok(baton_store::open("sqlite::memory:", &project.root).await?)
}

/// Whether there is a store. A file exists once something was written; a database server exists, or opening it fails.
pub fn has_store(project: &Project) -> bool {
    let files = baton_store::files(&project.config.store.url, &project.root);
    files.first().is_none_or(|file| file.exists())
}

/// Holds the keys that sign the audit trail, or with `_FILE` the name of a file that does: the first signs, the others verify.
const AUDIT_KEY: &str = "BATON_AUDIT_KEY";

pub(crate) fn audit_keys() -> anyhow::Result<AuditKeys> {
    let Some(text) = secret_from(AUDIT_KEY)? else { return Ok(AuditKeys::default()) };
    AuditKeys::parse(text.expose_secret()).context(AUDIT_KEY).map_err(|error| Exit::Invalid.because(error))
}

/// How long a command waits at its end for a store that does not answer.
const SEAL: Duration = Duration::from_secs(1);

/// Seals the audit trail at the end of a command. What stays unsealed is sealed by the next one.
pub async fn seal(store: &dyn Store) {
    let _ = tokio::time::timeout(SEAL, store.seal_audit()).await;
}

fn parts(
    project: &Project,
    agents: Arc<Agents>,
    servers: Servers,
    store: Arc<dyn Store>,
    catalog: Arc<AgentCatalog>,
) -> anyhow::Result<EngineParts> {
    let config = &project.config;
    let settings = tools(project)?;
    let library: Arc<dyn AgentLibrary> = catalog;
    let state_retention = SignedDuration::try_from(config.handoff.state_retention.get())?;
    let extensions = Extensions {
        tools: baton_tools::built_in(&settings, &store, Some(&library)),
        servers: Some(Arc::new(Mcp(servers))),
        skills: Some(Arc::new(SkillLibrary::new(settings.skills, Arc::clone(&store)))),
        agents: Some(Arc::clone(&library)),
        remotes: Some(Arc::new(remote_agents(project)?)),
        team_hooks: None,
        shown_output_bytes: SHOWN_OUTPUT_BYTES,
        work_dir: root(project),
        workspaces: confinement::workspaces(project).map(|found| Arc::new(found) as Arc<dyn Workspaces>),
        approvals: approvals(config),
    };
    let (policy, models) = (policy(config)?, Arc::new(models(config, |config| providers(config, &agents))?));
    Ok(EngineParts {
        extensions: Arc::new(extensions),
        tenants: tenants(config, &policy, &models, &TenantAgents::new()).with_created(library),
        policy: Arc::new(policy),
        models,
        store,
        agents: watch::Sender::new(agents).subscribe(),
        identity: identity(),
        lease: HeartbeatConfig::default(),
        flush: FLUSH,
        worker_lifetime: WorkerLifetime::WhileAwaited,
        retention: retention(config, Retention { workflow_state: state_retention }),
        storage: StorageLimits {
            per_user: config.limits.max_stored_bytes_per_user,
            per_tenant: config.limits.max_stored_bytes_per_tenant,
        },
        live: ThreadChannels::new(),
        observer: None,
    })
}

/// What `[retention]` says, and `[tenants.<name>.retention]` for some.
fn retention(config: &Config, default: Retention) -> RetentionSettings {
    let of_tenant = |(name, tenant): (&TenantId, &TenantConfig)| {
        (name.clone(), config.retention.of_tenant(&tenant.retention))
    };
    RetentionSettings {
        default,
        history: config.retention.of_all(),
        tenants: config.tenants.iter().map(of_tenant).collect(),
    }
}

/// Connects to remote agents. A secret is the variable that the agent's file names, or the file of `<name>_FILE`.
pub(crate) fn remote_agents(project: &Project) -> anyhow::Result<A2aAgents> {
    let secrets = Arc::new(|name: &str| secret_from(name).ok().flatten());
    let agents = A2aAgents::new(secrets, ClientTimeouts::default());
    let Some(file) = &project.config.a2a.trusted_keys else { return Ok(agents) };
    let path = project.root.join(file);
    let read = || -> anyhow::Result<JwkSet> { Ok(serde_json::from_slice(&std::fs::read(&path)?)?) };
    let keys = read().with_context(|| {
        format!("`a2a.trusted_keys` in baton.toml: {} is not a file with a JWK set", path.display())
    });
    Ok(agents.trusting(keys.map_err(|error| Exit::Invalid.because(error))?))
}

/// What `[approvals]` says, and `[tenants.<name>.approvals]` for some.
fn approvals(config: &Config) -> ApprovalSettings {
    let all = &config.approvals;
    let default = ApprovalTerms { ask_at: risk(all.ask_at), expiry: all.expiry.get() };
    let tenants = config.tenants.iter().map(|(name, tenant)| {
        let own = &tenant.approvals;
        let terms = ApprovalTerms {
            ask_at: own.ask_at.map_or(default.ask_at, risk),
            expiry: own.expiry.map_or(default.expiry, baton_core::HumanDuration::get),
        };
        (name.as_str().to_owned(), terms)
    });
    ApprovalSettings { default, tenants: tenants.collect() }
}

fn risk(level: ApprovalLevel) -> Option<Risk> {
    match level {
        ApprovalLevel::Low => Some(Risk::Low),
        ApprovalLevel::Medium => Some(Risk::Medium),
        ApprovalLevel::High => Some(Risk::High),
        ApprovalLevel::Never => None,
    }
}

/// What `[orchestration]`, `[handoff]`, `[features]`, `[budgets]` and `[limits]` allow.
fn policy(config: &Config) -> anyhow::Result<Policy> {
    let orchestration = &config.orchestration;
    let sub_agents = config.sub_agents();
    let patterns = &sub_agents.orchestration.sub_agent_tool_allowlist;
    let patterns = patterns.iter().map(|pattern| ToolPattern::parse(pattern));
    let sub_agent_tools = patterns
        .collect::<Result<Vec<_>, _>>()
        .context("`orchestration.sub_agent_tool_allowlist` in baton.toml")
        .map_err(|error| Exit::Invalid.because(error))?;
    let cache = Duration::from_secs(orchestration.cache_ttl_seconds);
    // Only if the profile of sub-agents sets it: the limit of runs is one of the run, and a tenant may have its own.
    let own_budget = sub_agents.budgets.run != config.budgets.run;
    let sub_agent_budget = if own_budget { sub_agents.budgets.run } else { BudgetLimit::default() };
    Ok(Policy {
        agent_tool: switch(&config.features.agent_tool),
        transfers: switch(&config.features.transfers),
        learning: switch(&config.features.learning),
        max_concurrent_delegations: orchestration.max_concurrent_delegations,
        max_live_children: orchestration.max_live_children,
        sub_agent_max_steps: sub_agents.orchestration.sub_agent_max_steps,
        sub_agent_tools,
        sub_agent_budget,
        sub_agent_work_dir: orchestration.sub_agent_work_dir.as_ref().map(|folder| folder.path().to_owned()),
        summarize_results: orchestration.summarize_results,
        summary_max_length: orchestration.summary_max_length,
        result_cache: orchestration.enable_result_cache.then_some(cache),
        stream_sub_agent_events: orchestration.stream_sub_agent_events,
        offer_custom_agents: orchestration.offer_custom_agents,
        max_transfers: config.handoff.max_transfers,
        context_max_chars: config.handoff.context_max_chars as usize,
        recent_messages: config.handoff.recent_messages,
        enrich_format: orchestration.enrich_format,
        budgets: config.budgets,
        max_spooled_bytes: config.limits.max_spooled_bytes,
        ..Policy::default()
    })
}

/// What `[tenants.<name>]` says, for tenants that have such a section.
fn tenants(config: &Config, policy: &Policy, models: &Arc<ModelRegistry>, rosters: &TenantAgents) -> Tenants {
    let settings = config.tenants.iter().map(|(tenant, own)| {
        let budgets = own.budgets.over(config.budgets);
        let spooled = own.limits.max_spooled_bytes.unwrap_or(policy.max_spooled_bytes);
        let own_policy = Policy { budgets, max_spooled_bytes: spooled, ..policy.clone() };
        let settings = TenantSettings {
            agents: own.agents.clone(),
            roster: rosters.get(tenant).cloned(),
            policy: (own_policy != *policy).then(|| Arc::new(own_policy)),
            models: own.model.clone().map(|model| Arc::new(models.with_default(model))),
        };
        (tenant.clone(), settings)
    });
    settings.collect()
}

pub(crate) fn switch(feature: &Feature) -> Switch {
    match feature {
        Feature::Switch(true) => Switch::On,
        Feature::Switch(false) => Switch::Off,
        Feature::Rollout { percent, tenants } => Switch::For { percent: *percent, tenants: tenants.clone() },
    }
}

/// The folder of the project; the current one is written as an empty path.
pub(crate) fn root(project: &Project) -> PathBuf {
    if project.root == Path::new("") { PathBuf::from(".") } else { project.root.clone() }
}

/// The models of a configuration, and those of its sub-agents. `wanted` names the providers to connect to.
fn models(config: &Config, wanted: impl Fn(&Config) -> BTreeSet<String>) -> anyhow::Result<ModelRegistry> {
    let models = connected(config, wanted(config))?;
    let sub_agents = config.sub_agents();
    if sub_agents.models == config.models {
        return Ok(models);
    }
    Ok(models.with_sub_agents(connected(sub_agents, wanted(sub_agents))?))
}

fn connected(config: &Config, wanted: BTreeSet<String>) -> anyhow::Result<ModelRegistry> {
    let mut models = ModelRegistry::new(config.models.default.clone()).with_provider(Arc::new(Offline));
    for (alias, name) in &config.models.aliases {
        models = models.with_alias(alias.clone(), name.clone());
    }
    if wanted.is_empty() {
        return Ok(models);
    }
    let client = baton_models::ModelHttpClient::default();
    for provider in wanted {
        let table = config.models.providers.get(&provider).cloned().unwrap_or_default();
        let settings = table.settings();
        let endpoint = Endpoint { key: key(&provider)?, base_url: table.base_url, provider, settings };
        models = models.with_provider(baton_models::connect(
            WireFormat::of(&endpoint.provider),
            endpoint,
            client.clone(),
        ));
    }
    Ok(models)
}

/// Providers that some model name leads to.
pub(crate) fn providers(config: &Config, agents: &Agents) -> BTreeSet<String> {
    let named = agents.values().flat_map(|agent| &agent.model);
    let of_tenants = config.tenants.values().filter_map(|own| own.model.as_ref());
    let all = named.chain(config.models.aliases.values()).chain([&config.models.default]).chain(of_tenants);
    let providers = all.filter_map(|name| match name {
        ModelName::Provider { provider, .. } => Some(provider.clone()),
        ModelName::Alias(_) => None,
    });
    providers.collect()
}

/// The same for agents that are not there yet: whatever is configured, or has a key.
pub(crate) fn providers_within_reach(config: &Config, agents: &Agents) -> BTreeSet<String> {
    let usual = ["openai", "anthropic", "gemini", "ollama"].map(str::to_owned);
    let configured = config.models.providers.keys().cloned();
    providers(config, agents).into_iter().chain(configured).chain(usual).collect()
}

/// `OPENAI_API_KEY`, or the file that `OPENAI_API_KEY_FILE` names. A provider on this machine may need none.
pub(crate) fn key(provider: &str) -> anyhow::Result<Option<SecretString>> {
    secret_from(&key_variable(provider))
}

/// The variable `name`, or the file that `<name>_FILE` names.
pub(crate) fn secret_from(name: &str) -> anyhow::Result<Option<SecretString>> {
    // Empty is as good as absent: compose files and CI set what they do not have to nothing.
    if let Some(key) = std::env::var(name).ok().and_then(|key| secret(&key)) {
        return Ok(Some(key));
    }
    let Some(path) = std::env::var_os(format!("{name}_FILE")).filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let path = PathBuf::from(path);
    let key = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {name} from {}", path.display()))
        .map_err(|error| Exit::Invalid.because(error))?;
    Ok(secret(&key))
}

fn secret(text: &str) -> Option<SecretString> {
    let text = text.trim();
    if text.is_empty() { None } else { Some(SecretString::from(text)) }
}

/// The shared skills, in the folder that other programs which know Agent Skills use too.
pub(crate) fn skills(project: &Project) -> SkillFolder {
    SkillFolder::new(root(project).join(SKILLS_DIR))
}

fn tools(project: &Project) -> anyhow::Result<ToolSettings> {
    let root = root(project);
    let tools = &project.config.tools;
    let process = ProcessSettings {
        environment: tools.shell.env.clone(),
        sandbox: confinement::process_sandbox(project),
        ..ProcessSettings::default()
    };
    let folders = |dirs: &[PathBuf]| dirs.iter().map(|dir| root.join(dir)).collect::<Vec<_>>();
    let shared = folders(&tools.search_docs.dirs);
    let own = project.config.tenants.iter().filter(|(_, tenant)| !tenant.docs.is_empty());
    let own = own.map(|(name, tenant)| (name.clone(), [shared.clone(), folders(&tenant.docs)].concat()));
    let python = PythonSettings {
        interpreter: tools.python.interpreter.clone(),
        process: process.clone(),
        protected: confinement::server_files(project),
    };
    Ok(ToolSettings {
        docs: DocFolders { tenants: own.collect(), shared },
        reader: DocumentReader::current(),
        skills: skills(project),
        web: Reach {
            allow_private: tools.web_fetch.allow_private,
            allowed_hosts: tools.web_fetch.allow_hosts.clone(),
        },
        embedding: embedding(&project.config)?,
        web_search: web_search(&tools.web_search)?,
        wiki: tools.wiki.enabled.then(|| WikiSettings { api: tools.wiki.base_url.0.clone() }),
        shell: tools.shell.enabled.then_some(process),
        python: tools.python.enabled.then_some(python),
        protected: confinement::server_files(project),
    })
}

/// The server for embeddings: the provider of the model, with its address and key.
fn embedding(config: &Config) -> anyhow::Result<Option<EmbeddingSettings>> {
    let invalid = |problem: String| {
        Exit::Invalid
            .because(anyhow::anyhow!("`tools.semantic_search.embedding_model` in baton.toml: {problem}"))
    };
    let (provider, model) = match &config.tools.semantic_search.embedding_model {
        None => return Ok(None),
        Some(ModelName::Provider { provider, model }) => (provider, model),
        Some(ModelName::Alias(alias)) => return Err(invalid(format!("`{alias}` is not `provider/model`"))),
    };
    let configured = config.models.providers.get(provider).and_then(|table| table.base_url.clone());
    let base = configured.or_else(|| default_base(provider).map(str::to_owned));
    let base = base.ok_or_else(|| invalid(format!("the provider `{provider}` has no `base_url`")))?;
    let mut base_url = Url::parse(&base).map_err(|error| invalid(format!("`{base}`: {error}")))?;
    match WireFormat::of(provider) {
        WireFormat::OpenAi => {}
        // Its API for embeddings is beside its own.
        WireFormat::Ollama if base_url.path().trim_end_matches('/').ends_with("/v1") => {}
        WireFormat::Ollama => base_url.set_path("/v1"),
        WireFormat::Anthropic | WireFormat::Gemini => {
            return Err(invalid(format!("`{provider}` does not speak the embeddings API of OpenAI")));
        }
    }
    Ok(Some(EmbeddingSettings { base_url, model: model.clone(), key: key(provider)? }))
}

/// The search engine with its key.
fn web_search(config: &WebSearchConfig) -> anyhow::Result<Option<WebSearchSettings>> {
    let Some(engine) = &config.engine else { return Ok(None) };
    let variables = engine.key_variables();
    let keys = variables.iter().map(|name| secret_from(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let key = keys.into_iter().flatten().next();
    if key.is_none() && engine.needs_key() {
        let problem = format!(
            "`tools.web_search` in baton.toml needs a key in the environment: set {}, or <name>_FILE to a file that holds it",
            variables.join(" or ")
        );
        return Err(Exit::Invalid.because(anyhow::anyhow!(problem)));
    }
    Ok(Some(WebSearchSettings { endpoint: engine.endpoint.clone(), key }))
}

/// Servers of `.mcp.json` and of `baton.toml`, which wins.
fn servers(project: &Project) -> anyhow::Result<Servers> {
    let file = root(project).join(".mcp.json");
    let mut configured = if file.is_file() {
        baton_mcp::config::load(&file).map_err(|error| Exit::Invalid.because(error))?
    } else {
        indexmap::IndexMap::new()
    };
    configured.extend(project.config.mcp.servers.clone());
    let mcp = &project.config.mcp;
    if let Some(unknown) = mcp.trusted.iter().find(|name| !configured.contains_key(*name)) {
        let problem = format!("`mcp.trusted` names `{unknown}`, and no MCP server is called that");
        return Err(Exit::Invalid.because(anyhow::anyhow!(problem)));
    }
    let max_processes = usize::try_from(mcp.max_processes_per_tenant.get()).unwrap_or(usize::MAX);
    let settings = baton_mcp::McpSettings {
        max_processes,
        trusted: mcp.trusted.clone(),
        sandbox: confinement::mcp_sandbox(project),
        ..baton_mcp::McpSettings::default()
    };
    Ok(Servers::new(configured, settings))
}

/// MCP servers as the engine knows them.
#[derive(Debug)]
struct Mcp(Servers);

impl ToolSource for Mcp {
    fn tools<'a>(
        &'a self,
        tenant: &'a TenantId,
        workspace: Option<&'a Path>,
        server: &'a str,
        definition: &'a McpServer,
    ) -> ToolsFuture<'a> {
        Box::pin(async move {
            let tools = self.0.tools_of(tenant, workspace, server, definition).await;
            tools.map_err(|error| ToolError::Transport(error.to_string()))
        })
    }
}
