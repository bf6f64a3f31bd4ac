//! What a store holds of one thread, and processes that are killed while they work on it.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use baton_core::store::{PageRequest, RunQuery, RunRecord, StepKind, StepState};
use baton_core::{RunId, Store, TenantId, TenantStore, ThreadId};
use serde_json::{Value, json};

/// Starts a command, lets it live for a random moment, kills it, and returns the events it had announced.
pub(super) fn live_and_die(dir: &Path, args: &[&str], moment: Duration) -> Vec<Value> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(args)
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        lines.filter_map(|line| serde_json::from_str(&line).ok()).collect::<Vec<Value>>()
    });
    std::thread::sleep(moment);
    kill(&mut child);
    reader.join().unwrap()
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// What a store holds of one thread, seen from outside.
pub(super) struct Seen {
    pub(super) tenant: Arc<dyn TenantStore>,
    pub(super) thread: ThreadId,
}

impl Seen {
    pub(super) async fn open(dir: &Path, store: &str, thread: ThreadId) -> Self {
        let store = baton_store::open(store, dir).await.unwrap();
        Self { tenant: store.tenant(&TenantId::parse("default").unwrap()), thread }
    }

    /// The run of the thread, once its message was accepted.
    pub(super) async fn run(&self) -> Option<RunRecord> {
        let query = RunQuery { thread_id: Some(self.thread), ..RunQuery::default() };
        let runs = self.tenant.runs(query, PageRequest::default()).await.unwrap().data;
        assert!(runs.len() <= 1, "a message became two runs");
        runs.first().cloned()
    }

    /// The places of turns that were finished: nobody may ask for them again.
    pub(super) async fn finished_turns(&self, run: RunId) -> BTreeSet<String> {
        let steps = self.tenant.steps(run).await.unwrap();
        let turns =
            steps.into_iter().filter(|step| step.kind == StepKind::Turn && step.state == StepState::Finished);
        turns.map(|step| step.path).collect()
    }

    /// Everything that was announced is kept: numbers have no gap, and none was said that is not there.
    pub(super) async fn check_events(&self, run: RunId, announced: &[Value]) -> usize {
        let events = self.tenant.events(self.thread, 0, 10_000).await.unwrap();
        let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "a gap or a duplicate");
        assert!(events.iter().all(|event| event.run_id == run));
        for line in announced {
            let told = &line["metadata"]["baton"];
            let kept = told["seq"].as_u64().and_then(|seq| events.get(usize::try_from(seq).unwrap() - 1));
            let kept = kept.unwrap_or_else(|| panic!("announced and not kept: {line}"));
            assert_eq!(told["run_id"], json!(kept.run_id), "another event has that number");
        }
        events.iter().filter(|event| event.kind.is_end()).count()
    }
}

pub(super) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap().block_on(work)
}

/// Conversations until the run was killed at work often enough. `make soak` wants more of them, each time others.
pub(super) fn until<F: Future<Output = usize>>(seed: u64, wanted: usize, survive: impl Fn(u64) -> F) {
    let soak = std::env::var("BATON_SOAK").ok().map(|factor| factor.parse::<usize>().unwrap());
    let wanted = wanted * soak.unwrap_or(1);
    let seed = if soak.is_some() { fastrand::u64(..1 << 40) } else { seed };
    println!("seed {seed}");
    let mut hits = 0;
    let mut conversation = 0;
    while hits < wanted {
        conversation += 1;
        assert!(conversation < wanted as u64 * 4, "the kills never meet the run: {hits} of {wanted}");
        hits += block_on(survive(seed * 1000 + conversation));
    }
}
