//! Every connection is an open file, and systems allow few of them unless they are asked.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the store, logs, tools and agents need beside connections.
const RESERVE: u64 = 256;

/// Asks for as many open files as `connections` need, as far as the system lets this process have them.
pub fn allow(connections: usize) {
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
