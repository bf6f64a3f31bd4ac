//! A folder with agents and its configuration.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use baton_agents::{Draft, Known};
use baton_core::AgentName;

use crate::config::{Config, ConfigError, FILE_NAME};

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
        let file = config_file.map(Path::to_owned).or_else(|| Config::find(start));
        let config = Config::load(file.as_deref())?;
        let root = file.as_deref().and_then(Path::parent).unwrap_or(start).to_owned();
        let configured = config.agents.dirs.iter().map(|dir| join(&root, dir));
        let dirs = if dirs.is_empty() { configured.collect() } else { dirs.to_vec() };
        Ok(Self { root, file, config, dirs })
    }

    /// Reads all agents, good or bad.
    pub fn draft(&self) -> Draft {
        Draft::read(&self.dirs, &self.known())
    }

    /// What agent files may refer to besides each other.
    pub fn known(&self) -> Known {
        let mut known = Known::default();
        known.model_aliases.extend(self.config.models.aliases.keys().cloned());
        known.providers.extend(self.config.models.providers.keys().cloned());
        known.mcp_servers = self.config.mcp.servers.keys().cloned().collect();
        known.mcp_servers.extend(mcp_json_servers(&self.root.join(".mcp.json")));
        known
    }

    /// The configured main agent, if the draft has it.
    pub fn main<'a>(&'a self, draft: &Draft) -> Option<&'a AgentName> {
        Some(&self.config.agents.main).filter(|main| draft.agent(main).is_some())
    }
}

/// `./agents` is written `agents`.
fn join(root: &Path, dir: &Path) -> PathBuf {
    if root == Path::new("") || root == Path::new(".") { dir.to_owned() } else { root.join(dir) }
}

/// Names of the servers in a `.mcp.json`. A missing or broken file knows none; starting a server reports why.
fn mcp_json_servers(path: &Path) -> BTreeSet<String> {
    let json = std::fs::read_to_string(path)
        .ok()
        .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    let servers =
        json.as_ref().and_then(|json| json.get("mcpServers")).and_then(serde_json::Value::as_object);
    servers.map(|servers| servers.keys().cloned().collect()).unwrap_or_default()
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
