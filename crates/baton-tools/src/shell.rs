//! `shell`: one command in the work folder, in a sandbox.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, Tool, ToolError, ToolSpec};
use baton_sandbox::{Launcher, Limits, Sandbox};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

mod group;
mod output;

use group::ProcessGroup;
use output::{ShellOutput, ShellPipes};

use crate::offload::offload;
use crate::schema::{arguments, object};
use crate::work_dir::{WorkDir, create_private};
use crate::workspaces::size_of;

/// How long output is waited for after the command ended. It is there already, unless a process that left the group
/// still holds the pipe.
const GRACE: Duration = Duration::from_secs(2);

/// What a command sees of the server's environment, beside what is configured.
pub const ENVIRONMENT: &[&str] = &["PATH", "HOME", "LANG"];

/// How commands run. The tool exists only where an operator asked for it.
#[derive(Debug, Clone)]
pub struct ShellSettings {
    /// Further names of environment variables that commands may see.
    pub environment: Vec<String>,
    pub timeout: HumanDuration,
    /// `None` runs commands with all rights of the server.
    pub sandbox: Option<ShellSandbox>,
}

impl Default for ShellSettings {
    fn default() -> Self {
        Self { environment: Vec::new(), timeout: HumanDuration::from_mins(2), sandbox: None }
    }
}

/// What commands may use, beside the work folder and the files of the system.
#[derive(Debug, Clone)]
pub struct ShellSandbox {
    pub launcher: Arc<Launcher>,
    pub network: bool,
    /// Files and folders that commands can read and execute.
    pub read_only: Vec<PathBuf>,
    /// Files of the server that commands do not see where they are in the work folder.
    pub hidden: Vec<PathBuf>,
    pub limits: Limits,
}

#[derive(Debug)]
pub struct Shell {
    spec: ToolSpec,
    settings: Arc<ShellSettings>,
}

#[derive(Debug, Deserialize)]
struct ShellArguments {
    command: String,
}

impl Shell {
    pub fn new(settings: ShellSettings) -> Self {
        let spec = ToolSpec {
            name: "shell".to_owned(),
            description: format!(
                "Runs a command with `sh -c` in the work folder and returns its exit code and output, stdout and stderr in \
                 the order they came. There is no input and no terminal. Commands end after {}, and everything they left \
                 in the background ends with them.",
                settings.timeout
            ),
            parameters: object(
                json!({
                    "command": {"type": "string", "minLength": 1, "description": "The command, as for `sh -c`"},
                }),
                &["command"],
            ),
            effect: Effect::Writes,
            risk: Risk::High,
            // Longer than the limit inside, so that the limit inside is the one that is met.
            timeout: HumanDuration::from_secs(
                settings.timeout.get().as_secs().saturating_add(5 + GRACE.as_secs()),
            ),
        };
        Self { spec, settings: Arc::new(settings) }
    }
}

impl Tool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_untrusted(&self) -> bool {
        true
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let settings = self.settings.clone();
        Box::pin(async move {
            let ShellArguments { command } = arguments(input)?;
            let limit = settings.timeout;
            let done = tokio::time::timeout(limit.get(), run(&command, &settings, &context)).await;
            Ok(done.map_err(|_| ToolError::Timeout(limit))??.into())
        })
    }
}

/// Dropping the future ends the whole group.
async fn run(
    command: &str,
    settings: &ShellSettings,
    context: &Arc<CallContext>,
) -> Result<String, ToolError> {
    let failed = |error: std::io::Error| ToolError::Execution(format!("the command could not run: {error}"));
    // Declared before the child, so that it is dropped after all processes were ended.
    let mut absent = AbsentConfiguration::of(settings, context);
    let mut child = prepare(command, settings, context).await?.spawn().map_err(failed)?;
    // Declared after the child and so dropped before it: the leader's id is not free for others until it is reaped.
    let group = ProcessGroup::led_by(&child);
    let mut pipes = ShellPipes::of(&mut child);
    let mut output = ShellOutput::default();
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.map_err(failed)?,
            () = pipes.read(&mut output), if pipes.is_open() => {}
        }
    };
    // What the command left in the background ends here.
    drop(group);
    let refused = absent.rename_created();
    let rest = async {
        while pipes.is_open() {
            pipes.read(&mut output).await;
        }
    };
    let _ = tokio::time::timeout(GRACE, rest).await;
    let mut shown = output.shown(status);
    for path in refused {
        shown.push_str(&format!("\n\nNote: {path} would configure the server; the file that the command made was renamed to {path}{REFUSED}."));
    }
    Ok(shown)
}

/// Files that configure a server in the folder of its project, and that the next start would use.
const CONFIGURATION: [&str; 2] = [".mcp.json", "baton.toml"];
/// Added to the name of such a file if a command has created it.
const REFUSED: &str = ".refused";

/// Configuration that does not exist, so that the sandbox cannot hide it. RAII guard: what is there on drop was created by the command,
/// and is renamed.
struct AbsentConfiguration(Vec<PathBuf>);

impl AbsentConfiguration {
    /// A thread's workspace has no configuration, and without a sandbox the operator trusts commands.
    fn of(settings: &ShellSettings, context: &CallContext) -> Self {
        if settings.sandbox.is_none() || context.workspace().is_some() {
            return Self(Vec::new());
        }
        let paths = CONFIGURATION.iter().map(|name| context.work_dir.join(name));
        Self(paths.filter(|path| path.symlink_metadata().is_err()).collect())
    }

    /// Renames what the command has created, and returns the names.
    fn rename_created(&mut self) -> Vec<String> {
        let mut renamed = Vec::new();
        for path in std::mem::take(&mut self.0) {
            if path.symlink_metadata().is_err() {
                continue;
            }
            let mut aside = path.clone().into_os_string();
            aside.push(REFUSED);
            if let Err(error) = std::fs::rename(&path, &aside) {
                tracing::warn!(path = %path.display(), %error, "a command has created configuration of the server");
                continue;
            }
            renamed.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        renamed
    }
}

impl Drop for AbsentConfiguration {
    fn drop(&mut self) {
        self.rename_created();
    }
}

async fn prepare(
    command: &str,
    settings: &ShellSettings,
    context: &Arc<CallContext>,
) -> Result<Command, ToolError> {
    let environment = environment(settings, context);
    // A sub-agent's commands begin in its folder. The sandbox is the one of the thread.
    let command = match subfolder(context).await? {
        Some(folder) => format!("cd -- {} || exit\n{command}", quoted(&folder)),
        None => command.to_owned(),
    };
    let mut sh = match &settings.sandbox {
        Some(sandbox) => {
            let (sandbox, timeout, context) = (sandbox.clone(), settings.timeout, Arc::clone(context));
            Command::from(offload(move |_| confined(&sandbox, timeout, &environment, &context)).await?)
        }
        None => {
            let work_dir = work_folder(context)?;
            let mut sh = Command::new("sh");
            sh.current_dir(work_dir).env_clear().envs(environment);
            sh
        }
    };
    sh.arg("-c").arg(command);
    sh.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    sh.process_group(0).kill_on_drop(true);
    Ok(sh)
}

/// The variables of a command.
fn environment(settings: &ShellSettings, context: &CallContext) -> Vec<(String, String)> {
    let names = ENVIRONMENT.iter().copied().chain(settings.environment.iter().map(String::as_str));
    let value = |name: &str| match &settings.sandbox {
        // The home folder of the server's user is not in the sandbox.
        Some(_) if name == "HOME" => Some(context.work_dir.as_os_str().to_owned()),
        _ => std::env::var_os(name),
    };
    names.filter_map(|name| Some((name.to_owned(), value(name)?.to_string_lossy().into_owned()))).collect()
}

/// The work folder without links. The workspace of a thread is created if it does not exist.
fn work_folder(context: &CallContext) -> Result<PathBuf, ToolError> {
    let failed = |error: std::io::Error| ToolError::Execution(format!("the work folder: {error}"));
    if let Some(workspace) = context.workspace() {
        create_private(workspace).map_err(failed)?;
    }
    context.work_dir.canonicalize().map_err(failed)
}

/// The folder of a sub-agent's files, created if it does not exist.
async fn subfolder(context: &Arc<CallContext>) -> Result<Option<PathBuf>, ToolError> {
    if context.subfolder.is_none() {
        return Ok(None);
    }
    let context = Arc::clone(context);
    offload(move |_| Ok(Some(WorkDir::of(&context, &[])?.real_path().to_owned()))).await
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// `sh` in a sandbox. Blocks: the first call finds out how to confine it.
fn confined(
    settings: &ShellSandbox,
    timeout: HumanDuration,
    environment: &[(String, String)],
    context: &CallContext,
) -> Result<std::process::Command, ToolError> {
    let root = work_folder(context)?;
    let hidden: Vec<PathBuf> = settings.hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
    // The workspace of a thread is inside the data folder, but no file of the server is in it.
    let is_own = context.workspace().is_some();
    if let Some(around) = hidden.iter().find(|path| !is_own && root.starts_with(path)) {
        let reason = format!("the work folder is inside {}, which commands must not see", around.display());
        return Err(ToolError::NotPermitted(reason));
    }
    // A command may delete files when the storage is full, but not add to them.
    let disk_bytes = match context.storage_left {
        Some(left) => settings.limits.disk_bytes.min(size_of(&root).saturating_add(left)),
        None => settings.limits.disk_bytes,
    };
    let limits =
        Limits { cpu: Some(timeout.get()), wall: Some(timeout.get() + GRACE), disk_bytes, ..settings.limits };
    let sandbox = Sandbox {
        hidden: hidden.into_iter().filter(|path| path.starts_with(&root) && *path != root).collect(),
        read_only: settings.read_only.clone(),
        network: settings.network,
        ..Sandbox::new(root, limits)
    };
    let sh = sandbox.command(&settings.launcher, "sh", environment);
    sh.map_err(|error| ToolError::NotPermitted(error.to_string()))
}
