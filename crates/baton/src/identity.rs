//! Who this process is among all that may work on the same store.

use std::fs;
use std::sync::Arc;

use baton_core::store::Owner;
use baton_engine::ProcessIdentity;
use rustix::io::Errno;
use rustix::process::Pid;
use uuid::Uuid;

/// What a process on this machine is recognised by: the machine since it started, the process ids' space, the process, and
/// when it began, because process ids are used again.
#[derive(Debug, PartialEq, Eq)]
struct ProcessFingerprint {
    boot: String,
    space: String,
    pid: u32,
    started: u64,
}

/// This process. Unknown parts, as on systems without `/proc`, make it one that is alive until its lease ends.
pub fn identity() -> ProcessIdentity {
    let owner = match ProcessFingerprint::this() {
        Some(ProcessFingerprint { boot, space, pid, started }) => format!("{boot}/{space}/{pid}/{started}"),
        None => format!("unknown/{}", Uuid::new_v4()),
    };
    // Two engines in one process are two owners.
    ProcessIdentity { owner: Owner(Arc::from(format!("{owner}/{}", Uuid::new_v4().simple()))), is_gone }
}

/// Whether the owner was a process of this machine that does not exist any more. A process that cannot be inspected counts as alive.
fn is_gone(owner: &Owner) -> bool {
    let Some((process, this)) = ProcessFingerprint::parse(&owner.0).zip(ProcessFingerprint::this()) else {
        return false;
    };
    if process.boot != this.boot || process.space != this.space {
        return false;
    }
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return true };
    // `/proc` may hide the processes of others; the kernel still says whether there is one.
    let exists = rustix::process::test_kill_process(pid) != Err(Errno::SRCH);
    !exists || state_of(process.pid).is_some_and(|(is_dead, started)| is_dead || started != process.started)
}

impl ProcessFingerprint {
    fn this() -> Option<Self> {
        let pid = std::process::id();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let space = fs::read_link("/proc/self/ns/pid").ok()?.to_str()?.to_owned();
        let (_, started) = state_of(pid)?;
        Some(Self { boot, space, pid, started })
    }

    fn parse(owner: &str) -> Option<Self> {
        let mut parts = owner.split('/');
        let (boot, space) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        Some(Self { boot, space, pid: parts.next()?.parse().ok()?, started: parts.next()?.parse().ok()? })
    }
}

/// Whether it is only waiting to be buried, and when it began, in ticks since the machine started. The name before that may hold
/// anything, also spaces and parentheses.
fn state_of(pid: u32) -> Option<(bool, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    Some((is_dead, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_that_certainly_ended_are_gone() {
        let here = identity();
        assert!(!(here.is_gone)(&here.owner), "{:?}", here.owner);
        assert!(!is_gone(&Owner("unknown/x".into())) && !is_gone(&Owner("".into())));
        let Some(this) = ProcessFingerprint::this() else { return };
        let owner =
            |boot: &str, pid, started| Owner(Arc::from(format!("{boot}/{}/{pid}/{started}/x", this.space)));
        assert!(is_gone(&owner(&this.boot, this.pid, this.started + 1)), "the number was used again");
        assert!(is_gone(&owner(&this.boot, u32::MAX, 1)));
        assert!(!is_gone(&owner("another-machine", u32::MAX, 1)));
    }

    #[test]
    fn a_child_that_was_killed_is_gone() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let this = ProcessFingerprint::this().unwrap();
        let (_, started) = state_of(child.id()).unwrap();
        let owner = Owner(Arc::from(format!("{}/{}/{}/{started}/x", this.boot, this.space, child.id())));
        assert!(!is_gone(&owner));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_gone(&owner));
    }
}
