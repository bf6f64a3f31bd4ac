//! Kill -9 at random moments of a run with many steps; what was acknowledged is there, what was finished is not done again, and
//! the run ends.

mod approvals;
mod patterns;
mod seen;
mod server;
mod spool;
pub(crate) mod wire;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_core::event::EventKind;
use baton_core::ledger::Called;
use baton_core::message::Role;
use baton_core::store::{MessageQuery, RunRecord, RunStatus};
use baton_core::{RunId, ThreadId};
use serde_json::{Value, json};

use self::seen::{Seen, live_and_die, until};
use self::wire::Answer;
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
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        Self { base_url: wire::serve(move |request| answer(request, &log)), asked }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(request: &Value, log: &Mutex<Vec<Asked>>) -> Option<Answer> {
    let messages = request["messages"].as_array()?;
    let turn = 1 + messages.iter().filter(|message| message["role"] == "assistant").count();
    let was_told_unknown = messages.iter().any(|message| {
        message["role"] == "tool" && message["content"].to_string().contains("outcome is unknown")
    });
    log.lock().unwrap().push(Asked { turn, was_told_unknown });
    let frames = match turn {
        1 => vec![calls(&FIRST)],
        2 => vec![wire::text("Half of it is done. "), calls(&SECOND)],
        _ => (0..PIECES).map(|piece| wire::text(&format!("piece {piece} "))).collect(),
    };
    Some(Answer { frames, finish: if turn < 3 { "tool_calls" } else { "stop" } })
}

/// Parallel calls: each takes a moment and then leaves a trace that tells how often it ran.
fn calls(names: &[&str]) -> String {
    let call = |name: &&str| {
        let arguments = json!({"command": format!("sleep 0.03; echo {name} >> effects; sleep 0.03")});
        ("shell", format!("call_{name}"), arguments)
    };
    wire::calls(&names.iter().map(call).collect::<Vec<_>>())
}

/// A project whose agent may use the shell.
pub(crate) fn project(base_url: &str, store: &str) -> tempfile::TempDir {
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
fn check_turns(asked: &[Asked], finished: &BTreeSet<String>) {
    for Asked { turn, .. } in asked {
        let place = format!("a/turn:{turn}");
        assert!(!finished.contains(&place), "turn {turn} was finished and is asked for again");
    }
}

/// Nobody kills it any more: it ends, and nothing was lost or done twice.
async fn end_well(seen: &Seen, provider: &Provider, dir: &Path, finished: &BTreeSet<String>, kills: usize) {
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

fn crash(store: &str, seed: u64, wanted: usize) {
    until(seed, wanted, |chance| survive(store, chance, 8));
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
    crash(&postgres::new_span_id(), 5, 10);
}
