//! Processor time of this process, in nanoseconds, as the kernel counts it.

use std::time::Duration;

/// The sum over all threads that are alive. Threads that ended in between are missed, so measure while none end.
pub fn time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc");
    let spent = tasks.flatten().filter_map(|task| {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}
