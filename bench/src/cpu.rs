//! Processor time and memory of processes, as the kernel counts them.

use std::time::Duration;

/// The sum over all threads that are alive. Threads that ended in between are missed, so measure while none end.
pub fn time() -> Duration {
    time_of("self")
}

/// The same for another process.
pub fn time_of(process: &str) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("/proc");
    let spent = tasks.flatten().filter_map(|task| {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

/// All that a process has spent, threads that have ended included. Counted in hundredths of a second, so measure for long.
pub fn total_of(process: &str) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("/proc");
    // The name of the program stands in parentheses and may hold anything.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks = |at: usize| fields.split_whitespace().nth(at).and_then(|field| field.parse::<u64>().ok());
    let (user, system) = (ticks(11).expect("user time"), ticks(12).expect("system time"));
    Duration::from_millis((user + system) * 10)
}

/// Bytes of memory that a process has now.
pub fn memory_of(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line of memory");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") * 1024
}
