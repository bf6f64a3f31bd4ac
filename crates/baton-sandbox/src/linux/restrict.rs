//! Restrictions that a process applies to itself and that all its children inherit.

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, Scope, path_beneath_rules,
};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::{Outcome, during, filesystem, syscalls};
use crate::{Isolation, Limits, Sandbox};

/// The kernel's interface that confines files, signals and abstract sockets. Newer ones add nothing that is needed here.
const LANDLOCK: ABI = ABI::V6;
const OPEN_FILES: u64 = 1024;

/// For `init`, after the file system was replaced: what is visible is readable, and three places are writable.
pub(super) fn in_namespaces(sandbox: &Sandbox) -> Outcome<()> {
    set_no_new_privs().map_err(during("no new privileges"))?;
    drop_capabilities()?;
    let writable = [sandbox.root.as_path(), "/tmp".as_ref()];
    // Beside the namespaces, so a kernel without it is not an error.
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rules(path_beneath_rules(["/"], AccessFs::from_read(LANDLOCK))))
        .and_then(|rules| rules.add_rules(path_beneath_rules(writable, work_access())))
        .and_then(|rules| rules.add_rules(path_beneath_rules(filesystem::devices(), device_access())));
    rules.and_then(landlock::RulesetCreated::restrict_self).map_err(during("Landlock"))?;
    syscalls::restrict(Isolation::Namespaces, sandbox.network)
}

/// Without namespaces. Every part has to hold.
pub(super) fn landlock_only(sandbox: &Sandbox) -> Outcome<()> {
    let limits = &sandbox.limits;
    set_no_new_privs().map_err(during("no new privileges"))?;
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create);
    let rules =
        rules.map(|rules| rules.set_compatibility(CompatLevel::BestEffort)).map_err(during("Landlock"))?;
    let readable = path_beneath_rules(filesystem::readable(sandbox), AccessFs::from_read(LANDLOCK));
    let rules = rules
        .add_rules(readable)
        .and_then(|rules| rules.add_rules(path_beneath_rules([&sandbox.root], work_access())))
        .and_then(|rules| rules.add_rules(path_beneath_rules(filesystem::devices(), device_access())));
    rules.and_then(landlock::RulesetCreated::restrict_self).map_err(during("Landlock"))?;
    drop_capabilities()?;
    syscalls::restrict(Isolation::Landlock, sandbox.network)?;
    limit_resources(&Limits { processes: limits.processes.saturating_add(others()), ..*limits })
}

/// Those of root do not come back with the next program, because of `no_new_privs`.
fn drop_capabilities() -> Outcome<()> {
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(during("capabilities"))
}

/// All but creating devices.
fn work_access() -> BitFlags<AccessFs> {
    AccessFs::from_all(LANDLOCK) & !(AccessFs::MakeBlock | AccessFs::MakeChar)
}

fn device_access() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile
}

/// An upper bound for what other processes of the same user count towards its limit. They cannot be counted here: Landlock has
/// closed `/proc`.
fn others() -> u32 {
    4096
}

/// What this process has allocated itself. The limit holds for it too, and starting the program needs some memory.
fn own_data_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    let kib = size.and_then(|size| size.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(UNKNOWN_DATA_BYTES, |kib| kib * 1024)
}

/// Assumed where `/proc` is closed.
const UNKNOWN_DATA_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Limits of the kernel for each process, or for the user in its namespace.
pub(super) fn limit_resources(limits: &Limits) -> Outcome<()> {
    let seconds = limits.cpu.map(|cpu| cpu.as_secs().max(1));
    let all = [
        // Not the address space: run-time systems reserve a lot of it that they never use.
        (Resource::RLIMIT_DATA, Some(limits.memory_bytes.saturating_add(own_data_bytes()))),
        (Resource::RLIMIT_FSIZE, Some(limits.file_bytes)),
        (Resource::RLIMIT_NPROC, Some(limits.processes.into())),
        (Resource::RLIMIT_NOFILE, Some(OPEN_FILES)),
        (Resource::RLIMIT_CORE, Some(0)),
        (Resource::RLIMIT_CPU, seconds),
    ];
    for (resource, limit) in all {
        let Some(limit) = limit else { continue };
        let (_, most) = nix::sys::resource::getrlimit(resource).map_err(during("resource limits"))?;
        let limit = limit.min(most);
        setrlimit(resource, limit, limit).map_err(during("resource limits"))?;
    }
    Ok(())
}
