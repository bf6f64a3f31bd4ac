//! The launcher: the parent of the sandbox in the namespaces of the server.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{close, getegid, geteuid, getppid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{Outcome, during, program_environment, restrict};
use crate::{INIT_MARKER, Isolation, LaunchRequest};

/// How often the launcher looks whether the server is still there.
const PARENT_INTERVAL_NANOS: i64 = 250_000_000;
/// What a shell reports for a signal, added to its number.
pub(super) const SIGNALLED: i32 = 128;

/// Returns the exit code of the program, or replaces this process by it.
pub(super) fn run(request: &LaunchRequest, program: Vec<OsString>) -> Outcome<i32> {
    close_inherited_files();
    // When memory runs out, the kernel ends a program of a sandbox first.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    match request.isolation {
        Isolation::Namespaces => in_namespaces(request, &program),
        Isolation::Landlock => in_place(request, program),
    }
}

/// The server opens its files with `CLOEXEC`; this holds even if a library does not. No thread runs and no file of this
/// process is open yet.
fn close_inherited_files() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return };
    let names = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // Collected first: the folder itself has a file descriptor, which is closed then.
    for fd in names.filter(|fd| *fd > 2).collect::<Vec<_>>() {
        let _ = close(fd);
    }
}

fn in_namespaces(request: &LaunchRequest, program: &[OsString]) -> Outcome<i32> {
    let (user, group) = (geteuid(), getegid());
    let mut namespaces = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    if !request.sandbox.network {
        namespaces |= CloneFlags::CLONE_NEWNET;
    }
    unshare(namespaces).map_err(during("user namespaces"))?;
    // Without this, the group of a process without privileges cannot be mapped. A server of root may not need it.
    let _ = fs::write("/proc/self/setgroups", "deny");
    // `init` needs to be user 0 of its namespace to mount anything. Outside it has no more rights than the server.
    fs::write("/proc/self/uid_map", format!("0 {user} 1")).map_err(during("the user map"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1")).map_err(during("the group map"))?;
    let parent = i32::try_from(request.parent).unwrap_or_default();
    let request = serde_json::to_string(request).map_err(during("the request"))?;
    let mut init = Command::new("/proc/self/exe");
    init.arg(INIT_MARKER).arg(request).args(program);
    let mut init = init.spawn().map_err(during("init"))?;
    wait_with_parent(&init, parent)?;
    init.wait().map(exit_code).map_err(during("init"))
}

/// Returns when `init` has ended, or when the server has; `init` is killed when this process ends. The signal for the death of a
/// parent is not used between the server and this process, because it comes when the thread of the server ends that started it.
fn wait_with_parent(init: &Child, parent: i32) -> Outcome<()> {
    let id = i32::try_from(init.id()).ok().and_then(Pid::from_raw).ok_or("init has no process id")?;
    let ended = pidfd_open(id, PidfdFlags::empty()).map_err(during("init"))?;
    let interval = Timespec { tv_sec: 0, tv_nsec: PARENT_INTERVAL_NANOS };
    while getppid().as_raw() == parent {
        match poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&interval)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(during("init")(error)),
        }
    }
    Err("the server has ended".to_owned())
}

fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().unwrap_or_else(|| SIGNALLED + status.signal().unwrap_or_default())
}

/// Without namespaces: this process restricts itself and becomes the program.
fn in_place(request: &LaunchRequest, program: Vec<OsString>) -> Outcome<i32> {
    restrict::landlock_only(&request.sandbox)?;
    let mut program = program.into_iter();
    let Some(name) = program.next() else { return Ok(0) };
    let mut command = Command::new(&name);
    command.args(program).env_clear().envs(program_environment()?);
    command.current_dir(&request.sandbox.root).env("TMPDIR", &request.sandbox.root);
    Err(format!("{}: {}", name.display(), command.exec()))
}
