//! The limit of open files, one of which every connection needs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files for the store, logs, tools and agents besides connections.
const RESERVE: u64 = 256;

/// Raises the soft limit of open files to what `connections` need, up to the hard limit.
pub fn raise_fd_limit(connections: usize) {
    let wanted = RESERVE.saturating_add(u64::try_from(connections).unwrap_or(u64::MAX));
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    let possible = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(possible), maximum }) {
        tracing::warn!(%error, "cannot ask for more open files");
    }
    if possible < wanted {
        let hint = "raise `ulimit -n` or lower `limits.max_connections`";
        tracing::warn!(possible, wanted, "not every connection that is allowed can be open at once: {hint}");
    }
}
