//! Runs that outlive their process. A process that dies is a runtime that is shut down in the middle, with nothing said to
//! anybody; what it leaves behind is what the store has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_core::agent::AgentLimits;
use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::ledger::CallOutcome;
use baton_core::message::Role;
use baton_core::store::{
    Append, Cancel, Claim, MessageQuery, OnBusy, Owner, PageRequest, RunQuery, RunStatus, Step,
};
use baton_core::tool::{Effect, ToolError};
use baton_core::{Event, Part, StoreError, ThreadId, UserId};
use baton_engine::{Engine, EngineParts, Failure, HeartbeatConfig, LimitKind, ProcessIdentity, RunRequest};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::{Setup, TestTool};

pub(super) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Who comes after somebody else on the same store, and takes everybody else for dead.
pub(super) fn successor(mut parts: EngineParts, before: &EngineParts) -> EngineParts {
    parts.store = Arc::clone(&before.store);
    parts.identity = ProcessIdentity { owner: Owner("successor".into()), is_gone: |_| true };
    parts
}

/// Starts a run in a process that dies as soon as `until` holds for an event. Returns its events and the store's owner.
pub(super) fn die(
    setup: Setup,
    until: impl Fn(&Event) -> bool + Send + 'static,
) -> (Arc<Engine>, RunRequest, Vec<Event>) {
    die_in(runtime(), setup, until)
}

pub(super) fn die_in(
    process: tokio::runtime::Runtime,
    setup: Setup,
    until: impl Fn(&Event) -> bool + Send + 'static,
) -> (Arc<Engine>, RunRequest, Vec<Event>) {
    let (engine, request, events) = process.block_on(async {
        let (parts, request) = setup.parts().await;
        let engine = Engine::new(parts);
        let mut run = engine.start(request.clone()).await.unwrap();
        let mut events = Vec::new();
        while let Some(event) = run.events.recv().await {
            let is_time = until(&event);
            events.push(event);
            if is_time {
                break;
            }
        }
        // Whoever dies cancels nothing.
        std::mem::forget(run);
        (engine, request, events)
    });
    process.shutdown_timeout(crate::LONG);
    (engine, request, events)
}

/// The process that comes after: takes up what was left, and looks at what is there in the end.
pub(super) fn go_on(setup: Setup, before: &Engine) -> After {
    go_on_in(&runtime(), setup, before)
}

pub(super) fn go_on_in(process: &tokio::runtime::Runtime, setup: Setup, before: &Engine) -> After {
    process.block_on(async {
        let (parts, request) = setup.parts().await;
        let engine = Engine::new(successor(parts, &before.parts));
        let recovered = engine.recover().await.unwrap();
        let store = engine.parts.store.tenant(&request.caller.tenant);
        let thread = request.caller.thread_id;
        let runs = store.runs(RunQuery::default(), PageRequest::default()).await.unwrap().data;
        let run = runs.last().unwrap().clone();
        After {
            recovered,
            events: store.events(thread, 0, 1000).await.unwrap(),
            rows: store.ledger(run.run_id).await.unwrap(),
            messages: store.messages(thread, MessageQuery::last(50)).await.unwrap(),
            run,
        }
    })
}

pub(super) struct After {
    pub(super) recovered: usize,
    pub(super) run: baton_core::store::RunRecord,
    pub(super) events: Vec<Event>,
    pub(super) rows: Vec<baton_core::LedgerRow>,
    pub(super) messages: Vec<baton_core::store::ThreadMessage>,
}

impl After {
    pub(super) fn count(&self, is: impl Fn(&EventKind) -> bool) -> usize {
        self.events.iter().filter(|event| is(&event.kind)).count()
    }

    /// Numbers without a gap, one beginning, one end.
    pub(super) fn is_sound(&self) {
        let numbers: Vec<u64> = self.events.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        assert_eq!(self.count(|kind| matches!(kind, EventKind::RunStarted { .. })), 1);
        assert_eq!(self.count(EventKind::is_end), 1);
        assert!(self.events.last().unwrap().kind.is_end());
    }
}

#[test]
fn run_resumes_where_its_process_died() {
    let first = Scripted::default().script(
        "a",
        [ScriptedTurn::call("look", &json!({})), ScriptedTurn::default().say("Half an an").hang()],
    );
    let looks = Arc::new(AtomicUsize::new(0));
    let look = || {
        let looks = Arc::clone(&looks);
        TestTool::new("look", move |_| {
            looks.fetch_add(1, Ordering::Relaxed);
            async { Ok("seen".to_owned()) }
        })
    };
    let (engine, _, heard) =
        die(Setup::new(&first).tool(look()), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    let cut = heard.iter().find_map(|event| match event.kind {
        EventKind::TextStarted { message_id, .. } => Some(message_id),
        _ => None,
    });
    let second = Scripted::default().script("a", [ScriptedTurn::text("A whole answer.")]);
    let after = go_on(Setup::new(&second).tool(look()), &engine);
    after.is_sound();
    assert_eq!((after.recovered, after.run.status, after.run.attempts), (1, RunStatus::Completed, 2));
    assert_eq!(second.asked().len(), 1, "the first turn is not taken again");
    assert_eq!(looks.load(Ordering::Relaxed), 1, "a finished call is not made again");
    let asked = &second.asked()[0].messages;
    assert!(matches!(asked.last(), Some(ChatMessage::Tool(result)) if &*result.content == "seen"));
    let restarted = after
        .count(|kind| matches!(kind, EventKind::TurnRestarted { message_id } if Some(*message_id) == cut));
    assert_eq!(restarted, 1, "whoever saw the half is told to drop it");
    let said: Vec<String> = after.messages.iter().map(|message| message.message.text()).collect();
    assert_eq!(said, ["What is up?", "A whole answer."], "A13");
    let interrupted = after.rows.iter().filter(|row| row.error.as_deref() == Some("interrupted"));
    let interrupted: Vec<_> = interrupted.collect();
    assert_eq!(interrupted.len(), 1, "the call that was cut is paid for");
    assert!(interrupted[0].estimated && interrupted[0].tokens.input_tokens > 0);
    assert_eq!(after.rows.len(), 4, "turn, tool, cut turn, turn");
    assert_eq!(
        after.run.usage.tokens.input_tokens,
        after.rows.iter().map(|row| row.tokens.input_tokens).sum::<u64>()
    );
}

/// A tool that never returns in the first process, and what the second one makes of it.
fn call_cut_short(effect: Effect) -> (After, Scripted, usize) {
    let first = Scripted::default().script("a", [ScriptedTurn::call("send", &json!({}))]);
    let calls = Arc::new(AtomicUsize::new(0));
    let tool = |returns: bool| {
        let calls = Arc::clone(&calls);
        let mut tool = TestTool::new("send", move |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            async move {
                if returns {
                    Ok("sent".to_owned())
                } else {
                    std::future::pending::<Result<String, ToolError>>().await
                }
            }
        });
        tool.spec.effect = effect;
        tool
    };
    let waits = Arc::clone(&calls);
    let (engine, _, _) = die(Setup::new(&first).tool(tool(false)), move |event| {
        let called = matches!(event.kind, EventKind::ToolCalled { .. });
        while called && waits.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        called
    });
    let second = Scripted::default().script("a", [ScriptedTurn::text("Done.")]);
    let after = go_on(Setup::new(&second).tool(tool(true)), &engine);
    after.is_sound();
    (after, second, calls.load(Ordering::Relaxed))
}

#[test]
fn writing_call_with_unknown_outcome_is_not_repeated() {
    let (after, second, calls) = call_cut_short(Effect::Writes);
    assert_eq!(calls, 1);
    let asked = &second.asked()[0].messages;
    let Some(ChatMessage::Tool(result)) = asked.last() else { panic!("{asked:?}") };
    assert!(result.failed && result.content.contains("outcome is unknown"), "{}", result.content);
    assert_eq!(after.count(|kind| matches!(kind, EventKind::ToolCalled { .. })), 1);
    assert_eq!(after.count(|kind| matches!(kind, EventKind::ToolReturned { .. })), 1);
    assert!(after.rows.iter().any(|row| row.error.as_deref() == Some("outcome_unknown")));
}

#[test]
fn read_only_and_repeatable_calls_are_repeated() {
    for effect in [Effect::ReadOnly, Effect::Repeatable] {
        let (after, second, calls) = call_cut_short(effect);
        assert_eq!(calls, 2);
        assert!(
            matches!(second.asked()[0].messages.last(), Some(ChatMessage::Tool(result)) if &*result.content == "sent")
        );
        assert_eq!(
            after.count(|kind| matches!(kind, EventKind::ToolCalled { .. })),
            1,
            "it was announced before"
        );
    }
}

#[test]
fn closing_turn_is_replayed_as_closing() {
    let limits = AgentLimits { max_turns: 1, ..AgentLimits::default() };
    let with = |model: &Scripted| {
        let limits = limits.clone();
        let look = TestTool::new("look", |_| async { Ok("seen".to_owned()) });
        Setup::new(model).tool(look).agent(move |agent| agent.limits = limits)
    };
    let first = Scripted::default()
        .script("a", [ScriptedTurn::call("look", &json!({})), ScriptedTurn::default().say("What I").hang()]);
    let (engine, _, _) = die(with(&first), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    let second = Scripted::default().script("a", [ScriptedTurn::text("What I have.")]);
    let after = go_on(with(&second), &engine);
    after.is_sound();
    let end = after.run.end.unwrap();
    assert_eq!(
        (end.answer.as_deref(), end.limit.as_deref()),
        (Some("What I have."), Some(LimitKind::Turns.word()))
    );
}

/// The turn that ran out of time is not recorded, so the closing turn has to be found by its own number, even if the agent has more
/// time after the restart.
#[test]
fn closing_turn_after_a_timeout_is_not_repeated() {
    let with = |model: &Scripted, timeout_ms| {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        Setup::new(model).agent(move |agent| {
            agent.limits.timeout = baton_core::HumanDuration::from_millis(timeout_ms);
            agent.output_schema = Some(schema);
        })
    };
    let turns = [ScriptedTurn::default().hang(), ScriptedTurn::text("three"), ScriptedTurn::default().hang()];
    let first = Scripted::default().script("a", turns);
    let is_three = |kind: &EventKind| matches!(kind, EventKind::TextFinished { text, .. } if text == "three");
    let (engine, _, _) = die(with(&first, 300), move |event| is_three(&event.kind));
    let second = Scripted::default().script("a", [ScriptedTurn::text("{\"n\": 3}")]);
    let after = go_on(with(&second, 60_000), &engine);
    after.is_sound();
    assert_eq!(after.count(is_three), 1);
    let asked = serde_json::to_string(&second.asked()[0].messages).unwrap();
    assert!(asked.contains("\"text\":\"three\""), "it repairs what the closing turn said: {asked}");
    assert_eq!(after.run.end.unwrap().value, Some(json!({"n": 3})));
}

#[test]
fn run_of_a_removed_agent_is_interrupted() {
    let first = Scripted::default().script("a", [ScriptedTurn::default().say("I").hang()]);
    let (engine, _, _) = die(Setup::new(&first), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    let second = Scripted::default();
    let other = Setup::new(&second).agent(|agent| agent.name = baton_core::AgentName::parse("b").unwrap());
    let after = go_on(other, &engine);
    after.is_sound();
    assert_eq!(after.run.status, RunStatus::Interrupted);
    let end = after.run.end.clone().unwrap();
    assert_eq!(end.code.as_deref(), Some("interrupted"));
    assert!(end.message.unwrap().contains("no agent `a`"));
    let cut = after.rows.iter().filter(|row| row.error.as_deref() == Some("interrupted")).count();
    assert_eq!(cut, 1, "the call that was cut is paid for");
    assert_eq!(after.count(|kind| matches!(kind, EventKind::TurnRestarted { .. })), 1);
    assert_eq!(after.messages.len(), 1, "what the person said is still there");
}

/// The task of a call was dropped and its row written, then the process died before the step was settled.
#[test]
fn recorded_call_is_not_billed_twice() {
    let first = Scripted::default().script("a", [ScriptedTurn::default().say("I").hang()]);
    let (engine, request, _) =
        die(Setup::new(&first), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    runtime().block_on(write_row_of_open_call(&engine, &request));
    let second = Scripted::default().script("a", [ScriptedTurn::text("Done.")]);
    let after = go_on(Setup::new(&second), &engine);
    after.is_sound();
    assert_eq!(after.run.status, RunStatus::Completed);
    assert_eq!(after.rows.len(), 2, "the cut call and the one in its place: {:#?}", after.rows);
}

async fn write_row_of_open_call(engine: &Engine, request: &RunRequest) {
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let run_id = store.runs(RunQuery::default(), PageRequest::default()).await.unwrap().data[0].run_id;
    let steps = store.steps(run_id).await.unwrap();
    let row = steps.iter().find_map(Step::interrupted_call).unwrap().row;
    let owner = engine.parts.identity.owner.clone();
    let claim = Claim { thread_id: request.caller.thread_id, run_id, owner, epoch: 1 };
    for number in 1..10 {
        let append = Append { number, rows: vec![row.clone()], ..Append::default() };
        let written = store.append(&claim, Arc::new(append)).await;
        let rows = store.ledger(run_id).await.unwrap();
        if written.is_ok() && !rows.is_empty() {
            return;
        }
    }
    panic!("the row was not written");
}

#[test]
fn run_that_kills_its_processes_is_interrupted() {
    let model = Scripted::default().script("a", [ScriptedTurn::default().say("I").hang()]);
    let (mut engine, _, _) =
        die(Setup::new(&model), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    for number in 0..10 {
        let process = runtime();
        engine = process.block_on(async {
            let hangs = Scripted::default().script("a", [ScriptedTurn::default().say("I").hang()]);
            let (parts, _) = Setup::new(&hangs).parts().await;
            let mut parts = successor(parts, &engine.parts);
            parts.identity.owner = Owner(format!("successor {number}").into());
            let next = Engine::new(parts);
            let recovery = tokio::spawn({
                let next = Arc::clone(&next);
                async move { next.recover().await }
            });
            while hangs.asked().is_empty() && !recovery.is_finished() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            next
        });
        process.shutdown_timeout(crate::LONG);
    }
    let after = go_on(Setup::new(&Scripted::default()), &engine);
    assert_eq!(after.run.status, RunStatus::Interrupted);
    assert!(after.run.end.unwrap().message.unwrap().contains("10 times"));
}

#[tokio::test]
async fn a14_a_thread_remembers_what_was_said() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("I am A."), ScriptedTurn::text("You asked who I am.")]);
    let (parts, request) = Setup::new(&model).parts().await;
    let engine = Engine::new(parts);
    let first = RunRequest { input: vec![Part::text("Who are you?")], ..request.clone() };
    let second = RunRequest { input: vec![Part::text("What did I ask?")], ..request };
    assert_eq!(engine.start(first).await.unwrap().finish().await.status, RunStatus::Completed);
    assert_eq!(engine.start(second).await.unwrap().finish().await.status, RunStatus::Completed);
    let asked = &model.asked()[1].messages;
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[0], ChatMessage::user("Who are you?"));
    assert!(matches!(&asked[1], ChatMessage::Assistant(reply) if reply.text == "I am A."));
    assert_eq!(asked[2], ChatMessage::user("What did I ask?"));
}

#[tokio::test]
async fn a9_foreign_thread_is_not_found() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("Hello.")]);
    let (parts, request) = Setup::new(&model).parts().await;
    let engine = Engine::new(parts);
    engine.start(request.clone()).await.unwrap().finish().await;
    let mut foreign = request;
    foreign.caller.user = UserId::parse("eve").unwrap();
    let refused = engine.start(foreign).await.unwrap_err();
    assert!(matches!(refused, Failure::Store(StoreError::ThreadNotFound)), "{refused}");
    assert_eq!(model.asked().len(), 1);
}

#[tokio::test]
async fn runs_of_a_thread_are_sequential_in_order() {
    let slow = ScriptedTurn::default().say("one").wait(Duration::from_millis(50));
    let model =
        Scripted::default().script("a", [slow, ScriptedTurn::text("two"), ScriptedTurn::text("three")]);
    let (parts, request) = Setup::new(&model).parts().await;
    let engine = Engine::new(parts);
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(engine.start(request.clone()).await.unwrap());
    }
    let rejected = RunRequest { on_busy: OnBusy::Reject, ..request.clone() };
    let refused = engine.start(rejected).await.unwrap_err();
    assert!(matches!(refused, Failure::Store(StoreError::ThreadBusy(_))), "{refused}");
    let mut answers = Vec::new();
    for run in runs {
        answers.push(run.finish().await.answer.unwrap().text);
    }
    assert_eq!(answers, ["one", "two", "three"]);
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let events = store.events(request.caller.thread_id, 0, 1000).await.unwrap();
    let mut open = None;
    for event in &events {
        match &event.kind {
            EventKind::RunStarted { .. } => assert_eq!(open.replace(event.run_id), None, "two at once"),
            kind if kind.is_end() => assert_eq!(open.take(), Some(event.run_id)),
            _ => assert_eq!(open, Some(event.run_id)),
        }
    }
}

#[tokio::test]
async fn interrupting_message_cancels_the_active_run() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::default().say("on and on").hang(), ScriptedTurn::text("Yes?")]);
    let (mut parts, request) = Setup::new(&model).parts().await;
    parts.lease = HeartbeatConfig { beat: Duration::from_millis(20), ..HeartbeatConfig::default() };
    let engine = Engine::new(parts);
    let mut first = engine.start(request.clone()).await.unwrap();
    while !matches!(first.events.recv().await.unwrap().kind, EventKind::TextDelta { .. }) {}
    let second = RunRequest { on_busy: OnBusy::Interrupt, ..request };
    let second = engine.start(second).await.unwrap();
    assert_eq!(first.finish().await.status, RunStatus::Cancelled);
    assert_eq!(second.finish().await.answer.unwrap().text, "Yes?");
}

#[tokio::test]
async fn stopped_run_answers_with_a_closing_turn() {
    let look = TestTool::new("look", |_| async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok("seen".to_owned())
    });
    let model = Scripted::default()
        .script("a", [ScriptedTurn::call("look", &json!({})), ScriptedTurn::text("What I saw.")]);
    let (mut parts, request) = Setup::new(&model).tool(look).parts().await;
    parts.lease = HeartbeatConfig { beat: Duration::from_millis(10), ..HeartbeatConfig::default() };
    let engine = Engine::new(parts);
    let mut run = engine.start(request.clone()).await.unwrap();
    while !matches!(run.events.recv().await.unwrap().kind, EventKind::ToolCalled { .. }) {}
    let store = engine.parts.store.tenant(&request.caller.tenant);
    assert_eq!(store.cancel_run(run.id, Cancel::Stop).await.unwrap(), RunStatus::Running);
    let answer = run.finish().await.answer.unwrap();
    assert_eq!((answer.text.as_str(), answer.limit), ("What I saw.", Some(LimitKind::Stopped)));
    let told = format!("{:?}", model.asked()[1].messages.last());
    assert!(told.contains("a stop was requested"), "{told}");
}

#[tokio::test]
async fn cancelled_queued_run_does_not_wait() {
    let model = Scripted::default().script("a", [ScriptedTurn::default().say("on and on").hang()]);
    let (parts, request) = Setup::new(&model).parts().await;
    let engine = Engine::new(parts);
    let mut first = engine.start(request.clone()).await.unwrap();
    while !matches!(first.events.recv().await.unwrap().kind, EventKind::TextDelta { .. }) {}
    let second = engine.start(request).await.unwrap();
    second.cancel();
    assert_eq!(second.finish().await.status, RunStatus::Cancelled);
    assert_eq!(model.asked().len(), 1, "the first is still at work");
    first.cancel();
    assert_eq!(first.finish().await.status, RunStatus::Cancelled);
}

/// While somebody is told that their run has ended, the one before it ends too. It used to take them with it.
#[tokio::test(flavor = "multi_thread")]
async fn waiter_is_notified_when_the_previous_run_ends() {
    let folder = tempfile::tempdir().unwrap();
    let slow = || ScriptedTurn::default().say("one").wait(Duration::from_millis(252));
    let model = Scripted::default().script("a", std::iter::repeat_with(slow).take(12));
    let (mut parts, request) = Setup::new(&model).parts().await;
    parts.store = Arc::new(baton_store::open("sqlite://baton.db", folder.path()).await.unwrap());
    let engine = Engine::new(parts);
    for _ in 0..12 {
        let first = engine.start(request.clone()).await.unwrap();
        let mut second = engine.start(request.clone()).await.unwrap();
        second.cancel();
        assert_eq!(first.finish().await.status, RunStatus::Completed);
        let mut ends = 0;
        while let Some(event) = second.events.recv().await {
            ends += usize::from(event.kind.is_end());
        }
        assert_eq!((ends, second.join().await.status), (1, RunStatus::Cancelled));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn message_being_accepted_is_not_taken_for_lost() {
    let model =
        Scripted::default().script("a", std::iter::repeat_with(|| ScriptedTurn::text("Yes.")).take(200));
    let folder = tempfile::tempdir().unwrap();
    let (mut parts, request) = Setup::new(&model).parts().await;
    parts.store = Arc::new(baton_store::open("sqlite://baton.db", folder.path()).await.unwrap());
    let engine = Engine::new(parts);
    for _ in 0..50 {
        let asked = (0..4).map(|_| {
            let (engine, request) = (Arc::clone(&engine), request.clone());
            tokio::spawn(async move { engine.start(request).await.unwrap().finish().await })
        });
        for finished in futures_util::future::join_all(asked).await {
            let finished = finished.unwrap();
            assert_eq!(finished.status, RunStatus::Completed, "{:?}", finished.failure);
        }
    }
}

#[tokio::test]
async fn a_queued_run_can_be_cancelled() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::default().say("one").wait(Duration::from_millis(100))]);
    let (parts, request) = Setup::new(&model).parts().await;
    let engine = Engine::new(parts);
    let first = engine.start(request.clone()).await.unwrap();
    let second = engine.start(request.clone()).await.unwrap();
    let store = engine.parts.store.tenant(&request.caller.tenant);
    assert_eq!(store.cancel_run(second.id, Cancel::Abort).await.unwrap(), RunStatus::Cancelled);
    assert_eq!(first.finish().await.status, RunStatus::Completed);
    assert_eq!(second.finish().await.status, RunStatus::Cancelled, "whoever waits hears of it");
    assert_eq!(model.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn fenced_process_cannot_write_and_its_listener_is_served_by_the_other() {
    let slow = Scripted::default().script("a", [ScriptedTurn::default().say("from the first").hang()]);
    let (mut parts, request) = Setup::new(&slow).parts().await;
    parts.lease = HeartbeatConfig { beat: Duration::from_millis(20), ..HeartbeatConfig::default() };
    let first = Engine::new(parts);
    let mut run = first.start(request.clone()).await.unwrap();
    let mut heard = Vec::new();
    while !matches!(heard.last(), Some(EventKind::TextDelta { .. })) {
        heard.push(run.events.recv().await.unwrap().kind);
    }
    let other = Scripted::default().script("a", [ScriptedTurn::text("From the second.")]);
    let (parts, _) = Setup::new(&other).parts().await;
    let second = Engine::new(successor(parts, &first.parts));
    assert_eq!(second.recover().await.unwrap(), 1);
    while let Some(event) = run.events.recv().await {
        heard.push(event.kind);
    }
    let finished = run.join().await;
    assert_eq!(
        (finished.status, finished.answer.unwrap().text.as_str()),
        (RunStatus::Completed, "From the second.")
    );
    assert_eq!(heard.iter().filter(|kind| kind.is_end()).count(), 1);
    let store = first.parts.store.tenant(&request.caller.tenant);
    let messages = store.messages(request.caller.thread_id, MessageQuery::last(10)).await.unwrap();
    let roles: Vec<Role> = messages.iter().map(|message| message.message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant]);
}

#[tokio::test]
async fn maintenance_recovers_orphaned_runs() {
    let model = Scripted::default().script("a", [ScriptedTurn::default().say("I").hang()]);
    let (parts, mut request) = Setup::new(&model).parts().await;
    request.caller.thread_id = ThreadId::random();
    let store = Arc::clone(&parts.store);
    let dead = runtime();
    let before = dead
        .spawn(async move {
            let engine = Engine::new(parts);
            let mut run = engine.start(request).await.unwrap();
            while !matches!(run.events.recv().await.unwrap().kind, EventKind::TextDelta { .. }) {}
            let id = run.id;
            std::mem::forget(run);
            (engine, id)
        })
        .await
        .unwrap();
    dead.shutdown_background();
    let (engine, run) = before;
    let model = Scripted::default().script("a", [ScriptedTurn::text("Here.")]);
    let (parts, request) = Setup::new(&model).parts().await;
    let watch = Engine::new(successor(parts, &engine.parts));
    let watching = tokio::spawn(Arc::clone(&watch).run_maintenance(Duration::from_millis(10)));
    let tenant = store.tenant(&request.caller.tenant);
    while tenant.run(run).await.unwrap().status != RunStatus::Completed {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    watching.abort();
    let rows = tenant.ledger(run).await.unwrap();
    assert!(rows.iter().any(|row| row.outcome == CallOutcome::Cancelled));
}

/// What an agent had taken before a crash is still known after it, although its record says only when it ended.
#[test]
fn time_before_a_crash_counts() {
    let ask = || ScriptedTurn::call("delegate", &json!({"agents": ["b", "c"], "message": "Look."}));
    let after_a_while = ScriptedTurn::default().wait(Duration::from_millis(300)).say("Looked.");
    let first = Scripted::default()
        .script("a", [ask()])
        .script("b", [after_a_while])
        .script("c", [ScriptedTurn::default().say("Let").hang()]);
    let with = |model: &Scripted| {
        let setup = Setup::new(model).agent(|a| a.agents = vec![super::name("b"), super::name("c")]);
        setup.with("b", |_| {}).with("c", |_| {})
    };
    let (engine, _, _) = die(with(&first), |event| {
        matches!(event.kind, EventKind::SessionFinished { .. }) && event.path.ends_with("delegate:b")
    });
    let second = Scripted::default()
        .script("a", [ScriptedTurn::text("Done.")])
        .script("c", [ScriptedTurn::text("Too.")]);
    let after = go_on(with(&second), &engine);
    after.is_sound();
    let asked = second.asked().into_iter().rfind(|asked| asked.agent == "a").unwrap();
    let Some(ChatMessage::Tool(result)) = asked.messages.last() else { panic!("{:?}", asked.messages) };
    let told: serde_json::Value = serde_json::from_str(&result.content).unwrap();
    let latency = told["results"][0]["latency_ms"].as_u64().unwrap();
    assert!((300..60_000).contains(&latency), "{told}");
    let cut = after.rows.iter().find(|row| row.error.as_deref() == Some("interrupted")).unwrap();
    assert!(cut.latency_ms >= 200, "it lasted as long as something was heard of its process: {cut:?}");
}
