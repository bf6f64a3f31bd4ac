//! The seccomp filter: system calls that programs in a sandbox do not need and that have led out of sandboxes, and sockets.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

use super::{Outcome, during};
use crate::Isolation;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refused with every kind of isolation: other processes' memory, mounts, keys, kernel modules, clocks, memory that is in no
/// process and so not limited, and subsystems of the kernel with a history of security bugs.
const REFUSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_shmget,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Refused without namespaces as well: Landlock does not confine what changes the attributes of files by path, nor what changes
/// other processes of the same user.
const REFUSED_WITHOUT_NAMESPACES: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_pidfd_open,
    libc::SYS_process_mrelease,
    libc::SYS_setpriority,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_ioprio_set,
];

/// The same number on all architectures that have a filter.
const FCHMODAT2: i64 = 452;
/// On x86-64, system calls of the x32 interface are the same ones with this bit.
const X32: i64 = 0x4000_0000;

pub(super) fn restrict(isolation: Isolation, network: bool) -> Outcome<()> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_clone, namespaces_in_clone()?);
    rules.insert(libc::SYS_prlimit64, other_process()?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_mknod, devices_in_mode(1)?);
    rules.insert(libc::SYS_mknodat, devices_in_mode(2)?);
    let sockets = allowed_sockets(isolation, network);
    if let Some(allowed) = sockets {
        rules.insert(libc::SYS_socket, socket_rules(allowed)?);
    }
    if isolation == Isolation::Landlock {
        rules.extend(REFUSED_WITHOUT_NAMESPACES.iter().map(|call| (*call, Vec::new())));
        rules.insert(libc::SYS_sched_setaffinity, other_process()?);
    }
    apply(rules, libc::EPERM)?;
    // Its flags are in memory, where a filter cannot look. The C library uses `clone` then.
    apply(Rules::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
}

fn apply(mut rules: Rules, errno: i32) -> Outcome<()> {
    if cfg!(target_arch = "x86_64") {
        let x32: Vec<_> = rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
        rules.extend(x32);
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(during("seccomp"))?;
    let errno = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, errno, arch).map_err(during("seccomp"))?;
    let program: BpfProgram = filter.try_into().map_err(during("seccomp"))?;
    apply_filter(&program).map_err(during("seccomp"))
}

/// The address families that a program may use; all of them if `None`.
///
/// With namespaces, a program reaches only the sockets of its own file system and network. Without them, Landlock does not
/// keep it from connecting to sockets in the file system, such as those of databases.
fn allowed_sockets(isolation: Isolation, network: bool) -> Option<&'static [i32]> {
    match (isolation, network) {
        (Isolation::Namespaces, true) => None,
        (Isolation::Namespaces, false) => Some(&[libc::AF_UNIX]),
        (Isolation::Landlock, true) => Some(&[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]),
        (Isolation::Landlock, false) => Some(&[]),
    }
}

/// Matches every family but the allowed ones.
fn socket_rules(allowed: &[i32]) -> Outcome<Vec<SeccompRule>> {
    let other = |family: &i32| {
        let family = u64::from(family.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    };
    let conditions = allowed.iter().map(other).collect::<Result<Vec<_>, _>>().map_err(during("seccomp"))?;
    if conditions.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![SeccompRule::new(conditions).map_err(during("seccomp"))?])
}

/// Matches a process id, as the first argument, that is not 0: 0 is the calling process.
fn other_process() -> Outcome<Vec<SeccompRule>> {
    let is_other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0);
    let rule = is_other.and_then(|is_other| SeccompRule::new(vec![is_other]));
    Ok(vec![rule.map_err(during("seccomp"))?])
}

/// Matches devices, but not named pipes, in the argument with this number.
fn devices_in_mode(argument: u8) -> Outcome<Vec<SeccompRule>> {
    let rule = |kind: u32| {
        let is_kind = SeccompCmpOp::MaskedEq(libc::S_IFMT.into());
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is_kind, kind.into())
            .and_then(|condition| SeccompRule::new(vec![condition]))
    };
    [libc::S_IFCHR, libc::S_IFBLK].into_iter().map(rule).collect::<Result<_, _>>().map_err(during("seccomp"))
}

/// A process in a new user namespace has all capabilities in it, which makes more of the kernel reachable.
fn namespaces_in_clone() -> Outcome<Vec<SeccompRule>> {
    let flags = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let rule = |flag: i32| {
        let flag = u64::from(flag.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)
            .and_then(|condition| SeccompRule::new(vec![condition]))
    };
    flags.into_iter().map(rule).collect::<Result<_, _>>().map_err(during("seccomp"))
}
