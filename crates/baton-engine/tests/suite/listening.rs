//! Who hears what of a run. The clock stands still while anybody is at work and jumps when all wait, because the store in memory
//! answers at once: how fast the machine is makes no difference.

use std::sync::Arc;
use std::time::Duration;

use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::store::{AuditQuery, Cancel, Owner, PageRequest, RunStatus};
use baton_core::{Event, HumanDuration, Part};
use baton_engine::{Engine, EngineParts, HeartbeatConfig, LimitKind, RunHandle, RunRequest, RunResult};
use baton_models::scripted::{Scripted, ScriptedTurn};
use tokio::time::Instant;

use super::{LONG, Setup, eventually};

/// An answer in so many pieces, none like another.
fn pieces(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("{number} "))
}

fn saying(count: usize) -> ScriptedTurn {
    pieces(count).fold(ScriptedTurn::default(), |turn, piece| turn.say(&piece))
}

/// Everything until the stream ends, which it has to.
async fn hear(run: &mut RunHandle) -> Vec<Event> {
    let mut heard = Vec::new();
    let hearing = async {
        while let Some(event) = run.events.recv().await {
            heard.push(event);
        }
    };
    tokio::time::timeout(LONG, hearing).await.expect("the stream should have ended");
    heard
}

async fn hear_until(run: &mut RunHandle, is_it: impl Fn(&EventKind) -> bool) {
    while !is_it(&run.events.recv().await.unwrap().kind) {}
}

fn ends(heard: &[Event]) -> usize {
    heard.iter().filter(|event| event.kind.is_end()).count()
}

/// The events that the store has, or should have: their numbers and what they say.
fn kept(events: &[Event]) -> Vec<(u64, &EventKind)> {
    events.iter().filter(|event| event.kind.is_kept()).map(|event| (event.seq, &event.kind)).collect()
}

/// What somebody heard who did something else first, and what was there to hear.
struct Late {
    heard: Vec<Event>,
    stored: Vec<Event>,
    finished: RunResult,
}

async fn listen_late(count: usize, late: Duration) -> Late {
    let model = Scripted::default().script("a", [saying(count)]);
    let (parts, request) = Setup::new(&model).parts().await;
    let engine = Engine::new(parts);
    let mut run = engine.start(request.clone()).await.unwrap();
    let id = run.id;
    tokio::time::sleep(late).await;
    let heard = hear(&mut run).await;
    let finished = run.join().await;
    let store = engine.parts.store.tenant(&request.caller.tenant);
    Late { heard, stored: store.run_events(id, 0, 1000).await.unwrap(), finished }
}

#[tokio::test(start_paused = true)]
async fn slow_listener_gets_all_stored_events_and_one_end() {
    // 256 events may wait for a listener, so that here there is room for all of them, or for all but the last, the last two, …
    for count in 248..=254 {
        for late in [Duration::from_secs(1), LONG] {
            let Late { heard, stored, finished } = listen_late(count, late).await;
            assert_eq!(kept(&heard), kept(&stored), "{count} pieces, {late:?} late");
            assert_eq!(ends(&heard), 1, "{count} pieces, {late:?} late");
            assert!(heard.last().unwrap().kind.is_end(), "{count} pieces, {late:?} late");
            assert_eq!(finished.status, RunStatus::Completed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn run_waits_briefly_for_a_slow_listener() {
    let Late { heard, .. } = listen_late(400, Duration::from_secs(1)).await;
    let grown = heard.iter().filter_map(|event| match &event.kind {
        EventKind::TextDelta { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    assert_eq!(grown.collect::<String>(), pieces(400).collect::<String>());
}

#[tokio::test(start_paused = true)]
async fn missed_text_is_sent_whole() {
    let Late { heard, finished, .. } = listen_late(400, LONG).await;
    let grown = heard.iter().filter(|event| matches!(event.kind, EventKind::TextDelta { .. })).count();
    assert!((1..400).contains(&grown), "the run did not wait: {grown}");
    let whole: Vec<&str> = heard
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::TextFinished { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let said: String = pieces(400).collect();
    assert_eq!(whole, [said.as_str()]);
    assert_eq!(finished.answer.unwrap().text, said);
}

#[tokio::test(start_paused = true)]
async fn unread_listener_does_not_block_cancellation() {
    let model = Scripted::default().script("a", [saying(400).hang()]);
    let (parts, request) = Setup::new(&model).parts().await;
    let engine = Engine::new(parts);
    let run = engine.start(request.clone()).await.unwrap();
    eventually(async || run.events.capacity() == 0).await;
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let asked = Instant::now();
    assert_eq!(store.cancel_run(run.id, Cancel::Abort).await.unwrap(), RunStatus::Running);
    eventually(async || store.run(run.id).await.unwrap().status == RunStatus::Cancelled).await;
    let beat = engine.parts.lease.beat;
    assert!(
        asked.elapsed() <= beat + beat / 10,
        "it waited for more than a heartbeat: {:?}",
        asked.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn unread_listener_does_not_block_the_time_limit() {
    let model = Scripted::default().script("a", [saying(400).hang(), ScriptedTurn::text("What I have.")]);
    let (parts, mut request) = Setup::new(&model).parts().await;
    request.overrides.timeout = Some(HumanDuration::from_secs(1));
    let engine = Engine::new(parts);
    let run = engine.start(request.clone()).await.unwrap();
    let store = engine.parts.store.tenant(&request.caller.tenant);
    eventually(async || store.run(run.id).await.unwrap().status.is_final()).await;
    let end = store.run(run.id).await.unwrap().end.unwrap();
    assert_eq!(
        (end.answer.as_deref(), end.limit.as_deref()),
        (Some("What I have."), Some(LimitKind::Time.word()))
    );
}

#[tokio::test(start_paused = true)]
async fn listener_of_a_deleted_thread_gets_an_end() {
    let model = Scripted::default().script("a", [ScriptedTurn::default().say("on and on").hang()]);
    let (parts, request) = Setup::new(&model).parts().await;
    let engine = Engine::new(parts);
    let mut run = engine.start(request.clone()).await.unwrap();
    hear_until(&mut run, |kind| matches!(kind, EventKind::TextDelta { .. })).await;
    let data = engine.parts.store.tenant(&request.caller.tenant);
    engine.delete_thread(&*data, request.caller.thread_id, None).await.unwrap();
    let heard = hear(&mut run).await;
    assert_eq!(ends(&heard), 1);
    assert!(matches!(heard.last().unwrap().kind, EventKind::RunFailed { .. }), "{heard:?}");
    let finished = run.join().await;
    assert_eq!(finished.status, RunStatus::Failed);
}

/// A process that works on `first` and then on whatever comes next in the thread.
async fn elsewhere(
    model: &Scripted,
    lease: HeartbeatConfig,
    here: &EngineParts,
    first: RunRequest,
) -> (Arc<Engine>, RunHandle) {
    let (mut parts, _) = Setup::new(model).parts().await;
    parts.store = Arc::clone(&here.store);
    parts.identity.owner = Owner("elsewhere".into());
    parts.lease = lease;
    let engine = Engine::new(parts);
    let run = engine.start(first).await.unwrap();
    eventually(async || !model.asked().is_empty()).await;
    (engine, run)
}

#[tokio::test(start_paused = true)]
async fn new_owner_sends_earlier_events_to_the_listener() {
    let (parts, request) =
        Setup::new(&Scripted::default().script("a", [ScriptedTurn::text("From here.")])).parts().await;
    let short = ScriptedTurn::default().say("Done.").wait(Duration::from_millis(50));
    let other = Scripted::default().script("a", [short, ScriptedTurn::default().say("From there").hang()]);
    let (there, _first) = elsewhere(&other, HeartbeatConfig::default(), &parts, request.clone()).await;
    let here = Engine::new(parts);
    let mut run = here.start(request.clone()).await.unwrap();
    let id = run.id;
    let store = here.parts.store.tenant(&request.caller.tenant);
    // The other one takes up the run and dies before anybody here looks again.
    eventually(async || other.asked().len() == 2).await;
    eventually(async || !store.run_events(id, 0, 10).await.unwrap().is_empty()).await;
    assert_eq!(here.parts.store.release(&there.parts.identity.owner).await.unwrap(), 1);
    assert!(run.events.is_empty(), "nobody here has looked yet");
    let heard = hear(&mut run).await;
    assert_eq!(run.join().await.answer.unwrap().text, "From here.");
    assert_eq!(store.run(id).await.unwrap().attempts, 2);
    assert!(matches!(heard[0].kind, EventKind::RunStarted { .. }));
    assert_eq!(kept(&heard), kept(&store.run_events(id, 0, 100).await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_run_of_another_process_is_audited_once() {
    let (parts, request) = Setup::new(&Scripted::default()).parts().await;
    let short = ScriptedTurn::default().say("Done.").wait(Duration::from_millis(50));
    let other = Scripted::default().script("a", [short, ScriptedTurn::default().say("on and on").hang()]);
    // It hears of the cancellation after a long time, in which whoever cancelled looks again and again.
    let deaf = HeartbeatConfig { length: Duration::from_hours(1), beat: Duration::from_secs(30) };
    let (_there, _first) = elsewhere(&other, deaf, &parts, request.clone()).await;
    let here = Engine::new(parts);
    let run = here.start(request.clone()).await.unwrap();
    eventually(async || other.asked().len() == 2).await;
    let asked = Instant::now();
    run.cancel();
    let finished = tokio::time::timeout(LONG, run.finish()).await.unwrap();
    assert_eq!(finished.status, RunStatus::Cancelled);
    assert!(asked.elapsed() > Duration::from_secs(20), "there was time to ask more than once");
    let store = here.parts.store.tenant(&request.caller.tenant);
    let cancellations = AuditQuery { action: Some("run.cancel".to_owned()), ..AuditQuery::default() };
    assert_eq!(store.audit(cancellations, PageRequest::first(100)).await.unwrap().data.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn queued_message_sees_the_previous_answer() {
    let slow = ScriptedTurn::default().say("Ada is 36.").wait(Duration::from_secs(1));
    let model = Scripted::default().script("a", [slow, ScriptedTurn::text("72.")]);
    let (parts, request) = Setup::new(&model).parts().await;
    let engine = Engine::new(parts);
    let ask = |text: &str| engine.start(RunRequest { input: vec![Part::text(text)], ..request.clone() });
    let mut first = ask("How old is Ada?").await.unwrap();
    hear_until(&mut first, |kind| matches!(kind, EventKind::TextDelta { .. })).await;
    let second = ask("And twice that?").await.unwrap();
    assert_eq!(model.asked().len(), 1, "the second one waits");
    assert_eq!(first.finish().await.status, RunStatus::Completed);
    assert_eq!(second.finish().await.status, RunStatus::Completed);
    let asked = &model.asked()[1].messages;
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert_eq!(asked[0], ChatMessage::user("How old is Ada?"));
    assert!(matches!(&asked[1], ChatMessage::Assistant(reply) if reply.text == "Ada is 36."));
    assert_eq!(asked[2], ChatMessage::user("And twice that?"));
}
