//! Process 1 of a sandbox: prepares it, starts the program and ends with it. The kernel kills all processes of the sandbox when
//! this one ends, also those that left the program's process group.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use super::launch::SIGNALLED;
use super::{Outcome, during, filesystem, program_environment, restrict, watch};
use crate::LaunchRequest;

/// The smallest number of process ids that the kernel accepts for a namespace.
const MIN_PROCESS_IDS: u32 = 301;
/// What a shell reports for a program that cannot be executed.
const NOT_EXECUTED: i32 = 127;

pub(super) fn run(request: &LaunchRequest, program: Vec<OsString>) -> Outcome<i32> {
    // The launcher is killed with its process group.
    set_pdeathsig(Signal::SIGKILL).map_err(during("the signal for the parent's death"))?;
    let sandbox = &request.sandbox;
    filesystem::enter(sandbox)?;
    limit_process_ids(sandbox.limits.processes);
    restrict::in_namespaces(sandbox)?;
    let mut program = program.into_iter();
    let Some(name) = program.next() else { return Ok(0) };
    let environment = program_environment()?;
    watch::start(sandbox);
    // After the watch is started: its thread counts, and its stack is memory.
    restrict::limit_resources(&sandbox.limits)?;
    match Command::new(&name).args(program).env_clear().envs(environment).spawn() {
        Ok(child) => Ok(wait_for(Pid::from_raw(i32::try_from(child.id()).unwrap_or_default()))),
        Err(error) => {
            eprintln!("{}: {error}", name.display());
            Ok(NOT_EXECUTED)
        }
    }
}

/// Collects all processes that end, as process 1 has to, until the program is among them.
fn wait_for(program: Pid) -> i32 {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == program => return code,
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => return SIGNALLED + signal as i32,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return SIGNALLED,
        }
    }
}

/// Since Linux 6.14 a process namespace has its own limit, which holds for root as well. Before, the resource limit for
/// processes holds, but not for root.
fn limit_process_ids(processes: u32) {
    let most = processes.max(MIN_PROCESS_IDS);
    let _ = fs::write("/proc/sys/kernel/pid_max", most.to_string());
}
