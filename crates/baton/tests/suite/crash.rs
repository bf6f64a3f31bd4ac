//! Kill -9 at random moments of a run with many steps; what was acknowledged is there, what was finished is not done again, and
//! the run ends.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_core::event::EventKind;
use baton_core::ledger::Called;
use baton_core::message::Role;
use baton_core::store::{MessageQuery, PageRequest, RunQuery, RunRecord, RunStatus, StepKind, StepState};
use baton_core::{RunId, Store, TenantId, TenantStore, ThreadId};
use serde_json::{Value, json};

use crate::{baton, postgres};

/// Tools of the first and the second turn; each writes its name once.
const FIRST: [&str; 3] = ["one", "two", "three"];
const SECOND: [&str; 2] = ["four", "five"];
const PIECES: usize = 12;

/// A slow provider that knows from the conversation which turn it is, and counts what it is asked.
struct Provider {
    base_url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

#[derive(Debug, Clone)]
struct Asked {
    turn: usize,
    was_told_unknown: bool,
}

impl Provider {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        // Both threads end with the test's process: nobody else can reach them.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let log = Arc::clone(&log);
                std::thread::spawn(move || serve(stream, &log));
            }
        });
        Self { base_url, asked }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// A client that is killed in the middle is not an error.
fn serve(mut stream: TcpStream, log: &Mutex<Vec<Asked>>) -> Option<()> {
    let request = read_request(&stream)?;
    let messages = request["messages"].as_array()?;
    let turn = 1 + messages.iter().filter(|message| message["role"] == "assistant").count();
    let was_told_unknown = messages.iter().any(|message| {
        message["role"] == "tool" && message["content"].to_string().contains("outcome is unknown")
    });
    log.lock().unwrap().push(Asked { turn, was_told_unknown });
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).ok()?;
    let frames = match turn {
        1 => vec![calls(&FIRST)],
        2 => vec![text("Half of it is done. "), calls(&SECOND)],
        _ => (0..PIECES).map(|piece| text(&format!("piece {piece} "))).collect(),
    };
    for frame in frames {
        std::thread::sleep(Duration::from_millis(12));
        stream.write_all(frame.as_bytes()).ok()?;
    }
    let finish = if turn < 3 { "tool_calls" } else { "stop" };
    let usage = json!({"id": "1", "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}});
    let end = frame(&json!({}), &json!(finish)) + &format!("data: {usage}\n\ndata: [DONE]\n\n");
    stream.write_all(end.as_bytes()).ok()
}

fn read_request(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn frame(delta: &Value, finish: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    format!("data: {}\n\n", json!({"id": "1", "choices": [choice]}))
}

fn text(content: &str) -> String {
    frame(&json!({"content": content}), &Value::Null)
}

/// Parallel calls: each takes a moment and then leaves a trace that tells how often it ran.
fn calls(names: &[&str]) -> String {
    let calls: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let arguments = json!({"command": format!("sleep 0.03; echo {name} >> effects; sleep 0.03")});
            let function = json!({"name": "shell", "arguments": arguments.to_string()});
            json!({"index": index, "id": format!("call_{name}"), "type": "function", "function": function})
        })
        .collect();
    frame(&json!({"tool_calls": calls}), &Value::Null)
}

/// A project whose agent may use the shell.
fn project(base_url: &str, store: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    let agent = "---\ndescription: Helps.\ntools: [shell]\n---\nYou help.\n";
    std::fs::write(dir.path().join("agents/a.md"), agent).unwrap();
    let config = format!(
        "[agents]\nmain = \"a\"\n[store]\nurl = \"{store}\"\n[models]\ndefault = \"local/m\"\n[models.providers.local]\n\
         base_url = \"{base_url}\"\n[tools.shell]\nenabled = true\n"
    );
    std::fs::write(dir.path().join("baton.toml"), config).unwrap();
    dir
}

/// Starts a command, lets it live for a random moment, kills it, and returns the events it had announced.
fn live_and_die(dir: &Path, args: &[&str], moment: Duration) -> Vec<Value> {
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
struct Seen {
    tenant: Arc<dyn TenantStore>,
    thread: ThreadId,
}

impl Seen {
    async fn open(dir: &Path, store: &str, thread: ThreadId) -> Self {
        let store = baton_store::open(store, dir).await.unwrap();
        Self { tenant: store.tenant(&TenantId::parse("default").unwrap()), thread }
    }

    /// The run of the thread, once its message was accepted.
    async fn run(&self) -> Option<RunRecord> {
        let query = RunQuery { thread_id: Some(self.thread), ..RunQuery::default() };
        let runs = self.tenant.runs(query, PageRequest::default()).await.unwrap().data;
        assert!(runs.len() <= 1, "a message became two runs");
        runs.first().cloned()
    }

    /// Turns that were finished: nobody may ask for them again.
    async fn finished_turns(&self, run: RunId) -> BTreeSet<usize> {
        let steps = self.tenant.steps(run).await.unwrap();
        let turns =
            steps.iter().filter(|step| step.kind == StepKind::Turn && step.state == StepState::Finished);
        turns.map(|step| step.path.rsplit(':').next().unwrap().parse().unwrap()).collect()
    }

    /// Everything that was announced is kept: numbers have no gap, and none was said that is not there.
    async fn check_events(&self, run: RunId, announced: &[Value]) -> usize {
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

/// One conversation that is killed `kills` times before it may end. Returns how many kills met the run at work.
async fn survive(store: &str, chance: u64, kills: usize) -> usize {
    let provider = Provider::start();
    let dir = project(&provider.base_url, store);
    let thread = ThreadId::random();
    let id = thread.to_string();
    let seen = Seen::open(dir.path(), store, thread).await;
    let mut random = fastrand::Rng::with_seed(chance);
    let mut hits = 0;
    let mut finished = BTreeSet::new();
    for _ in 0..kills {
        let first = ["run", "--json", "--approve", "all", "--thread", &id, "Go"];
        let accepted = seen.run().await;
        let args: &[&str] = if accepted.is_some() { &["runs", "resume"] } else { &first };
        let before = provider.asked().len();
        let moment = Duration::from_millis(random.u64(30..350));
        let announced = live_and_die(dir.path(), args, moment);
        let Some(RunRecord { run_id, status, attempts: claims, .. }) = seen.run().await else {
            assert!(announced.is_empty(), "announced before it was accepted");
            continue;
        };
        let ends = seen.check_events(run_id, &announced).await;
        assert_eq!(ends, usize::from(status.is_final()), "one end, when it has ended");
        check_turns(&provider.asked()[before..], &finished);
        finished = seen.finished_turns(run_id).await;
        // Met at work: this process had claimed it.
        hits += usize::from(status == RunStatus::Running && claims > accepted.map_or(0, |run| run.attempts));
        if status.is_final() {
            break;
        }
    }
    end_well(&seen, &provider, dir.path(), &finished, kills).await;
    hits
}

/// No turn was asked for that had been finished before.
fn check_turns(asked: &[Asked], finished: &BTreeSet<usize>) {
    for Asked { turn, .. } in asked {
        assert!(!finished.contains(turn), "turn {turn} was finished and is asked for again");
    }
}

/// Nobody kills it any more: it ends, and nothing was lost or done twice.
async fn end_well(seen: &Seen, provider: &Provider, dir: &Path, finished: &BTreeSet<usize>, kills: usize) {
    let before = provider.asked().len();
    if seen.run().await.is_none() {
        let id = seen.thread.to_string();
        let ran = baton(dir, &["run", "--approve", "all", "--thread", &id, "Go"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let ran = baton(dir, &["runs", "resume"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let RunRecord { run_id: run, status, .. } = seen.run().await.unwrap();
    assert_eq!(status, RunStatus::Completed, "{}", ran.stderr);
    check_turns(&provider.asked()[before..], finished);
    assert_eq!(seen.check_events(run, &[]).await, 1, "exactly one end");
    let query = MessageQuery::last(50);
    let messages = seen.tenant.messages(seen.thread, query).await.unwrap();
    let roles: Vec<Role> = messages.iter().map(|message| message.message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant], "each message once");
    let answer: String = (0..PIECES).map(|piece| format!("piece {piece} ")).collect();
    assert_eq!(messages[1].message.text(), answer);
    check_effects(seen, provider, dir, run, kills).await;
}

/// Each effect happened at most once; one that is missing or whose end nobody saw was told to the model as unknown.
async fn check_effects(seen: &Seen, provider: &Provider, dir: &Path, run: RunId, kills: usize) {
    let effects = std::fs::read_to_string(dir.join("effects")).unwrap_or_default();
    let lines: Vec<&str> = effects.lines().collect();
    let unique: BTreeSet<&str> = lines.iter().copied().collect();
    assert_eq!(lines.len(), unique.len(), "an effect happened twice: {lines:?}");
    let events = seen.tenant.run_events(run, 0, 10_000).await.unwrap();
    let unknown = events.iter().filter(|event| {
        matches!(&event.kind, EventKind::ToolReturned { output, .. } if output.contains("outcome is unknown"))
    });
    let unknown = unknown.count();
    assert!(unique.len() + unknown >= FIRST.len() + SECOND.len(), "{unique:?} and {unknown} unknown");
    let was_told = provider.asked().iter().any(|asked| asked.was_told_unknown);
    assert_eq!(was_told, unknown > 0, "the model is told what nobody knows");
    let rows = seen.tenant.ledger(run).await.unwrap();
    let calls = rows.iter().filter(|row| matches!(row.call, Called::Model { .. })).count();
    // A call is made while it is written down, so each kill can leave one without the other.
    let asked = provider.asked().len();
    assert!(calls.abs_diff(asked) <= kills, "{calls} rows for {asked} calls and {kills} kills");
    let cut = rows.iter().filter(|row| row.error.as_deref() == Some("interrupted")).count();
    assert_eq!(calls - cut, 3, "each turn was finished once");
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap().block_on(work)
}

/// Conversations until the run was killed at work often enough. `make soak` wants more of them, each time others.
fn crash(store: &str, seed: u64, wanted: usize) {
    let soak = std::env::var("BATON_SOAK").ok().map(|factor| factor.parse::<usize>().unwrap());
    let wanted = wanted * soak.unwrap_or(1);
    let seed = if soak.is_some() { fastrand::u64(..1 << 40) } else { seed };
    println!("seed {seed}");
    let mut hits = 0;
    let mut conversation = 0;
    while hits < wanted {
        conversation += 1;
        assert!(conversation < wanted as u64 * 4, "the kills never meet the run: {hits} of {wanted}");
        hits += block_on(survive(store, seed * 1000 + conversation, 8));
    }
}

#[test]
fn nothing_is_lost_on_sqlite_1() {
    crash("sqlite://baton.db", 1, 13);
}

#[test]
fn nothing_is_lost_on_sqlite_2() {
    crash("sqlite://baton.db", 2, 13);
}

#[test]
fn nothing_is_lost_on_sqlite_3() {
    crash("sqlite://baton.db", 3, 13);
}

#[test]
fn nothing_is_lost_on_sqlite_4() {
    crash("sqlite://baton.db", 4, 13);
}

#[test]
fn nothing_is_lost_on_postgres() {
    crash(&postgres::fresh(), 5, 10);
}
