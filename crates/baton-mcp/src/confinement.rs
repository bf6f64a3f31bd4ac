//! Where the process of a server runs: in its sandbox, or with all rights of Baton.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use baton_core::agent::StdioAccess;
use baton_sandbox::{Launcher, Limits, Sandbox};
use indexmap::IndexMap;

use crate::servers::McpSettings;
use crate::variables::Environment;

/// What a server inherits. Everything else, API keys of models above all, it gets only by `env`.
const INHERITED: &[&str] = &[
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    // Without these nothing starts on Windows.
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];
/// What names folders and programs of Baton's user, which a sandbox does not have.
const OUTSIDE_SANDBOX: &[&str] = &["HOME", "TMPDIR", "SHELL"];

/// How processes of servers are confined.
#[derive(Debug, Clone)]
pub struct McpSandbox {
    pub launcher: Arc<Launcher>,
    /// The folder of servers that have no workspace: the project.
    pub project: PathBuf,
    /// Files of Baton that servers do not see where they are in that folder.
    pub hidden: Vec<PathBuf>,
    pub limits: Limits,
}

/// The command of a server without its arguments. The error is a text for people.
pub(crate) async fn program(
    command: &str,
    env: &IndexMap<String, String>,
    access: &StdioAccess,
    settings: &McpSettings,
    workspace: Option<&Path>,
) -> Result<Command, String> {
    let (command, env, access) = (command.to_owned(), env.clone(), access.clone());
    let environment = settings.environment.clone();
    let (sandbox, workspace) = (settings.sandbox.clone(), workspace.map(Path::to_owned));
    let made = tokio::task::spawn_blocking(move || {
        if let Some(workspace) = &workspace {
            create_private(workspace).map_err(|error| format!("its workspace: {error}"))?;
        }
        match sandbox {
            Some(sandbox) => {
                let root = workspace.unwrap_or_else(|| sandbox.project.clone()).canonicalize();
                let root = root.map_err(|error| format!("its folder: {error}"))?;
                let variables = variables(&env, &environment, Some(&root));
                confined(&command, &variables, &access, &sandbox, root)
            }
            None => Ok(unconfined(&command, variables(&env, &environment, None), workspace.as_deref())),
        }
    });
    made.await.map_err(|error| error.to_string())?
}

/// The variables of a server. A confined one has a home folder of its own, because it does not see that of Baton's user.
fn variables(
    env: &IndexMap<String, String>,
    environment: &Environment,
    home: Option<&Path>,
) -> Vec<(String, String)> {
    let is_elsewhere = |name: &str| home.is_some() && OUTSIDE_SANDBOX.contains(&name);
    let inherited = INHERITED.iter().copied().filter(|name| !is_elsewhere(name));
    let inherited = inherited.filter_map(|name| Some((name.to_owned(), environment.get(name)?)));
    let home = home.map(|home| ("HOME".to_owned(), home.to_string_lossy().into_owned()));
    let own = env.iter().map(|(name, value)| (name.clone(), value.clone()));
    inherited.chain(home).chain(own).collect()
}

fn unconfined(command: &str, variables: Vec<(String, String)>, workspace: Option<&Path>) -> Command {
    let mut command = Command::new(command);
    command.env_clear().envs(variables);
    if let Some(workspace) = workspace {
        command.current_dir(workspace);
    }
    command
}

/// Blocks: the first call finds out how to confine processes.
fn confined(
    command: &str,
    variables: &[(String, String)],
    access: &StdioAccess,
    settings: &McpSandbox,
    root: PathBuf,
) -> Result<Command, String> {
    // A program that is named by its path is readable, but not what is beside it.
    let named = Path::new(command).is_absolute().then_some(command);
    let read = access.read.iter().map(String::as_str).chain(named);
    let hidden = settings
        .hidden
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| path.starts_with(&root));
    let sandbox = Sandbox {
        read_only: read.map(PathBuf::from).collect(),
        hidden: hidden.collect(),
        network: access.network,
        ..Sandbox::new(root, settings.limits)
    };
    sandbox.command(&settings.launcher, command, variables).map_err(|error| {
        format!("{error}; `sandbox = \"off\"` in `[mcp]` of baton.toml starts it with all rights of Baton")
    })
}

/// A folder that only Baton's user can enter.
fn create_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}
