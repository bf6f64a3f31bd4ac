//! Confines a program that Baton starts: `shell` commands and MCP servers.
//!
//! A [`Sandbox`] says what a program may use, [`Sandbox::command`] makes the command that starts it. The command does not run
//! the program directly, but a [`Launcher`]: another process of Baton's own binary, which confines itself and then executes the
//! program. `main` of the binary calls [`launch_if_requested`] before anything else.
//!
//! ```no_run
//! # use baton_sandbox::{Launcher, Limits, Sandbox};
//! let launcher = Launcher::current();
//! let sandbox = Sandbox::new("/srv/data/thread", Limits::default());
//! let output = sandbox.command(&launcher, "sh", &[])?.args(["-c", "ls -l"]).output();
//! # Ok::<(), baton_sandbox::Unavailable>(())
//! ```
//!
//! In reading order, below `linux`:
//!
//! 1. `launch`: the launcher. It enters new namespaces and starts `init` there, or only restricts itself.
//! 2. `filesystem`: the files that the program sees, as mounts.
//! 3. `init`: process 1 of the sandbox. It starts the program, and ends everything when a limit is exceeded (`watch`).
//! 4. `restrict`: capabilities, Landlock, resource limits; `syscalls`: the seccomp filter.
//!
//! [`Isolation`] says which of these hold on this machine. Other systems than Linux have no sandbox.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::SYSTEM_PATHS;
/// There is no sandbox.
#[cfg(not(target_os = "linux"))]
pub const SYSTEM_PATHS: &[&str] = &[];

/// First argument of a launcher process.
const MARKER: &str = "__sandbox";
/// First argument of process 1 of a sandbox.
#[cfg(target_os = "linux")]
const INIT_MARKER: &str = "__sandbox-init";
/// The only variable of a launcher that comes from outside: those of the program, as JSON. Set as they are, some of them, such as
/// `LD_PRELOAD`, would run code in the launcher, which is not confined yet.
const ENVIRONMENT: &str = "BATON_SANDBOX_ENV";
/// Keeps the allocator of the launcher from committing 1 GiB at its start: this counts towards the limit of memory, and process
/// 1 of a sandbox could not start the program.
const ALLOCATOR: (&str, &str) = ("MIMALLOC_ARENA_EAGER_COMMIT", "0");
/// Exit code of a launcher that could not start the program.
#[cfg(target_os = "linux")]
const NOT_STARTED: i32 = 125;

/// What a program may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// The folder that the program starts in, and the only one that it can write to apart from a private `/tmp`. An absolute
    /// path without links; the program sees it under the same path.
    pub root: PathBuf,
    /// Further files and folders that it can read and execute, beside those of the system.
    pub read_only: Vec<PathBuf>,
    /// Files and folders below `root` that it cannot see. They need [`Isolation::Namespaces`].
    pub hidden: Vec<PathBuf>,
    /// Whether it can use the network of this machine, loopback included.
    pub network: bool,
    pub limits: Limits,
}

/// What a program may consume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Of each process and, with [`Isolation::Namespaces`], of all processes together.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: u32,
    /// Of one file.
    pub file_bytes: u64,
    /// Of all files below the root. Needs [`Isolation::Namespaces`].
    pub disk_bytes: u64,
    /// Of each process.
    pub cpu: Option<Duration>,
    /// From the start to the end. Needs [`Isolation::Namespaces`].
    pub wall: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            memory_bytes: 1024 * MIB,
            processes: 128,
            file_bytes: 256 * MIB,
            disk_bytes: 1024 * MIB,
            cpu: None,
            wall: None,
        }
    }
}

/// How programs are confined on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// A file system, process table and network of its own; Landlock as well where the kernel has it.
    Namespaces,
    /// Landlock (ABI 6 or later) and a seccomp filter, where the kernel or the container refuses user namespaces. Limits of
    /// memory and CPU time hold for each process alone, and those of disk space and time do not hold.
    Landlock,
}

/// Why there is no sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this machine has no sandbox: {0}. Linux needs user namespaces, or Landlock of Linux 6.12 or later")]
pub struct Unavailable(pub String);

/// The program that confines itself before it executes another one: Baton's own binary.
#[derive(Debug)]
pub struct Launcher {
    program: PathBuf,
    isolation: OnceLock<Result<Isolation, Unavailable>>,
}

impl Launcher {
    /// The binary of this process, which has to call [`launch_if_requested`].
    pub fn current() -> Self {
        // Not the path: it may lead to a newer version in the meantime.
        Self::at("/proc/self/exe")
    }

    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), isolation: OnceLock::new() }
    }

    /// The same without trying, for a caller that knows what works.
    pub fn with_isolation(program: impl Into<PathBuf>, isolation: Isolation) -> Self {
        Self { program: program.into(), isolation: OnceLock::from(Ok(isolation)) }
    }

    /// How programs are confined. Blocks at the first call, which starts two processes to try it.
    pub fn isolation(&self) -> Result<Isolation, Unavailable> {
        self.isolation.get_or_init(|| self.probe()).clone()
    }

    fn probe(&self) -> Result<Isolation, Unavailable> {
        if !cfg!(target_os = "linux") {
            return Err(Unavailable("the system is not Linux".to_owned()));
        }
        let mut problems = Vec::new();
        for isolation in [Isolation::Namespaces, Isolation::Landlock] {
            let root = std::env::temp_dir().canonicalize().unwrap_or_else(|_| PathBuf::from("/tmp"));
            let sandbox = Sandbox::new(root, Limits::default());
            let mut command = sandbox.launch(&self.program, isolation, None, &[]);
            match command.output() {
                Ok(output) if output.status.success() => return Ok(isolation),
                Ok(output) => problems.push(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
                Err(error) => problems.push(error.to_string()),
            }
        }
        Err(Unavailable(problems.join("; ")))
    }
}

impl Sandbox {
    /// Without a network and without anything but `root`.
    pub fn new(root: impl Into<PathBuf>, limits: Limits) -> Self {
        Self { root: root.into(), read_only: Vec::new(), hidden: Vec::new(), network: false, limits }
    }

    /// The command that starts `program` in the sandbox, with this environment and no other. The arguments that the caller adds
    /// are those of the program. Variables that the caller adds do not reach it. Killing its process ends everything that the
    /// program started.
    pub fn command(
        &self,
        launcher: &Launcher,
        program: impl AsRef<OsStr>,
        environment: &[(String, String)],
    ) -> Result<Command, Unavailable> {
        let isolation = launcher.isolation()?;
        if isolation == Isolation::Landlock && !self.hidden.is_empty() {
            let reason = "files inside the work folder can be hidden only with user namespaces";
            return Err(Unavailable(reason.to_owned()));
        }
        Ok(self.launch(&launcher.program, isolation, Some(program.as_ref()), environment))
    }

    fn launch(
        &self,
        launcher: &Path,
        isolation: Isolation,
        program: Option<&OsStr>,
        environment: &[(String, String)],
    ) -> Command {
        let request = LaunchRequest { sandbox: self.clone(), isolation, parent: std::process::id() };
        let mut command = Command::new(launcher);
        command.env_clear().arg(MARKER).arg(serde_json::to_string(&request).unwrap_or_default());
        command.args(program);
        // Not among the arguments, which all users of the machine can see.
        command.env(ENVIRONMENT, serde_json::to_string(environment).unwrap_or_default());
        command.env(ALLOCATOR.0, ALLOCATOR.1);
        command
    }
}

/// What a launcher gets as its second argument; the program and its arguments follow. Without a program it only tries.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no launcher"))]
struct LaunchRequest {
    sandbox: Sandbox,
    isolation: Isolation,
    /// The sandbox ends with this process.
    parent: u32,
}

/// Turns this process into a launcher if its arguments say so, and then never returns. Has to be called before any thread is
/// started.
pub fn launch_if_requested() {
    #[cfg(target_os = "linux")]
    linux::launch_if_requested();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_program_are_not_set_on_the_launcher() {
        let launcher = Launcher::with_isolation("/bin/false", Isolation::Namespaces);
        let environment = [("LD_PRELOAD".to_owned(), "/srv/a.so".to_owned())];
        let sandbox = Sandbox::new("/srv", Limits::default());
        let command = sandbox.command(&launcher, "sh", &environment).unwrap();
        let names: Vec<&OsStr> = command.get_envs().map(|(name, _)| name).collect();
        assert_eq!(names, [ENVIRONMENT, ALLOCATOR.0]);
        assert!(command.get_args().all(|argument| !argument.as_encoded_bytes().ends_with(b".so")));
    }
}
