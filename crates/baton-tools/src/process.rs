//! One program in the work folder, in a sandbox: what [`crate::shell`] and [`crate::python`] have in common.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use baton_core::{CallContext, HumanDuration, ToolError, ToolOutput};
use baton_sandbox::{Launcher, Limits, Sandbox};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStdin, Command};

pub(crate) mod attachments;
mod configuration;
mod group;
mod output;

use attachments::Attachments;
use configuration::AbsentConfiguration;
use group::ProcessGroup;
use output::{ProcessOutput, ProcessPipes};

use crate::offload::offload;
use crate::work_dir::{WorkDir, create_private};
use crate::workspaces::size_of;

/// How long output is waited for after the program ended. It is there already, unless a process that left the group
/// still holds the pipe.
const GRACE: Duration = Duration::from_secs(2);

/// What a program sees of the server's environment, beside what is configured.
pub const ENVIRONMENT: &[&str] = &["PATH", "HOME", "LANG"];

/// How programs run. Tools that run them exist only where an operator asked for them.
#[derive(Debug, Clone)]
pub struct ProcessSettings {
    /// Further names of environment variables that programs may see.
    pub environment: Vec<String>,
    pub timeout: HumanDuration,
    /// `None` runs programs with all rights of the server.
    pub sandbox: Option<ProcessSandbox>,
}

impl Default for ProcessSettings {
    fn default() -> Self {
        Self { environment: Vec::new(), timeout: HumanDuration::from_mins(2), sandbox: None }
    }
}

impl ProcessSettings {
    /// The timeout of a tool that runs one program: longer than the limit inside, so that the limit inside is the one that is met.
    pub(crate) fn tool_timeout(&self) -> HumanDuration {
        HumanDuration::from_secs(self.timeout.get().as_secs().saturating_add(5 + GRACE.as_secs()))
    }
}

/// What programs may use, beside the work folder and the files of the system.
#[derive(Debug, Clone)]
pub struct ProcessSandbox {
    pub launcher: Arc<Launcher>,
    pub network: bool,
    /// Files and folders that programs can read and execute.
    pub read_only: Vec<PathBuf>,
    /// Files of the server that programs do not see where they are in the work folder.
    pub hidden: Vec<PathBuf>,
    pub limits: Limits,
}

/// A program with its arguments and its standard input, which is empty without `input`.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: String,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) input: Option<Vec<u8>>,
}

/// Runs a program within the time limit and returns its exit code, its output and the files that it attached. Dropping the future ends
/// the whole group.
pub(crate) async fn run(
    program: Program,
    settings: &ProcessSettings,
    context: &Arc<CallContext>,
) -> Result<ToolOutput, ToolError> {
    let limit = settings.timeout;
    let ended = tokio::time::timeout(limit.get(), run_to_end(program, settings, context)).await;
    ended.map_err(|_| ToolError::Timeout(limit))?
}

async fn run_to_end(
    mut program: Program,
    settings: &ProcessSettings,
    context: &Arc<CallContext>,
) -> Result<ToolOutput, ToolError> {
    let failed = |error: std::io::Error| ToolError::Execution(format!("the command could not run: {error}"));
    let attachments = Attachments::before(settings, context).await?;
    // Declared before the child, so that it is dropped after all processes were ended.
    let mut absent = AbsentConfiguration::of(settings, context);
    let input = program.input.take();
    let mut command = prepare(program, settings, context).await?;
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn().map_err(failed)?;
    // Declared after the child and so dropped before it: the leader's id is not free for others until it is reaped.
    let group = ProcessGroup::led_by(&child);
    let mut pipes = ProcessPipes::of(&mut child);
    let mut output = ProcessOutput::default();
    let writing = write(child.stdin.take(), input.unwrap_or_default());
    tokio::pin!(writing);
    let mut is_written = false;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.map_err(failed)?,
            () = pipes.read(&mut output), if pipes.is_open() => {}
            () = &mut writing, if !is_written => is_written = true,
        }
    };
    // What the program left in the background ends here.
    drop(group);
    let notes = absent.refuse_created();
    let rest = async {
        while pipes.is_open() {
            pipes.read(&mut output).await;
        }
    };
    let _ = tokio::time::timeout(GRACE, rest).await;
    let (files, note) = attachments.after().await?;
    Ok(ToolOutput { files, ..ToolOutput::from(output.shown(status) + &notes.concat() + &note) })
}

/// Writes the input and closes the pipe. A program that does not read all of it is not an error.
async fn write(stdin: Option<ChildStdin>, input: Vec<u8>) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(&input).await;
    }
}

async fn prepare(
    program: Program,
    settings: &ProcessSettings,
    context: &Arc<CallContext>,
) -> Result<Command, ToolError> {
    let environment = environment(settings, context);
    let program = in_subfolder(program, context).await?;
    let mut command = match &settings.sandbox {
        Some(sandbox) => {
            let (sandbox, timeout, context) = (sandbox.clone(), settings.timeout, Arc::clone(context));
            let path = program.path.clone();
            let made = offload(move |_| confined(&path, &sandbox, timeout, &environment, &context));
            Command::from(made.await?)
        }
        None => {
            let work_dir = work_folder(context)?;
            let mut command = Command::new(&program.path);
            command.current_dir(work_dir).env_clear().envs(environment);
            command
        }
    };
    command.args(&program.arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    Ok(command)
}

/// A sub-agent's programs begin in its folder, which is created if it does not exist. The sandbox is the one of the thread.
async fn in_subfolder(program: Program, context: &Arc<CallContext>) -> Result<Program, ToolError> {
    if context.subfolder.is_none() {
        return Ok(program);
    }
    let context = Arc::clone(context);
    let folder = offload(move |_| Ok(WorkDir::of(&context, &[])?.real_path().to_owned())).await?;
    let Program { path, arguments, input } = program;
    let enter = ["-c".into(), "cd -- \"$0\" && exec \"$@\"".into(), folder.into_os_string(), path.into()];
    let arguments = enter.into_iter().chain(arguments).collect();
    Ok(Program { path: "sh".to_owned(), arguments, input })
}

/// The variables of a program.
fn environment(settings: &ProcessSettings, context: &CallContext) -> Vec<(String, String)> {
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

/// The program in a sandbox. Blocks: the first call finds out how to confine it.
fn confined(
    path: &str,
    settings: &ProcessSandbox,
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
    // A program may delete files when the storage is full, but not add to them.
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
    let command = sandbox.command(&settings.launcher, path, environment);
    command.map_err(|error| ToolError::NotPermitted(error.to_string()))
}
