//! A folder with agents and its configuration.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use baton_agents::{Diagnostic, KnownNames, Prices, RosterDraft, Rule, SourceFile, Span, files, secrets};
use baton_core::agent::ModelName;
use baton_core::{AgentName, TenantId};
use baton_models::registry::WELL_KNOWN;

use crate::config::{AuthMode, Config, ConfigError, FILE_NAME, ModelsConfig, upwards};

/// Where agents are loaded from and what they may refer to.
#[derive(Debug)]
pub struct Project {
    /// The folder that relative paths in the configuration start from.
    pub root: PathBuf,
    /// The `baton.toml` that was read, if there is one.
    pub file: Option<PathBuf>,
    pub config: Config,
    pub dirs: Vec<PathBuf>,
}

impl Project {
    /// The project around `start`: the nearest `baton.toml` upwards, or `start` itself with the defaults. `dirs`
    /// replace the configured folders.
    pub fn open(start: &Path, config_file: Option<&Path>, dirs: &[PathBuf]) -> Result<Self, ConfigError> {
        Self::open_profile(start, config_file, None, dirs)
    }

    /// The same with a profile of the configuration in force.
    pub fn open_profile(
        start: &Path,
        config_file: Option<&Path>,
        profile: Option<&str>,
        dirs: &[PathBuf],
    ) -> Result<Self, ConfigError> {
        let file = config_file.map(Path::to_owned).or_else(|| Config::find(start));
        let config = Config::load(file.as_deref(), profile)?;
        let root = file.as_deref().and_then(Path::parent).unwrap_or(start).to_owned();
        let configured = config.agents.dirs.iter().map(|dir| join(&root, dir));
        let dirs = if dirs.is_empty() { configured.collect() } else { dirs.to_vec() };
        Ok(Self { root, file, config, dirs })
    }

    /// The project that one file or folder is checked within. Inside the agent folders of a `baton.toml` that is the
    /// project; elsewhere a folder is a set of agents of its own, and a file belongs to the folder around it.
    pub fn around(
        path: &Path,
        config_file: Option<&Path>,
        profile: Option<&str>,
    ) -> Result<Self, ConfigError> {
        let is_file = path.is_file();
        let folder = if is_file { path.parent().unwrap_or(Path::new("")) } else { path };
        let mut project = Self::open_profile(folder, config_file, profile, &[])?;
        if project.file.is_none() {
            project.root = PathBuf::new();
        }
        let is_configured = project.file.is_some() && project.dirs.iter().any(|dir| is_inside(path, dir));
        if !is_configured {
            let names = project.config.agents.dirs.iter().filter_map(|dir| dir.file_name());
            let names: Vec<&OsStr> = names.collect();
            project.dirs = vec![if is_file { roster_around(folder, &names) } else { path.to_owned() }];
        }
        let is_agent = |name: &OsStr| files::is_agent_file(&name.to_string_lossy().to_lowercase());
        if is_file && !path.file_name().is_some_and(is_agent) {
            project.dirs.push(path.to_owned());
        }
        Ok(project)
    }

    /// Reads all agents, good or bad.
    pub fn draft(&self) -> RosterDraft {
        RosterDraft::read(&self.dirs, &self.known())
    }

    /// Reads the agents of a tenant: those for all, and those of its own folders.
    pub fn draft_of(&self, tenant: &TenantId) -> RosterDraft {
        RosterDraft::read(&self.dirs_of(tenant), &self.known())
    }

    /// The folders with the agents of a tenant.
    pub fn dirs_of(&self, tenant: &TenantId) -> Vec<PathBuf> {
        let own = self.config.tenants.get(tenant).map(|own| own.agent_dirs.as_slice()).unwrap_or_default();
        self.dirs.iter().cloned().chain(own.iter().map(|dir| join(&self.root, dir))).collect()
    }

    /// The tenants that have agents of their own.
    pub fn tenants_with_agents(&self) -> impl Iterator<Item = &TenantId> {
        self.config.tenants.iter().filter(|(_, own)| !own.agent_dirs.is_empty()).map(|(tenant, _)| tenant)
    }

    /// What agent files may refer to besides each other.
    pub fn known(&self) -> KnownNames {
        let mut known = Self::known_models(&self.config);
        known.mcp_servers = self.config.mcp.servers.keys().cloned().collect();
        known.mcp_servers.extend(self.mcp_json().unwrap_or_default());
        known.on_error = self.config.agents.on_error;
        // On a shared server, only the operator may let personal data through.
        known.allow_unmasked = match (&self.config.agents.allow_unmasked, self.config.auth.mode) {
            (None, AuthMode::Open) => None,
            (allowed, _) => Some(allowed.clone().unwrap_or_default()),
        };
        let models = self.config.models.clone();
        known.prices = Prices::new(move |names| first_unpriced(&models, names));
        known
    }

    /// The models that can be referred to.
    pub fn known_models(config: &Config) -> KnownNames {
        let mut known = KnownNames::default();
        known.model_aliases.extend(config.models.aliases.keys().cloned());
        known.providers.extend(WELL_KNOWN.iter().map(|(name, _)| (*name).to_owned()));
        known.providers.extend(config.models.providers.keys().cloned());
        known
    }

    /// Names of the servers in `.mcp.json`; a missing file has none.
    pub fn mcp_json(&self) -> Result<BTreeSet<String>, Box<Diagnostic>> {
        let path = self.root.join(".mcp.json");
        if !path.is_file() {
            return Ok(BTreeSet::new());
        }
        let source = files::read(&path)?;
        match baton_mcp::config::parse(&path, &source.text) {
            Ok(servers) => Ok(servers.into_keys().collect()),
            Err(error) => Err(Box::new(invalid_mcp(&source, &error.to_string()))),
        }
    }

    /// The configured main agent, if one is named and the draft has it.
    pub fn main<'a>(&'a self, draft: &RosterDraft) -> Option<&'a AgentName> {
        self.config.agents.main.agent().filter(|main| draft.agent(main).is_some())
    }
}

/// The first of an agent's models whose price is not known. One that is not configured stands for the default model.
fn first_unpriced(models: &ModelsConfig, names: &[ModelName]) -> Option<String> {
    let default = std::slice::from_ref(&models.default);
    let names = if names.is_empty() { default } else { names };
    names.iter().map(|name| resolve(models, name)).find_map(|name| match name {
        ModelName::Provider { provider, model } => {
            let table = models.providers.get(provider).cloned().unwrap_or_default();
            let (base_url, settings) = (table.base_url.as_deref(), table.settings());
            let price = baton_models::facts(provider, base_url, &settings, model).price;
            price.is_none().then(|| name.to_string())
        }
        // The offline model, which costs nothing.
        ModelName::Alias(_) => None,
    })
}

fn resolve<'a>(models: &'a ModelsConfig, name: &'a ModelName) -> &'a ModelName {
    match name {
        ModelName::Alias(alias) if alias == "offline" => name,
        ModelName::Alias(alias) => models.aliases.get(alias).unwrap_or(&models.default),
        ModelName::Provider { .. } => name,
    }
}

/// `./agents` is written `agents`.
fn join(root: &Path, dir: &Path) -> PathBuf {
    if root == Path::new("") || root == Path::new(".") { dir.to_owned() } else { root.join(dir) }
}

/// The file holds secrets of servers, so neither its lines nor values in the message are repeated.
fn invalid_mcp(source: &std::sync::Arc<SourceFile>, error: &str) -> Diagnostic {
    let text = source.text.strip_prefix('\u{feff}').unwrap_or(&source.text);
    let bom = source.text.len() - text.len();
    let at = serde_json::from_str::<serde::de::IgnoredAny>(text).err().map_or(0, |error| {
        let line_start = source.line_start(error.line());
        // Columns of the parser count bytes, from 1, and the first line starts behind the mark.
        let bom = if error.line() == 1 { bom } else { 0 };
        line_start + bom + error.column().saturating_sub(1)
    });
    let location = secrets::masked_lines(source).locate(Span::new(at, at));
    let quoted = error.split('"').step_by(2).collect::<Vec<_>>().join("\"…\"");
    Diagnostic::new(Rule::InvalidMcp, location, quoted, "correct it; until then none of its servers is known")
}

/// The topmost folder around a file that is called as agent folders are, or else the folder itself. Looking up ends
/// with the repository.
fn roster_around(folder: &Path, names: &[&OsStr]) -> PathBuf {
    let mut found = None;
    for candidate in upwards(folder) {
        let Ok(real) = (if candidate == Path::new("") { Path::new(".") } else { &candidate }).canonicalize()
        else {
            break;
        };
        if real.file_name().is_some_and(|name| names.contains(&name)) {
            found = Some(candidate);
        }
        if real.join(".git").exists() {
            break;
        }
    }
    found.unwrap_or_else(|| folder.to_owned())
}

pub fn is_inside(path: &Path, folder: &Path) -> bool {
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => false,
    }
}

/// Folders below `path` that are projects of their own because they hold a `baton.toml`.
pub fn nested(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(dir) = open.pop() {
        if dir.join(FILE_NAME).is_file() {
            found.push(dir);
            continue;
        }
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        let visible = |entry: &std::fs::DirEntry| {
            let name = entry.file_name();
            !name.to_string_lossy().starts_with('.') && name != "node_modules" && name != "target"
        };
        let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        open.extend(folders.filter(visible).map(|entry| entry.path()));
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(toml: &str) -> Project {
        let config = Config::parse(toml, Path::new(FILE_NAME), std::iter::empty()).unwrap();
        Project { root: PathBuf::new(), file: None, config, dirs: Vec::new() }
    }

    #[test]
    fn every_provider_with_a_known_address_is_known() {
        let known = project("[models.providers.acme]\nbase_url = \"http://127.0.0.1:1\"\n").known();
        for provider in ["mistral", "google", "acme"] {
            assert!(known.providers.contains(provider), "{provider}");
        }
    }

    #[test]
    fn configured_prices_count() {
        let text = "[models]\ndefault = \"local/m\"\n[models.providers.local.models.m]\nprice = { input = 0, output = 0 }\n";
        assert_eq!(first_unpriced(&project(text).config.models, &[]), None);
        let other = [ModelName::parse("local/other").unwrap()];
        assert_eq!(first_unpriced(&project(text).config.models, &other).as_deref(), Some("local/other"));
    }

    #[test]
    fn prices_are_looked_up_behind_aliases_and_the_default() {
        let models = |text: &str| -> Vec<ModelName> {
            text.split_whitespace().map(|name| ModelName::parse(name).unwrap()).collect()
        };
        let project = project("[models]\ndefault = \"openai/odd\"\naliases = { cheap = \"ollama/small\" }\n");
        let unpriced = |text: &str| first_unpriced(&project.config.models, &models(text));
        for priced in ["openai/gpt-5", "cheap", "offline", "ollama/other cheap"] {
            assert_eq!(unpriced(priced), None, "{priced}");
        }
        for missing in ["", "nowhere", "default", "cheap openai/odd"] {
            assert_eq!(unpriced(missing).as_deref(), Some("openai/odd"), "{missing}");
        }
    }
}
