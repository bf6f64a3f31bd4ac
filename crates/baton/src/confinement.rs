//! What tools may use of this machine: the workspaces of threads, and the sandbox of programs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::Context as _;
use baton_core::Store;
use baton_core::agent::McpServer;
use baton_mcp::{McpSandbox, Servers};
use baton_sandbox::{Isolation, Launcher, SYSTEM_PATHS};
use baton_tools::process::ProcessSandbox;
use baton_tools::workspaces::ThreadWorkspaces;

use crate::config::{AuthMode, SandboxMode};
use crate::exit::Exit;
use crate::project::Project;
use crate::wiring::root;

/// How often workspaces are looked for whose threads do not exist any more.
const SWEEP_INTERVAL: Duration = Duration::from_mins(10);

/// One for the process: it tries once how programs can be confined.
static LAUNCHER: LazyLock<Arc<Launcher>> = LazyLock::new(|| Arc::new(Launcher::current()));

/// The workspaces of threads. A project with `auth.mode = "open"` has none: its tools use the folder of the project.
pub(crate) fn workspaces(project: &Project) -> Option<ThreadWorkspaces> {
    (project.config.auth.mode == AuthMode::Required).then(|| ThreadWorkspaces::new(data(project)))
}

fn data(project: &Project) -> PathBuf {
    root(project).join(&project.config.store.data)
}

/// The server's own files, which no tool reads or writes: the configuration, the agents, the database, the data folder, the TLS
/// key and certificate.
pub(crate) fn server_files(project: &Project) -> Vec<PathBuf> {
    let root = root(project);
    let store = baton_store::files(&project.config.store.url, &root);
    let config = project.file.iter().cloned().chain([root.join(".mcp.json"), data(project)]);
    let tls = project.config.server.tls.iter().flat_map(|tls| [root.join(&tls.key), root.join(&tls.cert)]);
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let of_tenants =
        project.config.tenants.values().flat_map(|own| &own.agent_dirs).map(|dir| root.join(dir));
    let store = store.into_iter().chain(of_tenants);
    project.dirs.iter().cloned().chain(store).chain(config).chain(tls).map(absolute).collect()
}

/// The same with secrets that lie beside them, for programs, which know no rule for hidden files.
fn hidden_files(project: &Project) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root(project)).into_iter().flatten().flatten();
    let secrets = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b".env"));
    server_files(project).into_iter().chain(secrets.map(|entry| entry.path())).collect()
}

/// The sandbox of `shell` and `python`; `None` if it is switched off.
pub(crate) fn process_sandbox(project: &Project) -> Option<ProcessSandbox> {
    let shell = &project.config.tools.shell;
    (shell.sandbox == SandboxMode::On).then(|| ProcessSandbox {
        launcher: Arc::clone(&LAUNCHER),
        network: shell.network,
        read_only: shell.read.iter().map(|path| root(project).join(path)).collect(),
        hidden: hidden_files(project),
        limits: project.config.sandbox.limits(),
    })
}

/// The sandbox of MCP servers; `None` if it is switched off, as it is by default where everybody is the operator.
pub(crate) fn mcp_sandbox(project: &Project) -> Option<McpSandbox> {
    let is_required = project.config.auth.mode == AuthMode::Required;
    let mode = project.config.mcp.sandbox;
    let is_on = mode.map_or(is_required, |mode| mode == SandboxMode::On);
    is_on.then(|| McpSandbox {
        launcher: Arc::clone(&LAUNCHER),
        project: root(project),
        hidden: hidden_files(project),
        limits: project.config.sandbox.limits(),
    })
}

/// Refuses to start a server that cannot confine what it is configured to start. Blocks.
pub(crate) fn check(project: &Project, servers: &Servers) -> anyhow::Result<()> {
    let tools = &project.config.tools;
    let shell = (tools.shell.enabled || tools.python.enabled) && process_sandbox(project).is_some();
    let is_process = |server: &McpServer| matches!(server, McpServer::Stdio { .. });
    let has_processes = servers.configured().any(is_process);
    let mcp = has_processes && mcp_sandbox(project).is_some();
    let section = match (shell, mcp) {
        (true, _) => "tools.shell",
        (false, true) => "mcp",
        (false, false) => return Ok(()),
    };
    check_exposed(project, servers)?;
    let explained = || {
        format!(
            "programs of `[{section}]` cannot be confined; `sandbox = \"off\"` there starts them with all rights of the server"
        )
    };
    let isolation = LAUNCHER.isolation().with_context(explained);
    if isolation.map_err(|error| Exit::Invalid.because(error))? == Isolation::Landlock {
        tracing::warn!(
            "user namespaces are not available: programs are confined by Landlock alone, without limits of total memory, disk \
             space and time"
        );
    }
    Ok(())
}

/// Refuses files of the server where programs in a sandbox can read them.
fn check_exposed(project: &Project, servers: &Servers) -> anyhow::Result<()> {
    let project_folder = real(&root(project));
    let has_workspaces = workspaces(project).is_some();
    let certificate = project.config.server.tls.as_ref().map(|tls| real(&root(project).join(&tls.cert)));
    // Those in the folder of the project are covered by the sandbox if that is the work folder. A certificate is no secret.
    let is_secret = |file: &PathBuf| {
        (has_workspaces || !file.starts_with(&project_folder)) && Some(file) != certificate.as_ref()
    };
    let files: Vec<PathBuf> = hidden_files(project).iter().map(|file| real(file)).filter(is_secret).collect();
    let shell = project.config.tools.shell.read.iter().map(|path| root(project).join(path));
    let mcp = servers.configured().flat_map(|server| match server {
        McpServer::Stdio { access, .. } => access.read.iter().map(PathBuf::from).collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let system = SYSTEM_PATHS.iter().map(PathBuf::from);
    for place in system.chain(shell).chain(mcp) {
        let inside = real(&place);
        if let Some(file) = files.iter().find(|file| file.starts_with(&inside)) {
            let reason = anyhow::anyhow!(
                "programs in the sandbox can read {}, and so {}; move this file of the server elsewhere, or remove the path from \
                 `read`",
                place.display(),
                file.display()
            );
            return Err(Exit::Invalid.because(reason));
        }
    }
    Ok(())
}

/// Without links. The last name need not exist.
fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let parent = || Some(absolute.parent()?.canonicalize().ok()?.join(absolute.file_name()?));
    absolute.canonicalize().ok().or_else(parent).unwrap_or_else(|| absolute.clone())
}

/// Deletes workspaces whose threads do not exist, which a crash or another process has left.
pub(crate) async fn sweep(workspaces: &ThreadWorkspaces, store: &dyn Store) {
    match workspaces.sweep(store).await {
        Ok(0) => {}
        Ok(deleted) => tracing::info!(deleted, "workspaces of deleted threads were deleted"),
        Err(error) => tracing::warn!(%error, "cannot look for workspaces of deleted threads"),
    }
}

/// The same now and then. Never returns.
pub(crate) async fn keep_sweeping(workspaces: ThreadWorkspaces, store: Arc<dyn Store>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        sweep(&workspaces, &*store).await;
    }
}
