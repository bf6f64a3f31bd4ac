//! The agents that people of each tenant created, merged with the agents of files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use baton_agents::roster::RosterEntry;
use baton_agents::{
    Diagnostic, KnownNames, OnError, Roster, RosterDraft, Severity, SourceFile, Span, Strictness,
};
use baton_core::agent::{Agent, AgentPattern, McpServer, ToolPattern};
use baton_core::agent_library::LibraryFuture;
use baton_core::store::AgentSnapshot;
use baton_core::{
    AgentCheck, AgentLibrary, AgentName, CheckedAgent, FileProblem, Store, StoreError, TenantId,
};
use baton_engine::Agents;
use baton_engine::task::DELEGATE_PERMISSION;

use crate::config::Config;
use crate::project::Project;

/// How often a server looks for agents that other processes saved or deleted, and for changed files.
const LOOK: Duration = Duration::from_secs(1);
/// Longest delay between two looks while the store fails.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// The folder that created agents have in reports. No real path begins so.
const FOLDER: &str = "(created)";
/// The keys of a created agent's file. Others give it rights that its creator does not decide about.
const KEYS: &[&str] = &["name", "display_name", "description", "tools", "agents", "color"];

/// Finds the agents of files that a tenant has. `None` if they are not valid.
pub type FileRosters = Box<dyn Fn(&TenantId) -> Option<Arc<Roster>> + Send + Sync>;

/// Created agents of all tenants. One per process; every process that shares the store sees the same.
pub struct AgentCatalog {
    store: Arc<dyn Store>,
    rules: Arc<MergeRules>,
    files: FileRosters,
    /// Locked for a look-up or an insertion, never while files are parsed: every run reads it.
    tenants: RwLock<Arc<TenantCatalogs>>,
    /// Held during a merge: one at a time.
    merging: tokio::sync::Mutex<()>,
}

type TenantCatalogs = HashMap<TenantId, Arc<TenantCatalog>>;

/// What created agents may refer to and have.
struct MergeRules {
    known: KnownNames,
    /// The agents that a tenant is restricted to.
    permitted: BTreeMap<TenantId, Vec<AgentPattern>>,
}

/// The agents of one tenant that has created some.
#[derive(Debug, Clone)]
pub struct TenantCatalog {
    version: u64,
    sources: Vec<Arc<SourceFile>>,
    /// The agents of files that these were merged with.
    files: Arc<Roster>,
    /// All agents together.
    pub roster: Arc<Roster>,
    /// The same as runs use them. Empty if no created agent can be used.
    agents: Arc<Agents>,
    created: BTreeSet<AgentName>,
    /// Problems of created agents that cannot be used.
    pub left_out: Vec<Diagnostic>,
}

impl fmt::Debug for AgentCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentCatalog").finish_non_exhaustive()
    }
}

impl AgentCatalog {
    pub fn new(project: &Project, store: Arc<dyn Store>, files: FileRosters) -> Arc<Self> {
        let rules = Arc::new(MergeRules { known: known(project), permitted: permitted(&project.config) });
        let (tenants, merging) = (RwLock::default(), tokio::sync::Mutex::default());
        Arc::new(Self { store, rules, files, tenants, merging })
    }

    /// For a command: the files are read when a tenant with created agents needs them.
    pub fn of_command(project: &Project, store: Arc<dyn Store>) -> Arc<Self> {
        let (known, shared, own) = (project.known(), project.dirs.clone(), own_dirs(project));
        let read: Mutex<HashMap<TenantId, Option<Arc<Roster>>>> = Mutex::default();
        let files = move |tenant: &TenantId| {
            let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
            let load = || {
                let dirs = own.get(tenant).unwrap_or(&shared);
                Roster::load(dirs, &known, Strictness::Lenient).ok().map(Arc::new)
            };
            read.entry(tenant.clone()).or_insert_with(load).clone()
        };
        Self::new(project, store, Box::new(files))
    }

    /// Reads the created agents of all tenants whose version or files changed.
    pub async fn load(&self) -> Result<(), StoreError> {
        let versions: HashMap<TenantId, u64> = self.store.agent_versions().await?.into_iter().collect();
        let known = self.catalogs();
        let is_current = |tenant: &TenantId, version: u64| match known.get(tenant) {
            Some(known) => known.version == version && self.has_current_files(tenant, known),
            None => version == 0,
        };
        // A restored backup may lack a tenant that is known here.
        let missing = known.keys().filter(|tenant| !versions.contains_key(*tenant)).map(|tenant| (tenant, 0));
        let all = versions.iter().map(|(tenant, version)| (tenant, *version)).chain(missing);
        for (tenant, _) in all.filter(|(tenant, version)| !is_current(tenant, *version)) {
            self.read(tenant).await?;
        }
        Ok(())
    }

    /// Follows what other processes save and delete, and the files. Never returns.
    pub async fn follow(self: Arc<Self>) {
        let mut delay = LOOK;
        loop {
            tokio::time::sleep(delay).await;
            delay = match self.load().await {
                Ok(()) => LOOK,
                Err(error) => {
                    // Once for consecutive failures.
                    if delay == LOOK {
                        tracing::warn!(%error, "created agents cannot be read; those that are known stay in use");
                    }
                    (delay * 2).min(MAX_BACKOFF)
                }
            };
        }
    }

    /// The agents of a tenant that has created some, as they were merged last. Never waits for a merge.
    pub fn tenant(&self, tenant: &TenantId) -> Option<Arc<TenantCatalog>> {
        self.catalogs().get(tenant).cloned()
    }

    fn catalogs(&self) -> Arc<TenantCatalogs> {
        Arc::clone(&self.tenants.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the agents of a tenant, or removes them.
    fn put(&self, tenant: &TenantId, merged: Option<TenantCatalog>) {
        let mut tenants = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        let tenants = Arc::make_mut(&mut tenants);
        match merged {
            Some(merged) => tenants.insert(tenant.clone(), Arc::new(merged)),
            None => tenants.remove(tenant),
        };
    }

    fn has_current_files(&self, tenant: &TenantId, known: &TenantCatalog) -> bool {
        (self.files)(tenant).is_none_or(|files| Arc::ptr_eq(&files, &known.files))
    }

    /// Merges the created agents of a tenant again if their version or the files changed. A tenant that never created an agent
    /// has no entry.
    async fn read(&self, tenant: &TenantId) -> Result<(), StoreError> {
        loop {
            let known = self.tenant(tenant);
            let version = known.as_ref().map_or(0, |known| known.version);
            let snapshot = self.store.tenant(tenant).agent_snapshot(Some(version)).await?;
            let is_current = known.as_ref().is_none_or(|known| self.has_current_files(tenant, known));
            if snapshot.is_none() && is_current {
                return Ok(());
            }
            let _merging = self.merging.lock().await;
            // Another task merged meanwhile, perhaps a newer version.
            if self.tenant(tenant).as_ref().map(Arc::as_ptr) != known.as_ref().map(Arc::as_ptr) {
                continue;
            }
            return self.merge(tenant, known, snapshot).await;
        }
    }

    /// Merges `snapshot`, or what is known if its version is the same, with the newest files.
    async fn merge(
        &self,
        tenant: &TenantId,
        known: Option<Arc<TenantCatalog>>,
        snapshot: Option<AgentSnapshot>,
    ) -> Result<(), StoreError> {
        let (version, sources) = match (snapshot, &known) {
            (Some(AgentSnapshot { version, agents }), _) => {
                (version, agents.iter().map(|agent| source(&agent.name, &agent.text)).collect())
            }
            (None, Some(known)) => (known.version, known.sources.clone()),
            (None, None) => return Ok(()),
        };
        if version == 0 {
            self.put(tenant, None);
            return Ok(());
        }
        let Some(files) = (self.files)(tenant) else { return Ok(()) };
        let (rules, of) = (Arc::clone(&self.rules), tenant.clone());
        let merge = move || rules.merged(&of, version, sources, files, known.as_deref());
        let merged = tokio::task::spawn_blocking(merge).await;
        let merged = merged
            .map_err(|error| StoreError::Failed(format!("created agents cannot be merged: {error}")))?;
        self.put(tenant, Some(merged));
        Ok(())
    }

    async fn checked(&self, check: AgentCheck<'_>) -> Result<CheckedAgent, StoreError> {
        let Some(files) = (self.files)(check.tenant) else {
            return Err(StoreError::Failed("the agent files have errors; correct them first".to_owned()));
        };
        let saved = self.store.tenant(check.tenant).agent_snapshot(None).await?.unwrap_or_default();
        let others = saved.agents.iter().filter(|agent| agent.name != *check.name);
        let others: Vec<_> = others.map(|agent| source(&agent.name, &agent.text)).collect();
        // Those that cannot be used are no agents that a file could refer to.
        let usable = files.extended(&others, &self.rules.known);
        let Some(usable) = usable else {
            return Err(StoreError::Failed("the agent files have errors; correct them first".to_owned()));
        };
        let own = source(check.name, check.text);
        let draft = usable.roster.draft_with(std::slice::from_ref(&own), &self.rules.known);
        let mut problems = Vec::new();
        for problem in draft.problems() {
            if problem.location.path() == own.path && problem.severity != Severity::Note {
                problems.push(described(problem));
            } else if problem.is_error() {
                problems.push(elsewhere(problem));
            }
        }
        let entry = draft.agent(check.name).filter(|entry| entry.path() == own.path);
        if let Some(entry) = entry {
            problems.extend(self.rules.excess(&check, &files, &usable.roster, entry, &own));
        } else if problems.is_empty() {
            let message = format!("the file does not define the agent `{}`", check.name);
            problems.push(problem_at(&own, Span::default(), "invalid-name", message, "set `name:`"));
        }
        problems.sort_by_key(|problem| (problem.line, problem.column));
        Ok(CheckedAgent { agent: entry.map(|entry| Arc::clone(&entry.agent)), problems })
    }
}

impl TenantCatalog {
    /// A tenant without created agents that can be used: it has those of files.
    fn of_files(version: u64, sources: Vec<Arc<SourceFile>>, files: Arc<Roster>) -> Self {
        let roster = Arc::clone(&files);
        let (agents, created, left_out) = (Arc::default(), BTreeSet::new(), Vec::new());
        Self { version, sources, files, roster, agents, created, left_out }
    }
}

impl MergeRules {
    /// Merges created agents with files. If that fails, the agents of `before` stay in use, and the result has the new version and
    /// files, so that the same merge is not tried again.
    fn merged(
        &self,
        tenant: &TenantId,
        version: u64,
        sources: Vec<Arc<SourceFile>>,
        files: Arc<Roster>,
        before: Option<&TenantCatalog>,
    ) -> TenantCatalog {
        if sources.is_empty() {
            return TenantCatalog::of_files(version, sources, files);
        }
        let Some(extended) = files.extended(&sources, &self.known) else {
            tracing::warn!(%tenant, version, "created agents cannot be merged with the agent files; the agents in use stay");
            return match before {
                Some(before) => TenantCatalog { version, sources, files, ..before.clone() },
                None => TenantCatalog::of_files(version, sources, files),
            };
        };
        for left in &extended.left_out {
            let why = left.problems.first().map(ToString::to_string).unwrap_or_default();
            tracing::warn!(%tenant, file = %left.path.display(), why, "a created agent cannot be used and is left out");
        }
        let is_created = |name: &AgentName| files.get(name).is_none();
        let agents = extended.roster.iter().map(|agent| {
            let own = if is_created(&agent.name) {
                Arc::new(self.within_rights(tenant, &files, agent))
            } else {
                Arc::clone(agent)
            };
            (agent.name.clone(), own)
        });
        let agents: Arc<Agents> = Arc::new(agents.collect());
        let created = agents.keys().filter(|name| is_created(name)).cloned().collect();
        let left_out = extended.left_out.into_iter().flat_map(|left| left.problems).collect();
        let roster = Arc::new(extended.roster);
        TenantCatalog { version, sources, files, roster, agents, created, left_out }
    }

    /// A created agent without tools that the tenant's agents no longer have.
    fn within_rights(&self, tenant: &TenantId, files: &Roster, agent: &Agent) -> Agent {
        let mut own = agent.clone();
        own.tools.allow.retain(|tool| self.is_granted(tenant, files, tool.as_str()));
        // A tool that file agents use only after a person agreed is asked about here, too.
        let is_asked = |tool: &&ToolPattern| {
            let mut granting = self.granting(tenant, files, tool.as_str());
            granting.all(|agent| agent.approvals.ask.iter().any(|rule| rule.matches(tool.as_str())))
        };
        own.approvals.ask = own.tools.allow.iter().filter(is_asked).cloned().collect();
        // The text of a prompt can name agents to pass the conversation to.
        own.collaborations.clear();
        own
    }

    /// Whether an agent of a file that the tenant may use has the tool.
    fn is_granted(&self, tenant: &TenantId, files: &Roster, tool: &str) -> bool {
        self.granting(tenant, files, tool).next().is_some()
    }

    /// The file agents of the tenant that can use the tool: not only for reading, not denied, and of the configured MCP server.
    fn granting<'a>(
        &'a self,
        tenant: &'a TenantId,
        files: &'a Roster,
        tool: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Agent>> {
        let server = ToolPattern::parse(tool).ok().and_then(|tool| tool.mcp_server().map(str::to_owned));
        files.iter().filter(move |agent| {
            self.is_permitted(tenant, &agent.name)
                && agent.tools.permits(tool)
                && !agent.tools.read_only
                && !agent.approvals.deny.iter().any(|rule| rule.matches(tool))
                && server.as_deref().is_none_or(|server| has_server(agent, server))
        })
    }

    fn is_permitted(&self, tenant: &TenantId, agent: &AgentName) -> bool {
        let patterns = self.permitted.get(tenant);
        patterns.is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(agent)))
    }

    /// What the file would give to the agent beyond what a created agent may have.
    fn excess(
        &self,
        check: &AgentCheck<'_>,
        files: &Roster,
        usable: &Roster,
        entry: &RosterEntry,
        own: &Arc<SourceFile>,
    ) -> Vec<FileProblem> {
        let mut found = Vec::new();
        for (key, span) in entry.spans.iter().filter(|(key, _)| !KEYS.contains(key)) {
            let message = format!("a created agent cannot set `{key}`");
            found.push(problem_at(
                own,
                span,
                "not-permitted",
                message,
                "remove it, or ask the operator for an agent file",
            ));
        }
        for tool in &entry.agent.tools.allow {
            let span = item_span(own, entry.spans.get("tools"), tool.as_str());
            // A tool that does not exist is reported by the rules of agent files.
            let is_there = self.known.tools.contains(tool.as_str()) || tool.mcp_server().is_some();
            if !tool.is_exact() {
                let message = format!("`{tool}` in `tools` is a pattern");
                found.push(problem_at(own, span, "not-permitted", message, "name each tool"));
            } else if is_there && !self.is_granted(check.tenant, files, tool.as_str()) {
                let message =
                    format!("no other agent has the tool `{tool}`, so a created one cannot have it either");
                found.push(problem_at(own, span, "not-permitted", message, "choose other `tools`"));
            }
        }
        if !entry.agent.collaborations.is_empty() {
            let message = "a created agent cannot pass the conversation on".to_owned();
            let help = "remove the line that begins with `Collaborations`";
            found.push(problem_at(own, Span::default(), "not-permitted", message, help));
        }
        let agents = entry.spans.get("agents");
        for other in &entry.agent.agents {
            if !self.is_permitted(check.tenant, other)
                && usable.get(other).is_some()
                && files.get(other).is_some()
            {
                let span = item_span(own, agents, other.as_str());
                let message = format!("no agent is called `{other}`");
                found.push(problem_at(own, span, "unknown-agent", message, "name other `collaborators`"));
            }
        }
        if !entry.agent.agents.is_empty() && !check.rights.allow(DELEGATE_PERMISSION) {
            let message = format!(
                "an agent with `agents` needs the permission `{DELEGATE_PERMISSION}`, which you do not have"
            );
            let help = "leave the collaborators out";
            found.push(problem_at(own, agents.unwrap_or_default(), "not-permitted", message, help));
        }
        found
    }
}

impl AgentLibrary for AgentCatalog {
    fn agents(&self, tenant: &TenantId) -> Option<Arc<Agents>> {
        let known = self.tenant(tenant).filter(|known| !known.created.is_empty())?;
        Some(Arc::clone(&known.agents))
    }

    fn is_created(&self, tenant: &TenantId, agent: &AgentName) -> bool {
        self.tenant(tenant).is_some_and(|known| known.created.contains(agent))
    }

    fn is_file(&self, tenant: &TenantId, agent: &AgentName) -> bool {
        (self.files)(tenant).is_some_and(|files| files.get(agent).is_some())
    }

    fn refresh<'a>(&'a self, tenant: &'a TenantId) -> LibraryFuture<'a, ()> {
        Box::pin(self.read(tenant))
    }

    fn check<'a>(&'a self, file: AgentCheck<'a>) -> LibraryFuture<'a, CheckedAgent> {
        Box::pin(self.checked(file))
    }
}

/// What created agents may refer to. None of them is a file of another program that could be skipped.
fn known(project: &Project) -> KnownNames {
    KnownNames { on_error: OnError::Refuse, ..project.known() }
}

fn permitted(config: &Config) -> BTreeMap<TenantId, Vec<AgentPattern>> {
    let own = config.tenants.iter().filter_map(|(tenant, own)| Some((tenant.clone(), own.agents.clone()?)));
    own.collect()
}

/// The folders of tenants that have agents of their own.
fn own_dirs(project: &Project) -> HashMap<TenantId, Vec<PathBuf>> {
    let own = project.tenants_with_agents();
    own.map(|tenant| (tenant.clone(), project.dirs_of(tenant))).collect()
}

/// Whether an agent has a configured MCP server. A server of the same name that its file defines is another one.
fn has_server(agent: &Agent, server: &str) -> bool {
    match agent.mcp_servers.get(server) {
        Some(definition) => matches!(definition, McpServer::Configured),
        None => agent.tools.allow.iter().any(|tool| tool.mcp_server() == Some(server)),
    }
}

/// Whether an agent comes from [`source`] and not from a real file.
pub fn is_created_file(file: &Path) -> bool {
    file.starts_with(FOLDER)
}

/// A created agent as a file.
fn source(name: &AgentName, text: &str) -> Arc<SourceFile> {
    SourceFile::new(Path::new(FOLDER).join(format!("{name}.md")), text)
}

/// A problem of the file. What is a warning in files of operators is an error here: the person is there to correct it.
fn described(problem: &Diagnostic) -> FileProblem {
    let at = problem.location.start();
    FileProblem {
        line: at.line,
        column: at.column,
        rule: problem.rule.to_string(),
        // The file is not used with its mistakes, as those of operators are.
        message: problem.message.replace("; it is left out", ""),
        help: problem.help.clone(),
    }
}

/// An error that the file causes in another one.
fn elsewhere(problem: &Diagnostic) -> FileProblem {
    let message = format!("with this agent, another file would not be valid: {problem}");
    let rule = problem.rule.to_string();
    FileProblem { line: 1, column: 1, rule, message, help: "choose another name".to_owned() }
}

fn problem_at(source: &Arc<SourceFile>, span: Span, rule: &str, message: String, help: &str) -> FileProblem {
    let at = source.position(span.start);
    let (rule, help) = (rule.to_owned(), help.to_owned());
    FileProblem { line: at.line, column: at.column, rule, message, help }
}

/// Where an item of a list is: the word after its key.
fn item_span(source: &Arc<SourceFile>, key: Option<Span>, item: &str) -> Span {
    let key = key.unwrap_or_default();
    let found = source.text.get(key.end..).and_then(|rest| rest.find(item)).map(|at| key.end + at);
    found.map_or(key, |start| Span::new(start, start + item.len()))
}

/// A draft with the created agents of a tenant as a server merges them, for commands that list agents, and the problems of those that
/// are left out.
pub async fn with_created(
    project: &Project,
    store: Arc<dyn Store>,
    tenant: &TenantId,
    draft: RosterDraft,
) -> Result<(RosterDraft, Vec<Diagnostic>), StoreError> {
    let catalog = AgentCatalog::of_command(project, store);
    catalog.read(tenant).await?;
    let Some(own) = catalog.tenant(tenant) else { return Ok((draft, Vec::new())) };
    if own.created.is_empty() {
        return Ok((draft, own.left_out.clone()));
    }
    let mut merged = own.roster.draft_with(&[], &project.known());
    for entry in merged.agents_mut() {
        if let Some(agent) = own.agents.get(&entry.agent.name) {
            entry.agent = Arc::clone(agent);
        }
    }
    Ok((merged, own.left_out.clone()))
}
