//! A process that dies at any of its writes, in any conversation: the next one goes on, and nothing is lost or said twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_core::agent::AcceptsHandoff;
use baton_core::chat::ChatMessage;
use baton_core::event::{Event, EventKind, HandoffPhase};
use baton_core::model::{Model, ModelFacts, ModelRequest, ReplyStream};
use baton_core::store::{HandoffSession, HandoffState, OnBusy, Owner, PageRequest, RunQuery};
use baton_core::{HandoffId, RunId, Store};
use baton_engine::{Engine, ModelRegistry, ProcessIdentity, RunRequest};
use baton_models::scripted::{Scripted, ScriptedTurn};
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio_util::sync::CancellationToken;

use super::{Talk, complete, maker, phases, transfer};
use crate::mortal::{Life, Mortal};
use crate::transfers::collaborates;
use crate::{Setup, name};

/// Answers by what it is told, so that it does not matter how often it is asked.
#[derive(Debug)]
struct Reacting;

fn text_of(parts: &[baton_core::Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        baton_core::Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

impl Reacting {
    fn turn(request: &ModelRequest<'_>) -> ScriptedTurn {
        let text = match request.messages.last() {
            Some(ChatMessage::User { parts }) => text_of(parts),
            Some(ChatMessage::Tool(result)) => format!("told: {}", result.content),
            _ => String::new(),
        };
        match request.agent.as_str() {
            "a" if text.contains("yours again") => ScriptedTurn::text("Great, it is there."),
            "a" if text.contains("create a skill") && !text.starts_with("told:") => transfer("maker"),
            "a" => ScriptedTurn::text("I am here."),
            _ if text.contains("done") => complete(),
            _ => ScriptedTurn::text("And then?"),
        }
    }
}

impl Model for Reacting {
    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        Scripted::default().script(request.agent.as_str(), [Self::turn(request)]).stream(request)
    }

    fn facts(&self, _: &str) -> ModelFacts {
        ModelFacts::default()
    }
}

fn reacting() -> Setup {
    let mut setup = Setup::new(&Scripted::default());
    setup.models = ModelRegistry::new(baton_core::agent::ModelName::parse("scripted/m").unwrap())
        .with_provider(Arc::new(Reacting) as Arc<dyn Model>);
    let main = |a: &mut baton_core::Agent| {
        "Assistant".clone_into(&mut a.display_name);
        collaborates(a, &["maker"]);
    };
    let fixer = |agent: &mut baton_core::Agent| {
        "Debugging Assistant".clone_into(&mut agent.display_name);
        let triggers = vec!["help me debug".to_owned()];
        agent.accepts_handoff = Some(AcceptsHandoff { triggers, ..AcceptsHandoff::default() });
    };
    let other = |agent: &mut baton_core::Agent| agent.accepts_handoff = Some(AcceptsHandoff::default());
    setup.agent(main).with("maker", maker).with("other", other).with("fixer", fixer)
}

/// One process after the other on the same store.
struct World {
    store: Arc<dyn Store>,
    talk: Talk,
    processes: u32,
}

impl World {
    async fn new() -> Self {
        let talk = Talk::new(reacting()).await;
        Self { store: Arc::clone(&talk.engine.parts.store), talk, processes: 0 }
    }

    /// Another process, which dies at a write if it is to.
    async fn process(&mut self, life: Option<Arc<Life>>) -> Arc<Engine> {
        let (mut parts, _) = reacting().parts().await;
        self.processes += 1;
        parts.store = match life {
            Some(life) => Arc::new(Mortal { inner: Arc::clone(&self.store), life }),
            None => Arc::clone(&self.store),
        };
        parts.identity =
            ProcessIdentity { owner: Owner(format!("p{}", self.processes).into()), is_gone: |_| true };
        Engine::new(parts)
    }

    async fn open(&self) -> Option<HandoffSession> {
        self.talk.open().await
    }

    /// What one process does until it is done or dead, and then another that takes up what is left.
    async fn act(&mut self, deed: &Deed, life: Option<(u32, bool)>) -> bool {
        let life = life.map(|(writes, is_made)| Life::of(writes, is_made));
        let engine = self.process(life.clone()).await;
        let end = life.map(|life| life.end.clone()).unwrap_or_default();
        let before = self.asked().await;
        let (talk, doing) =
            (Talk { engine: Arc::clone(&engine), request: self.talk.request.clone() }, deed.clone());
        // In a runtime of its own, which is gone when the process is.
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let work = runtime.spawn(async move {
            doing.done_by(&talk).await;
            talk.engine.idle().await;
        });
        tokio::select! {
            work = work => work.unwrap(),
            () = end.cancelled() => {}
        }
        let has_died = end.is_cancelled();
        runtime.shutdown_background();
        let next = self.process(None).await;
        next.recover().await.unwrap();
        next.idle().await;
        // A message that was not accepted is said again, as a person would.
        if deed.is_said() && self.asked().await == before {
            let talk = Talk { engine: Arc::clone(&next), request: self.talk.request.clone() };
            deed.done_by(&talk).await;
            next.idle().await;
        }
        has_died
    }

    async fn asked(&self) -> usize {
        let said = self.talk.said_or_nothing().await;
        said.iter().filter(|line| line.starts_with("person:")).count()
    }

    /// What always holds once everything is at rest.
    async fn is_sound(&self) {
        let thread = self.talk.request.caller.thread_id;
        let store = self.store.tenant(&self.talk.request.caller.tenant);
        let Ok(found) = store.thread(thread, None).await else { return };
        let open = self.open().await;
        assert_eq!(found.handoff, open.as_ref().map(|open| open.handoff_id));
        let log = super::log(&store.events(thread, 0, 10_000).await.unwrap());
        let holder = found.holder.unwrap_or_else(|| panic!("nobody has it:\n{log}"));
        match &open {
            Some(open) => {
                assert_eq!(open.state, HandoffState::Active, "nothing stays half done");
                assert_eq!(holder, open.target_agent_id);
                assert!(open.expires_at.is_some());
            }
            None => assert_eq!(holder, name("a")),
        }
        let runs = store.runs(RunQuery::default(), PageRequest::default()).await.unwrap().data;
        assert!(runs.iter().all(|run| run.status.is_final()), "{runs:?}");
        let events = store.events(thread, 0, 10_000).await.unwrap();
        each_run_begins_and_ends_once(&events);
        for phases in by_handoff(&events).values() {
            follow_each_other(phases);
        }
    }
}

fn each_run_begins_and_ends_once(events: &[Event]) {
    let mut counts: BTreeMap<RunId, (u32, u32)> = BTreeMap::new();
    for event in events {
        let count = counts.entry(event.run_id).or_default();
        count.0 += u32::from(matches!(event.kind, EventKind::RunStarted { .. }));
        count.1 += u32::from(event.kind.is_end());
    }
    assert!(counts.values().all(|count| *count == (1, 1)), "{counts:?}");
}

fn by_handoff(events: &[Event]) -> BTreeMap<HandoffId, Vec<HandoffPhase>> {
    let mut all: BTreeMap<HandoffId, Vec<HandoffPhase>> = BTreeMap::new();
    for event in events {
        if let EventKind::Handoff(handoff) = &event.kind {
            all.entry(handoff.handoff_id).or_default().push(handoff.phase);
        }
    }
    all
}

/// What the person hears of one handoff makes sense: it connects, is active, perhaps returns, ends, and perhaps goes on.
fn follow_each_other(phases: &[HandoffPhase]) {
    use HandoffPhase::{Active, Cancelled, Completed, Connecting, Error, Returning};
    let mut last = None;
    for phase in phases {
        let may = match last {
            // A handoff may end before anybody could say that it had begun.
            None => matches!(phase, Connecting | Cancelled | Error),
            Some(Connecting) => matches!(phase, Active | Cancelled | Error | Completed),
            // It may end and go on before anybody was told that it had ended.
            Some(Active) => matches!(phase, Connecting | Active | Returning | Completed | Cancelled | Error),
            Some(Returning) => matches!(phase, Completed | Cancelled | Error),
            Some(Cancelled | Error) => matches!(phase, Connecting | Active),
            Some(Completed) => false,
        };
        assert!(may, "{phases:?}");
        last = Some(*phase);
    }
}

/// What can happen in a conversation.
#[derive(Debug, Clone, PartialEq)]
enum Deed {
    Say(&'static str),
    Exit,
    Start(&'static str),
    Resume,
    Expire,
}

impl Deed {
    fn is_said(&self) -> bool {
        matches!(self, Self::Say(_))
    }

    async fn done_by(&self, talk: &Talk) {
        let thread = talk.request.caller.thread_id;
        match self {
            Self::Say(text) => {
                let request = RunRequest { on_busy: OnBusy::Enqueue, ..talk.saying(text) };
                talk.engine.start(request).await.unwrap().finish().await;
            }
            // Refusals are as good as anything else: what counts is what is there afterwards.
            Self::Exit => drop(talk.engine.exit_handoff(talk.leaving()).await),
            Self::Start(target) => drop(talk.engine.start_handoff(talk.asking_for(target)).await),
            Self::Resume => {
                let store = talk.store();
                if let Some(last) = store.resumable_handoffs(thread).await.unwrap_or_default().first() {
                    drop(talk.engine.resume_handoff(talk.leaving(), last.handoff_id).await);
                }
            }
            Self::Expire => {
                let Ok(Some(open)) = talk.store().open_handoff_of(thread).await else { return };
                let past = Timestamp::now().saturating_sub(jiff::SignedDuration::from_secs(1)).unwrap();
                drop(talk.store().update_handoff(HandoffSession { expires_at: Some(past), ..open }).await);
            }
        }
    }
}

/// A process reads a handoff that has expired and is paused before it ends it. Meanwhile another process ends the handoff, and the
/// person resumes it.
#[tokio::test(flavor = "multi_thread")]
async fn paused_process_does_not_end_a_handoff_that_was_resumed() {
    let mut world = World::new().await;
    for deed in [Deed::Say("create a skill"), Deed::Expire] {
        world.act(&deed, None).await;
    }
    let resumed = CancellationToken::new();
    let pause = Life::paused_at(1, resumed.clone());
    let process = world.process(Some(Arc::clone(&pause))).await;
    let caller = world.talk.request.caller.clone();
    let looking =
        tokio::spawn(async move { process.open_handoff(&caller.tenant, caller.thread_id).await.unwrap() });
    pause.end.cancelled().await;
    for deed in [Deed::Say("hello"), Deed::Resume] {
        world.act(&deed, None).await;
    }
    let open = world.open().await;
    assert_eq!(open.as_ref().map(|open| open.state), Some(HandoffState::Active));
    resumed.cancel();
    assert_eq!(looking.await.unwrap(), open, "the resumed handoff is found");
    assert_eq!(world.open().await, open, "the resumed handoff is not changed");
}

const STORY: [Deed; 3] = [Deed::Say("create a skill"), Deed::Say("it sends alerts"), Deed::Say("done")];

/// C-10, FR-8: kill -9 at every single write of a whole handoff, each time before the write and after it.
#[test]
fn c_10_handoff_survives_a_crash_at_every_write() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for (at, _) in STORY.iter().enumerate() {
            for is_made in [false, true] {
                for writes in 1.. {
                    if !dies_at(at, writes, is_made).await {
                        break;
                    }
                    assert!(writes < 100, "it never gets through");
                }
            }
        }
    });
}

/// Tells the story with a process that dies at a write of one of its chapters. False if that chapter has fewer writes.
async fn dies_at(chapter: usize, writes: u32, is_made: bool) -> bool {
    let mut world = World::new().await;
    let mut has_died = false;
    for (at, deed) in STORY.iter().enumerate() {
        let life = (at == chapter).then_some((writes, is_made));
        has_died |= world.act(deed, life).await;
        world.is_sound().await;
    }
    let what = format!("chapter {chapter}, write {writes}, made: {is_made}");
    let phases: Vec<HandoffPhase> =
        phases(&world.talk.events().await).into_iter().map(|(phase, _)| phase).collect();
    let whole =
        [HandoffPhase::Connecting, HandoffPhase::Active, HandoffPhase::Returning, HandoffPhase::Completed];
    assert_eq!(phases, whole, "{what}");
    let said = world.talk.said().await;
    let expected = [
        "person: create a skill",
        "a: I'll connect you with our Skill Creation Assistant.",
        "maker: And then?",
        "person: it sends alerts",
        "maker: And then?",
        "person: done",
        "a: Great, it is there.",
    ];
    assert_eq!(said, expected, "{what}");
    has_died
}

/// K7: each sentence is said once, wherever the process dies.
const ANNOUNCED: &str = "a: I'll connect you with our Skill Creation Assistant.";
const FIXER: &str = "a: I'll connect you with our Debugging Assistant.";
const SECOND: &str = "Help me debug my crashing service";
const QUESTION: &str =
    "maker: You're currently in a skill creation session. Would you like to finish that first?";

/// Each reply to the question whether to finish first, with what is said from then on, and who has the thread.
const REPLIES: [(&[&str], &[&str], &str); 4] = [
    (
        &["yes", "it sends alerts"],
        &[
            "person: yes",
            "maker: All right, let's finish this first.\n\nname?",
            "person: it sends alerts",
            "maker: And then?",
        ],
        "maker",
    ),
    (&["no"], &["person: no", FIXER, "fixer: And then?"], "fixer"),
    (
        &["later", "done"],
        &[
            "person: later",
            "maker: All right, I'll connect you with Debugging Assistant as soon as we're done here.\n\nname?",
            "person: done",
            "a: Great, it is there.",
            FIXER,
            "fixer: And then?",
        ],
        "fixer",
    ),
    (
        &["later", "cancel"],
        &[
            "person: later",
            "maker: All right, I'll connect you with Debugging Assistant as soon as we're done here.\n\nname?",
            "person: cancel",
            "a: Let me know if you'd like to continue creating that skill later.",
            FIXER,
            "fixer: And then?",
        ],
        "fixer",
    ),
];

/// C-13: kill -9 at every write of a second request and of each reply to the question about it: asked, finished, paused, queued and
/// carried out.
#[test]
fn c_13_second_request_survives_a_crash_at_every_write() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for (replies, said, holder) in REPLIES {
            let story: Vec<Deed> =
                ["create a skill", SECOND].iter().chain(replies).map(|words| Deed::Say(words)).collect();
            // The question is the same for all replies.
            let first = if said[0] == "person: yes" { 1 } else { 2 };
            for chapter in first..story.len() {
                for is_made in [false, true] {
                    for writes in 1.. {
                        let mut world = World::new().await;
                        let mut has_died = false;
                        for (at, deed) in story.iter().enumerate() {
                            let life = (at == chapter).then_some((writes, is_made));
                            has_died |= world.act(deed, life).await;
                            world.is_sound().await;
                        }
                        let what = format!("{replies:?}, chapter {chapter}, write {writes}, made: {is_made}");
                        let second = format!("person: {SECOND}");
                        let begun =
                            ["person: create a skill", ANNOUNCED, "maker: And then?", &second, QUESTION];
                        let expected: Vec<&str> = begun.into_iter().chain(said.iter().copied()).collect();
                        assert_eq!(world.talk.said().await, expected, "{what}");
                        assert_eq!(world.talk.holder().await, holder, "{what}");
                        let thread = world.talk.request.caller.thread_id;
                        for handoff in world.talk.store().handoffs(thread).await.unwrap() {
                            let kept = handoff.workflow.map(|workflow| workflow.data["values"].to_string());
                            assert!(!kept.unwrap_or_default().contains("debug"), "{what}");
                        }
                        if !has_died {
                            break;
                        }
                        assert!(writes < 100, "it never gets through");
                    }
                }
            }
        }
    });
}

/// C-6, C-12: whatever people do and whenever processes die, somebody has the thread, and never two.
#[test]
fn c_6_c_12_every_sequence_of_actions_and_crashes_leaves_one_holder() {
    let deed = prop_oneof![
        3 => Just(Deed::Say("create a skill")),
        3 => Just(Deed::Say("it sends alerts")),
        2 => Just(Deed::Say("done")),
        1 => Just(Deed::Say("cancel")),
        1 => Just(Deed::Say("continue")),
        1 => Just(Deed::Say("hello")),
        2 => Just(Deed::Say(SECOND)),
        1 => Just(Deed::Say("yes")),
        1 => Just(Deed::Say("no")),
        1 => Just(Deed::Say("later")),
        2 => Just(Deed::Exit),
        1 => Just(Deed::Start("maker")),
        1 => Just(Deed::Start("other")),
        2 => Just(Deed::Resume),
        1 => Just(Deed::Expire),
    ];
    let death = prop_oneof![2 => Just(None), 1 => (1_u32..14, any::<bool>()).prop_map(Some)];
    let story = prop::collection::vec((deed, death), 1..9);
    let cases = std::env::var("BATON_SOAK")
        .ok()
        .and_then(|soak| soak.parse::<u32>().ok())
        .map_or(40, |soak| soak * 400);
    let mut runner = TestRunner::new(Config {
        cases,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&story, |story| {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let mut world = World::new().await;
                world.act(&Deed::Say("hello"), None).await;
                for (deed, death) in &story {
                    world.act(deed, *death).await;
                    world.is_sound().await;
                }
                // Whoever has it answers, and the person can always leave.
                // One whose time is over ends when somebody looks.
                let caller = &world.talk.request.caller;
                world.talk.engine.open_handoff(&caller.tenant, caller.thread_id).await.unwrap();
                let holder = world.talk.holder().await;
                let ran = world.talk.say("what now").await;
                prop_assert_eq!(ran.end.answered_by.map(|agent| agent.to_string()), Some(holder));
                // The second one leaves the agent whose request was queued.
                for _ in 0..2 {
                    world.act(&Deed::Say("cancel"), None).await;
                }
                prop_assert_eq!(world.talk.holder().await, "a");
                Ok(())
            })
        })
        .unwrap();
}
