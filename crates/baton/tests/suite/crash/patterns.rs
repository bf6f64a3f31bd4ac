//! The same for runs of several agents: those who have finished their part do not play it again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_core::ThreadId;
use baton_core::event::EventKind;
use baton_core::ledger::Called;
use baton_core::message::Role;
use baton_core::store::{MessageQuery, RunRecord, RunStatus};
use serde_json::{Value, json};

use super::seen::{Seen, live_and_die, until};
use super::wire::{self, Answer};
use crate::{baton, postgres};

const KILLS: usize = 8;

/// Who works with whom, and what comes of it.
struct Pattern {
    /// Agent files: name and frontmatter.
    agents: &'static [(&'static str, &'static str)],
    /// The first to be asked.
    main: &'static str,
    /// Model calls of a run that nobody disturbs.
    calls: usize,
    /// Who gives the answer.
    speaker: &'static str,
}

const FAN_OUT: Pattern = Pattern {
    agents: &[("main", "agents: [b, c, d]"), ("b", ""), ("c", ""), ("d", "")],
    main: "main",
    calls: 5,
    speaker: "main",
};

const CHAIN: Pattern = Pattern {
    agents: &[("first", "handoff: second"), ("second", "handoff: third"), ("third", "")],
    main: "first",
    calls: 3,
    speaker: "third",
};

const TEAM: Pattern = Pattern {
    agents: &[
        ("lead", "team: { members: [b, c], termination_mode: max_rounds, max_rounds: 2 }"),
        ("b", ""),
        ("c", ""),
    ],
    main: "lead",
    calls: 5,
    speaker: "lead",
};

/// One request: who asked, and how often that agent had spoken before in the same conversation.
type Place = (String, usize);

/// A slow provider that knows from the system prompt who asks.
#[derive(Clone, Default)]
struct Provider {
    asked: Arc<Mutex<Vec<Place>>>,
}

impl Provider {
    fn answer(&self, request: &Value) -> Option<Answer> {
        let messages = request["messages"].as_array()?;
        let system = messages.iter().find(|message| message["role"] == "system")?["content"].as_str()?;
        let agent = system.trim().strip_prefix("You are ")?.strip_suffix('.')?.to_owned();
        let spoken = messages.iter().filter(|message| message["role"] == "assistant").count();
        self.asked.lock().unwrap().push((agent.clone(), spoken));
        let delegates = agent == "main" && spoken == 0;
        let frames = if delegates {
            let arguments = json!({"agents": ["b", "c", "d"], "message": "Look it up."});
            vec![wire::calls(&[("delegate", "call_1".to_owned(), arguments)])]
        } else {
            (0..4).map(|piece| wire::text(&format!("{agent} says {piece}. "))).collect()
        };
        Some(Answer { frames, finish: if delegates { "tool_calls" } else { "stop" } })
    }

    fn asked(&self) -> Vec<Place> {
        self.asked.lock().unwrap().clone()
    }
}

/// A turn's path as the provider sees it: members of a team have spoken once in each round before.
fn place(path: &str) -> Place {
    let last = |word: &str| {
        let mut segments = path.split('/').filter_map(|segment| segment.strip_prefix(word));
        segments.next_back().and_then(|number| number.parse::<usize>().ok())
    };
    let mut agent = path
        .split('/')
        .filter(|segment| !["turn:", "tool:", "round:"].iter().any(|w| segment.starts_with(w)));
    let agent = agent.next_back().unwrap().rsplit(':').next().unwrap().to_owned();
    let rounds = if path.contains("/member:") { last("round:").unwrap_or(1) - 1 } else { 0 };
    (agent, rounds + last("turn:").unwrap() - 1)
}

fn project(pattern: &Pattern, base_url: &str, store: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    for (name, head) in pattern.agents {
        let text = format!("---\ndescription: Helps.\n{head}\n---\nYou are {name}.\n");
        std::fs::write(dir.path().join(format!("agents/{name}.md")), text).unwrap();
    }
    let config = format!(
        "[agents]\nmain = \"{}\"\n[store]\nurl = \"{store}\"\n[models]\ndefault = \"local/m\"\n\
         [models.providers.local]\nbase_url = \"{base_url}\"\n",
        pattern.main
    );
    std::fs::write(dir.path().join("baton.toml"), config).unwrap();
    dir
}

/// One conversation that is killed some times before it may end. Returns how many kills met the run at work.
async fn survive(pattern: &Pattern, store: &str, chance: u64) -> usize {
    let provider = Provider::default();
    let answers = provider.clone();
    let base_url = wire::serve(move |request| answers.answer(request));
    let dir = project(pattern, &base_url, store);
    let thread = ThreadId::random();
    let id = thread.to_string();
    let seen = Seen::open(dir.path(), store, thread).await;
    let mut random = fastrand::Rng::with_seed(chance);
    let (mut hits, mut finished) = (0, BTreeSet::new());
    for _ in 0..KILLS {
        let accepted = seen.run().await;
        let first = ["run", "--json", "--thread", &id, "Go"];
        let args: &[&str] = if accepted.is_some() { &["runs", "resume"] } else { &first };
        let before = provider.asked().len();
        let announced = live_and_die(dir.path(), args, Duration::from_millis(random.u64(30..300)));
        let Some(RunRecord { run_id, status, attempts: claims, .. }) = seen.run().await else { continue };
        let ends = seen.check_events(run_id, &announced).await;
        assert_eq!(ends, usize::from(status.is_final()), "one end, when it has ended");
        check_asked(&provider.asked()[before..], &finished);
        finished = seen.finished_turns(run_id).await;
        hits += usize::from(status == RunStatus::Running && claims > accepted.map_or(0, |run| run.attempts));
        if status.is_final() {
            break;
        }
    }
    end_well(pattern, &seen, &provider, dir.path(), &finished).await;
    hits
}

/// Nobody was asked again for what they had finished.
fn check_asked(asked: &[Place], finished: &BTreeSet<String>) {
    let finished: BTreeSet<Place> = finished.iter().map(|path| place(path)).collect();
    for asked in asked {
        assert!(!finished.contains(asked), "{asked:?} was finished and is asked for again");
    }
}

/// Nobody kills it any more: it ends, each part was played once, and each call is on the books once.
async fn end_well(
    pattern: &Pattern,
    seen: &Seen,
    provider: &Provider,
    dir: &Path,
    finished: &BTreeSet<String>,
) {
    let before = provider.asked().len();
    if seen.run().await.is_none() {
        let ran = baton(dir, &["run", "--thread", &seen.thread.to_string(), "Go"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let ran = baton(dir, &["runs", "resume"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let run = seen.run().await.unwrap();
    assert_eq!(run.status, RunStatus::Completed, "{}", ran.stderr);
    check_asked(&provider.asked()[before..], finished);
    assert_eq!(seen.check_events(run.run_id, &[]).await, 1, "exactly one end");
    let messages = seen.tenant.messages(seen.thread, MessageQuery::last(50)).await.unwrap();
    let said: Vec<_> = messages.iter().map(|one| &one.message).collect();
    assert_eq!(said.iter().map(|one| one.role).collect::<Vec<_>>(), [Role::User, Role::Assistant]);
    assert_eq!(said[1].agent.as_ref().unwrap().as_str(), pattern.speaker);
    check_sessions(seen, &run).await;
    let rows = seen.tenant.ledger(run.run_id).await.unwrap();
    let models: Vec<_> = rows.iter().filter(|row| matches!(row.call, Called::Model { .. })).collect();
    let cut = models.iter().filter(|row| row.error.as_deref() == Some("interrupted")).count();
    assert_eq!(models.len() - cut, pattern.calls, "each turn was finished once");
    let mut total = baton_core::Usage::default();
    for row in &rows {
        total += row.usage();
    }
    assert_eq!(run.usage, total, "the run costs what its rows cost");
}

/// Each session began and ended once for whoever listens.
async fn check_sessions(seen: &Seen, run: &RunRecord) {
    let events = seen.tenant.run_events(run.run_id, 0, 10_000).await.unwrap();
    let mut sessions: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for event in &events {
        match &event.kind {
            EventKind::SessionStarted { session_id, .. } => {
                sessions.entry(session_id.to_string()).or_default().0 += 1;
            }
            EventKind::SessionFinished { session_id } => {
                sessions.entry(session_id.to_string()).or_default().1 += 1;
            }
            _ => {}
        }
    }
    assert!(sessions.len() > 2 && sessions.values().all(|count| *count == (1, 1)), "{sessions:?}");
}

fn crash(pattern: &Pattern, store: &str, seed: u64, wanted: usize) {
    until(seed, wanted, |chance| survive(pattern, store, chance));
}

#[test]
fn a_fan_out_survives() {
    crash(&FAN_OUT, "sqlite://baton.db", 11, 12);
}

#[test]
fn a_chain_survives() {
    crash(&CHAIN, "sqlite://baton.db", 12, 12);
}

#[test]
fn a_team_survives() {
    crash(&TEAM, "sqlite://baton.db", 13, 12);
}

#[test]
fn a_team_survives_on_postgres() {
    crash(&TEAM, &postgres::new_span_id(), 14, 6);
}
