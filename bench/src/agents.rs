//! Agent files: loading grows linearly, a change is seen within a second.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use baton_agents::{KnownNames, Reload, Roster, Strictness, Watch};

use crate::Goals;

const SMALL: u32 = 500;
const LARGE: u32 = 5_000;
const ROUNDS: usize = 7;

pub fn run(goals: &mut Goals) {
    let (small, large) = (folder(SMALL), folder(LARGE));
    // The best of several rounds, taken in turns: noise only ever adds time.
    let (mut best_small, mut best_large) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        best_small = best_small.min(load(small.path(), SMALL));
        best_large = best_large.min(load(large.path(), LARGE));
    }
    let per_second = |files: u32, time: Duration| f64::from(files) / time.as_secs_f64();
    println!("  load {SMALL:>5} files: {best_small:>9.1?}  {:>8.0} files/s", per_second(SMALL, best_small));
    println!("  load {LARGE:>5} files: {best_large:>9.1?}  {:>8.0} files/s", per_second(LARGE, best_large));
    let ratio = per_second(SMALL, best_small) / per_second(LARGE, best_large);
    goals.below("time per file, 5,000 to 500", ratio, 1.5);
    goals.below("time per file with an unknown name in each, 5,000 to 500", broken_ratio(), 2.5);
    goals.below(
        "seconds from an edit to the new roster (500 files)",
        reload(small.path()).as_secs_f64(),
        1.0,
    );
}

/// A roster that was renamed by half: every file refers to an agent that is not there, each to another one.
fn broken_ratio() -> f64 {
    let folder = |files: u32| {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for at in 0..files {
            let text = format!("---\ndescription: Agent number {at}.\nagents: [agnet-{at}]\n---\nHelp.\n");
            std::fs::write(dir.path().join(format!("agent-{at}.md")), text).expect("a file");
        }
        dir
    };
    let (small, large) = (folder(SMALL), folder(LARGE));
    let per_file = |dir: &Path, files: u32| {
        let start = Instant::now();
        let rejected =
            Roster::load(&[dir.to_owned()], &KnownNames::default(), Strictness::Lenient).expect_err("errors");
        assert_eq!(rejected.problems.len(), files as usize);
        start.elapsed().as_secs_f64() / f64::from(files)
    };
    let best = |dir: &Path, files: u32| (0..3).map(|_| per_file(dir, files)).fold(f64::INFINITY, f64::min);
    best(large.path(), LARGE) / best(small.path(), SMALL)
}

/// Agents with every pattern between them, so that all checks have work: each refers to some of the next ones.
fn folder(files: u32) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for at in 0..files {
        let other = |ahead: u32| format!("agent-{}", (at + ahead).min(files - 1));
        let patterns = match at % 5 {
            _ if at + 10 >= files => String::new(),
            0 => format!("agents: [{}, {}]\ndelegation: {{timeout: 30s}}", other(1), other(2)),
            1 => format!("advisors: [{}, {{agent: {}, required: true}}]", other(2), other(3)),
            2 => format!("router: true\nagents: [{}, {}]", other(3), other(4)),
            3 => format!("handoff: [{{to: {}, when: \"'x' in output\"}}, {}]", other(5), other(6)),
            _ => format!("team: {{members: [{}, {}], max_rounds: 3}}", other(5), other(7)),
        };
        let collaborators =
            if at % 5 == 2 { String::new() } else { format!("collaborations: [{}]\n", other(1)) };
        let collaborators = if at + 1 == files { String::new() } else { collaborators };
        let body = "You are an agent of {{ tenant }}.\n\nAnswer {{ user }} briefly and name your sources.\n"
            .repeat(10);
        let text = format!("---\ndescription: Agent number {at}.\n{patterns}\n{collaborators}---\n{body}");
        std::fs::write(dir.path().join(format!("agent-{at}.md")), text).expect("a file");
    }
    dir
}

fn load(dir: &Path, files: u32) -> Duration {
    let start = Instant::now();
    let roster =
        Roster::load(&[dir.to_owned()], &KnownNames::default(), Strictness::Strict).expect("a valid roster");
    let took = start.elapsed();
    assert_eq!(roster.len(), files as usize);
    took
}

fn reload(dir: &Path) -> Duration {
    let (tell, told) = channel();
    let on_reload = move |reload| drop(tell.send((Instant::now(), reload)));
    let watch = Watch::start(vec![dir.to_owned()], KnownNames::default(), Strictness::Lenient, on_reload)
        .expect("a watch");
    let file = dir.join("agent-0.md");
    let text = std::fs::read_to_string(&file).expect("a file").replace("Agent number 0.", "Edited.");
    let start = Instant::now();
    std::fs::write(file, text).expect("a file");
    loop {
        let (at, reload) = told.recv_timeout(Duration::from_secs(30)).expect("a reload");
        let Reload::Loaded(roster) = reload else { continue };
        if roster.iter().any(|agent| agent.description == "Edited.") {
            drop(watch);
            return at - start;
        }
    }
}
