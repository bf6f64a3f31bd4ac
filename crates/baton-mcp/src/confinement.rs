//! Where the process of a server runs: in its sandbox, or with all rights of Baton.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use baton_core::agent::StdioAccess;
use baton_sandbox::{Launcher, Limits, Sandbox};

use crate::servers::McpSettings;

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

/// The command of a server without its arguments and its environment.
pub(crate) struct ServerProgram {
    pub command: Command,
    /// The home folder of a confined process, because it does not see that of Baton's user.
    pub home: Option<PathBuf>,
}

/// The error is a text for people.
pub(crate) async fn program(
    command: &str,
    access: &StdioAccess,
    settings: &McpSettings,
    workspace: Option<&Path>,
) -> Result<ServerProgram, String> {
    let (command, access) = (command.to_owned(), access.clone());
    let (sandbox, workspace) = (settings.sandbox.clone(), workspace.map(Path::to_owned));
    let made = tokio::task::spawn_blocking(move || {
        if let Some(workspace) = &workspace {
            create_private(workspace).map_err(|error| format!("its workspace: {error}"))?;
        }
        match sandbox {
            Some(sandbox) => confined(&command, &access, &sandbox, workspace.as_deref()),
            None => Ok(unconfined(&command, workspace.as_deref())),
        }
    });
    made.await.map_err(|error| error.to_string())?
}

fn unconfined(command: &str, workspace: Option<&Path>) -> ServerProgram {
    let mut command = Command::new(command);
    command.env_clear();
    if let Some(workspace) = workspace {
        command.current_dir(workspace);
    }
    ServerProgram { command, home: None }
}

/// Blocks: the first call finds out how to confine processes.
fn confined(
    command: &str,
    access: &StdioAccess,
    settings: &McpSandbox,
    workspace: Option<&Path>,
) -> Result<ServerProgram, String> {
    let root = workspace.unwrap_or(&settings.project).canonicalize();
    let root = root.map_err(|error| format!("its folder: {error}"))?;
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
        ..Sandbox::new(root.clone(), settings.limits)
    };
    let command = sandbox.command(&settings.launcher, command).map_err(|error| {
        format!("{error}; `sandbox = \"off\"` in `[mcp]` of baton.toml starts it with all rights of Baton")
    })?;
    Ok(ServerProgram { command, home: Some(root) })
}

/// A folder that only Baton's user can enter.
fn create_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}
