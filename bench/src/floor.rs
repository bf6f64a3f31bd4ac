//! Baton beside a floor: a hand-written agent loop with one SQLite transaction per run, which is the least that a server can do.
//! Both are processes of their own and talk to the same model; every stream is compared token by token.

mod archive;
mod length;
mod load;
mod scenario;
mod server;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::provider::ProviderProcess;
use crate::server::ServedProcess;
use crate::{Goals, cpu};
use load::{LoadResult, LoadTarget};
use scenario::{Scenario, TOKENS};

pub use server::serve;

/// How long one measurement of a scenario takes, and how often it is taken.
const SPAN: Duration = Duration::from_millis(1500);
const ROUNDS: usize = 2;
const STREAMS: usize = 1000;
/// Tokens of the answer that a stream of the memory measurement holds open for two seconds.
const LONG: usize = crate::provider::TOKENS;

/// The three ways to ask the same model.
struct FloorBench {
    provider: ProviderProcess,
    dir: tempfile::TempDir,
    baton: ServedProcess,
    floor: ServedProcess,
    runs: usize,
    wrong: usize,
}

pub fn run(goals: &mut Goals) {
    let provider = ProviderProcess::start();
    cold_start(goals, &provider);
    let dir = tempfile::tempdir().expect("a folder");
    let baton = scenario::baton(dir.path(), &provider);
    let database = dir.path().join("floor.db");
    let floor = ServedProcess::start(
        &["--floor", &provider.base_url, database.to_str().expect("a path in UTF-8")],
        dir.path(),
    );
    let mut bench = FloorBench { provider, dir, baton, floor, runs: 0, wrong: 0 };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for scenario in Scenario::ALL {
            bench.processor_time(goals, scenario).await;
        }
        bench.a2a(goals).await;
        for (clients, limit) in [(1, 1.0), (64, 5.0)] {
            bench.first_token(goals, clients, limit).await;
        }
        bench.memory(goals).await;
    });
    println!("  {} streams compared token by token, {} of them wrong", bench.runs, bench.wrong);
    goals.at_most("streams that were not as they should be", number(bench.wrong), 0.0);
    runtime.block_on(length::compare(goals, &bench.provider));
}

impl FloorBench {
    async fn processor_time(&mut self, goals: &mut Goals, scenario: Scenario) {
        let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
        let mut stored = 0.0;
        for _ in 0..ROUNDS {
            let floor = LoadTarget::floor(&self.floor, scenario.agent());
            theirs = theirs.min(self.cost(&floor, &self.floor.pid(), scenario.clients()).await.0);
            let before = stored_bytes(self.dir.path());
            let baton = LoadTarget::baton(&self.baton, scenario.agent());
            let (cpu, runs) = self.cost(&baton, &self.baton.pid(), scenario.clients()).await;
            ours = ours.min(cpu);
            stored = (stored_bytes(self.dir.path()) - before) / 1000.0 / number(runs);
        }
        let (name, clients) = (scenario.name(), scenario.clients());
        println!(
            "  {name}, {clients} clients: {:.3} ms of processor time per run, {:.3} ms of the floor; {stored:.1} KB stored",
            ms(ours),
            ms(theirs)
        );
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        goals.at_most(&format!("{name}: processor time / that of the floor"), ratio, 3.0);
        if let Some(limit) = scenario.stored_limit() {
            goals.at_most(&format!("{name}: KB stored per run"), stored, limit);
        }
    }

    /// The same message over A2A and over the native API.
    async fn a2a(&mut self, goals: &mut Goals) {
        let (mut a2a, mut native) = (Duration::MAX, Duration::MAX);
        let (agent, clients) = (Scenario::Answer.agent(), Scenario::Answer.clients());
        for _ in 0..ROUNDS {
            let target = LoadTarget::baton(&self.baton, agent);
            native = native.min(self.cost(&target, &self.baton.pid(), clients).await.0);
            let target = LoadTarget::a2a(&self.baton, agent);
            a2a = a2a.min(self.cost(&target, &self.baton.pid(), clients).await.0);
        }
        println!(
            "  A2A, {clients} clients: {:.3} ms of processor time per message, {:.3} ms over the native API",
            ms(a2a),
            ms(native)
        );
        let ratio = a2a.as_secs_f64() / native.as_secs_f64();
        goals.at_most("A2A: processor time / that of the native API", ratio, 1.3);
    }

    /// Processor time per run of a process, and how many runs there were.
    async fn cost(&mut self, target: &LoadTarget, pid: &str, clients: usize) -> (Duration, usize) {
        self.load(target, clients, SPAN / 5, TOKENS).await;
        let before = cpu::total_of(pid);
        let load = self.load(target, clients, SPAN, TOKENS).await;
        let spent = cpu::total_of(pid).saturating_sub(before);
        (spent / u32::try_from(load.runs).expect("few"), load.runs)
    }

    /// Added to a direct call of a model that takes 20 ms for its first token.
    async fn first_token(&mut self, goals: &mut Goals, clients: usize, limit: f64) {
        let direct = LoadTarget::direct(&self.provider, scenario::PACED);
        let floor = LoadTarget::floor(&self.floor, scenario::PACED);
        let baton = LoadTarget::baton(&self.baton, scenario::PACED);
        let mut best = [Duration::MAX; 3];
        for _ in 0..ROUNDS {
            for (best, target) in best.iter_mut().zip([&direct, &floor, &baton]) {
                *best = self.load(target, clients, SPAN, TOKENS).await.first.min(*best);
            }
        }
        let added = |at: usize| ms(best[at].saturating_sub(best[0]));
        println!(
            "  first token, {clients} clients: {:.2} ms direct, +{:.2} ms through the floor, +{:.2} ms through Baton",
            ms(best[0]),
            added(1),
            added(2)
        );
        goals.at_most(&format!("added to the first token at {clients} clients, in ms"), added(2), limit);
    }

    async fn memory(&mut self, goals: &mut Goals) {
        let floor = LoadTarget::floor(&self.floor, scenario::STEADY);
        let theirs = self.stream_memory(&floor, &self.floor.pid()).await;
        let baton = LoadTarget::baton(&self.baton, scenario::STEADY);
        let ours = self.stream_memory(&baton, &self.baton.pid()).await;
        println!("  {STREAMS} open streams: {ours:.0} KiB each, {theirs:.0} KiB each of the floor");
        goals.at_most("memory of an open stream, in KiB", ours, 64.0);
    }

    /// KiB above what the process had before, at most.
    async fn stream_memory(&mut self, target: &LoadTarget, pid: &str) -> f64 {
        let idle = cpu::memory_of(pid);
        let mut peak = idle;
        let load = tokio::select! {
            load = load::at_once(target, STREAMS, LONG) => load,
            () = async {
                loop {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    peak = peak.max(cpu::memory_of(pid));
                }
            } => unreachable!("it never ends"),
        };
        self.count(&load);
        number(usize::try_from(peak - idle).expect("small")) / 1024.0 / number(STREAMS)
    }

    async fn load(
        &mut self,
        target: &LoadTarget,
        clients: usize,
        span: Duration,
        tokens: usize,
    ) -> LoadResult {
        let load = load::during(target, clients, span, tokens).await;
        self.count(&load);
        load
    }

    fn count(&mut self, load: &LoadResult) {
        self.runs += load.runs;
        if let Some(mistake) = load.wrong.first().filter(|_| self.wrong == 0) {
            println!("  the first wrong stream: {mistake}");
        }
        self.wrong += load.wrong.len();
    }
}

/// From the start of the process with an empty project to the end of its first answer; the best of three.
fn cold_start(goals: &mut Goals, provider: &ProviderProcess) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let took = (0..3).map(|_| {
        let dir = tempfile::tempdir().expect("a folder");
        let begun = Instant::now();
        let baton = scenario::baton(dir.path(), provider);
        let target = LoadTarget::baton(&baton, Scenario::ALL[0].agent());
        let load = runtime.block_on(load::at_once(&target, 1, TOKENS));
        assert_eq!(load.wrong, Vec::<String>::new(), "the first answer");
        begun.elapsed()
    });
    let best = took.min().expect("three");
    println!("  cold start to the first answer: {:.3} s", best.as_secs_f64());
    goals.at_most("cold start to the first answer, in s", best.as_secs_f64(), 0.05);
}

/// What the database of a project holds, what waits in its log included.
fn stored_bytes(project: &Path) -> f64 {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
    let database =
        rusqlite::Connection::open_with_flags(project.join("baton.db"), flags).expect("a database");
    database.busy_timeout(Duration::from_secs(5)).expect("a time limit");
    let pragma =
        |name| database.pragma_query_value(None, name, |row| row.get::<_, f64>(0)).expect("a number");
    (pragma("page_count") - pragma("freelist_count")) * pragma("page_size")
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn number(count: usize) -> f64 {
    count as f64
}
