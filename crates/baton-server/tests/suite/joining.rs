//! Subscribing at every point of a run: whatever is committed and published before, between and after the reads of a subscriber, no
//! text is missing, none comes twice, and every message is opened once.
//!
//! [`script`] is what the worker does, one commit or publication after the other. [`log`] is a store that answers a read when the
//! test lets it. The tests here drive a [`Follow`] by hand through all interleavings; those in [`wire`] come over HTTP.

mod log;
mod oracle;
mod script;
mod wire;

use std::sync::Arc;

use baton_agui::{AgentProfiles, Detail};
use baton_core::event::Event;
use baton_core::{RunId, TenantId};
use baton_engine::{Interest, Publisher, ThreadChannels};
use baton_server::stream::follow::{Follow, Of};
use baton_server::stream::frames;
use baton_server::stream::view::StreamView;
use bytes::Bytes;
use futures_util::FutureExt as _;
use serde_json::Value;

use log::GatedLog;
use oracle::check;
use script::{Act, Script};

/// A worker that follows the script, and a subscriber, neither of which moves by itself.
struct Stage {
    live: Arc<ThreadChannels>,
    log: GatedLog,
    acts: std::vec::IntoIter<Act>,
    done: usize,
    publisher: Option<Publisher>,
}

impl Stage {
    fn new(script: &Script) -> Self {
        let (live, log) = (ThreadChannels::new(), GatedLog::default());
        Self { live, log, acts: script.acts.clone().into_iter(), done: 0, publisher: None }
    }

    /// Lets the worker go on until it has done `count` acts.
    fn advance(&mut self, count: usize) {
        for act in self.acts.by_ref().take(count - self.done) {
            match act {
                Act::Claim(run) => {
                    self.publisher = Some(self.live.publisher(&tenant(), script::thread(), run));
                }
                Act::Commit(events) => self.log.commit(events),
                Act::Publish(event) => self.publisher.as_ref().expect("claimed").publish(&event),
                Act::Release => self.publisher = None,
            }
        }
        self.done = count;
    }
}

/// One that subscribes, and what it has been sent.
struct Subscriber {
    follow: Follow<GatedLog>,
    view: StreamView,
    sent: Vec<Value>,
    /// What was sent for each item.
    chunks: Vec<Bytes>,
    seqs: Vec<u64>,
    is_over: bool,
}

impl Subscriber {
    fn join(stage: &Stage, of: Of, after: u64, detail: Detail) -> Self {
        let subscription = stage.live.subscribe(&tenant(), script::thread(), Interest::Thread);
        let follow = Follow::with_log(stage.log.clone(), subscription, script::thread(), of, after);
        Self::new(follow, detail)
    }

    /// As the sender of a message, who subscribes before the run is accepted.
    fn join_new_run(stage: &Stage, run: RunId, detail: Detail) -> Self {
        let subscription = stage.live.subscribe(&tenant(), script::thread(), Interest::Run);
        let follow = Follow::of_new_run(stage.log.clone(), subscription, script::thread(), run, 0);
        Self::new(follow, detail)
    }

    fn new(follow: Follow<GatedLog>, detail: Detail) -> Self {
        let view = StreamView::new(script::thread(), detail, Arc::new(AgentProfiles::default()));
        Self { follow, view, sent: Vec::new(), chunks: Vec::new(), seqs: Vec::new(), is_over: false }
    }

    /// As a client that comes back: what it has seen is remembered, and told in short.
    fn remember<'a>(&mut self, seen: impl Iterator<Item = &'a Event>) {
        seen.for_each(|event| self.view.remember(event));
        let preamble = self.view.preamble(Vec::new(), self.follow.position());
        self.sent.extend(json(&preamble));
    }

    /// Takes everything that there is without waiting.
    fn drain(&mut self) {
        while !self.is_over {
            let Some(next) = self.follow.next().now_or_never() else { return };
            match next.expect("a log that works") {
                Some(item) => {
                    self.seqs.extend(script::seq_of(&item));
                    let frames = self.view.show(&item, self.follow.position());
                    self.sent.extend(json(&frames));
                    self.chunks.push(frames);
                }
                None => self.is_over = true,
            }
        }
    }
}

fn json(frames: &Bytes) -> impl Iterator<Item = Value> {
    frames::events(frames).map(|(_, event)| serde_json::from_slice(&event).unwrap())
}

fn tenant() -> TenantId {
    TenantId::parse("acme").unwrap()
}

/// Subscribes when `join` acts are done, gets its first read answered after `first` of them, its second after `second`, all
/// further ones at once.
fn interleave(script: &Script, of: Of, after: u64, detail: Detail, points: [usize; 3]) -> Subscriber {
    let [join, first, second] = points;
    let mut stage = Stage::new(script);
    stage.advance(join);
    let mut subscriber = Subscriber::join(&stage, of, after, detail);
    if after > 0 {
        subscriber.remember(script.current_run(after).iter());
    }
    for point in [first, second] {
        stage.advance(point);
        stage.log.answer(1);
        subscriber.drain();
    }
    stage.log.answer(1000);
    for point in second..=script.acts.len() {
        stage.advance(point);
        subscriber.drain();
    }
    subscriber
}

/// All ways in which joining and two reads can fall between the acts.
fn with_two_reads(script: &Script) -> impl Iterator<Item = [usize; 3]> {
    let last = script.acts.len();
    with_one_read(script, 0)
        .flat_map(move |[join, first, _]| (first..=last).map(move |second| [join, first, second]))
}

/// All ways in which joining and reading can fall between the acts, from `earliest` on.
fn with_one_read(script: &Script, earliest: usize) -> impl Iterator<Item = [usize; 3]> {
    let last = script.acts.len();
    (earliest..=last).flat_map(move |join| (join..=last).map(move |read| [join, read, read]))
}

fn check_all(
    script: &Script,
    of: Of,
    after: u64,
    detail: Detail,
    all_points: impl Iterator<Item = [usize; 3]>,
) {
    let expected: Vec<u64> = script.seqs(of).filter(|seq| *seq > after).collect();
    for points in all_points {
        let got = interleave(script, of, after, detail, points);
        let context = format!("{of:?} after {after} as {detail:?}, joined and read at {points:?}");
        assert_eq!(got.seqs, expected, "{context}");
        assert_eq!(got.is_over, of != Of::Thread, "{context}");
        check(script, of, after, detail, &got.sent, &context);
    }
}

#[test]
fn run_stream_is_whole_wherever_it_joins() {
    let script = Script::two_runs();
    for run in script.runs() {
        check_all(&script, Of::Run(run), 0, Detail::Trace, with_one_read(&script, 0));
    }
    let script = Script::one_run();
    let run = script.runs().next().unwrap();
    check_all(&script, Of::Run(run), 0, Detail::Person, with_two_reads(&script));
}

#[test]
fn thread_stream_is_whole_wherever_it_joins() {
    let script = Script::two_runs();
    check_all(&script, Of::Thread, 0, Detail::Trace, with_one_read(&script, 0));
    let script = Script::one_run();
    check_all(&script, Of::Thread, 0, Detail::Person, with_two_reads(&script));
}

#[test]
fn reconnected_stream_is_whole_wherever_it_joins() {
    let script = Script::two_runs();
    for after in script.seqs(Of::Thread).step_by(2) {
        let points = with_one_read(&script, script.committed(after));
        check_all(&script, Of::Thread, after, Detail::Person, points);
    }
}

/// Text by agents side by side: what one of them commits does not end what the other says.
#[test]
fn stream_of_parallel_texts_is_whole_wherever_it_joins() {
    let script = Script::parallel();
    for of in [Of::Thread, Of::Run(script.runs().next().unwrap())] {
        check_all(&script, of, 0, Detail::Trace, with_one_read(&script, 0));
    }
}

/// Also when its thread is busy with another run.
#[test]
fn new_run_is_followed_without_reading() {
    let script = Script::two_runs();
    for (run, accepted) in script.runs().zip(script.claims()) {
        for join in 0..=accepted {
            let mut stage = Stage::new(&script);
            stage.advance(join);
            let mut sender = Subscriber::join_new_run(&stage, run, Detail::Person);
            for point in join..=script.acts.len() {
                stage.advance(point);
                sender.drain();
            }
            let context = format!("{run}, subscribed at {join}");
            assert!(sender.is_over, "{context}");
            assert_eq!(sender.seqs, script.seqs(Of::Run(run)).collect::<Vec<_>>(), "{context}");
            check(&script, Of::Run(run), 0, Detail::Person, &sender.sent, &context);
        }
    }
}

/// Nothing was lost that is not in the store: a run that another process works on is read.
#[test]
fn new_run_of_another_process_is_read() {
    let script = Script::one_run();
    let run = script.runs().next().unwrap();
    let stage = Stage::new(&script);
    let mut sender = Subscriber::join_new_run(&stage, run, Detail::Person);
    for act in &script.acts {
        if let Act::Commit(events) = act {
            stage.log.commit(events.clone());
        }
    }
    stage.log.answer(10);
    sender.drain();
    assert_eq!(sender.seqs, [0; 0], "nothing was published");
    stage.live.changed(&tenant(), script::thread());
    sender.drain();
    assert!(sender.is_over);
    check(&script, Of::Run(run), 0, Detail::Person, &sender.sent, "read");
}

/// What those who were there from the beginning of a run are sent is encoded once for each level of detail. Those who came later
/// are sent the same text, encoded for them.
#[test]
fn subscribers_share_what_is_encoded() {
    let script = Script::parallel();
    for detail in [Detail::Person, Detail::Trace] {
        let alone = interleave(&script, Of::Thread, 0, detail, [0, 0, 0]);
        let mut stage = Stage::new(&script);
        stage.log.answer(1000);
        let mut subscribers = [(); 3].map(|()| Subscriber::join(&stage, Of::Thread, 0, detail));
        let mut late = None;
        for point in 0..=script.acts.len() {
            stage.advance(point);
            subscribers.iter_mut().for_each(Subscriber::drain);
            let late = late.get_or_insert_with(|| Subscriber::join(&stage, Of::Thread, 0, detail));
            if point > script.acts.len() / 2 {
                late.drain();
            }
        }
        let [first, others @ ..] = &subscribers;
        for other in others {
            assert_eq!(other.chunks, alone.chunks);
            for (one, same) in first.chunks.iter().zip(&other.chunks).filter(|(one, _)| !one.is_empty()) {
                assert_eq!(one.as_ptr(), same.as_ptr(), "encoded twice: {one:?}");
            }
        }
        check(&script, Of::Thread, 0, detail, &late.expect("joined").sent, "late");
    }
}
