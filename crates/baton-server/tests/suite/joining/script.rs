//! What a worker commits and publishes, one act after the other.

use std::sync::Arc;

use baton_core::event::{Event, EventKind, RunOutcome};
use baton_core::message::Visibility;
use baton_core::{AgentName, MessageId, RunId, SessionId, ThreadId, ToolCallId, Usage};
use baton_server::stream::follow::{Item, Of};
use serde_json::json;

#[derive(Debug, Clone)]
pub enum Act {
    Claim(RunId),
    Commit(Vec<Event>),
    Publish(Arc<Event>),
    Release,
}

#[derive(Debug, Default)]
pub struct Script {
    pub acts: Vec<Act>,
    seq: u64,
    run: Option<RunId>,
    path: Option<Arc<str>>,
}

pub fn thread() -> ThreadId {
    ThreadId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap()
}

pub fn message(number: u32) -> MessageId {
    MessageId::parse(&format!("01890a5d-ac96-774b-bcce-{number:012}")).unwrap()
}

/// The number of an event that has one.
pub fn seq_of(item: &Item) -> Option<u64> {
    match item {
        Item::Event(published) if published.event.kind.is_kept() => Some(published.event.seq),
        _ => None,
    }
}

impl Script {
    /// One run with one text.
    pub fn one_run() -> Self {
        Self::default().claim(1).kept([started()]).say(1, &["one ", "two "], [finished()]).release()
    }

    /// Two runs: texts, a thought, a tool, and a text that is cut and comes again.
    pub fn two_runs() -> Self {
        let script = Self::default().claim(1).kept([started()]);
        let script = script.say(1, &["one ", "two "], [called()]).kept([returned()]).think(2, "hm");
        let script =
            script.begin(3).piece(3, "thr").kept([EventKind::TurnRestarted { message_id: message(3) }]);
        let script = script.say(4, &["three"], [finished()]).release();
        script.claim(2).kept([started()]).say(5, &["four"], [finished()]).release()
    }

    /// One run in which an agent behind the scenes speaks while the other does.
    pub fn parallel() -> Self {
        let script = Self::default().claim(1).kept([started()]).begin(1).piece(1, "one ");
        let script =
            script.at("assistant/tool:1/call:b").kept([session_started()]).begin(2).piece(2, "under ");
        let script = script.at("assistant").piece(1, "two ");
        let script = script.at("assistant/tool:1/call:b").piece(2, "neath");
        let script = script.kept([text(2, "under neath"), session_finished()]);
        script.at("assistant").piece(1, "three").kept([text(1, "one two three"), finished()]).release()
    }

    /// Opens the publisher of a run.
    fn claim(mut self, number: u32) -> Self {
        let run = RunId::parse(&format!("01890a5d-ac96-774b-bcce-{number:012}")).unwrap();
        self.run = Some(run);
        self.acts.push(Act::Claim(run));
        self
    }

    fn release(mut self) -> Self {
        self.acts.push(Act::Release);
        self
    }

    fn at(self, path: &str) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    /// One commit, then each of its events.
    fn kept(mut self, kinds: impl IntoIterator<Item = EventKind>) -> Self {
        let mut events = Vec::new();
        for kind in kinds {
            self.seq += 1;
            events.push(self.event(kind));
        }
        self.acts.push(Act::Commit(events.clone()));
        self.acts.extend(events.into_iter().map(Arc::new).map(Act::Publish));
        self
    }

    fn passing(mut self, kind: EventKind) -> Self {
        let event = self.event(kind);
        self.acts.push(Act::Publish(Arc::new(event)));
        self
    }

    fn begin(self, id: u32) -> Self {
        self.passing(EventKind::TextStarted { message_id: message(id), speaker: "A".into() })
    }

    fn piece(self, id: u32, delta: &str) -> Self {
        self.passing(EventKind::TextDelta { message_id: message(id), delta: delta.into() })
    }

    fn think(self, id: u32, delta: &str) -> Self {
        self.passing(EventKind::Reasoning { message_id: message(id), delta: delta.into() })
    }

    /// A text from its beginning to its end, which is committed together with what follows.
    fn say<const N: usize>(self, id: u32, pieces: &[&str], then: [EventKind; N]) -> Self {
        let said = pieces.iter().fold(self.begin(id), |script, piece| script.piece(id, piece));
        said.kept([text(id, &pieces.concat())].into_iter().chain(then))
    }

    fn event(&self, kind: EventKind) -> Event {
        let path = self.path.clone().unwrap_or_else(|| "assistant".into());
        let is_hidden = path.contains("call:");
        Event {
            seq: self.seq,
            thread_id: thread(),
            run_id: self.run.expect("claimed"),
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            agent: AgentName::parse(if is_hidden { "b" } else { "assistant" }).unwrap(),
            path,
            visibility: if is_hidden { Visibility::Internal } else { Visibility::User },
            kind,
        }
    }

    fn events(&self) -> impl Iterator<Item = &Event> {
        self.acts.iter().flat_map(|act| match act {
            Act::Commit(events) => events.as_slice(),
            _ => &[],
        })
    }

    /// The committed events of a thread or a run.
    pub fn of(&self, of: Of) -> impl Iterator<Item = &Event> {
        self.events().filter(move |event| of == Of::Thread || of == Of::Run(event.run_id))
    }

    pub fn seqs(&self, of: Of) -> impl Iterator<Item = u64> {
        self.of(of).map(|event| event.seq)
    }

    pub fn runs(&self) -> impl Iterator<Item = RunId> {
        self.acts.iter().filter_map(|act| match act {
            Act::Claim(run) => Some(*run),
            _ => None,
        })
    }

    /// How many acts are done when each run is claimed.
    pub fn claims(&self) -> impl Iterator<Item = usize> {
        let acts = self.acts.iter().enumerate();
        acts.filter(|(_, act)| matches!(act, Act::Claim(_))).map(|(at, _)| at)
    }

    /// How many acts are done when the event with this number is published: no client can reconnect with it earlier.
    pub fn committed(&self, seq: u64) -> usize {
        let is_it =
            |act: &Act| matches!(act, Act::Publish(event) if event.kind.is_kept() && event.seq == seq);
        self.acts.iter().position(is_it).expect("an event with this number") + 1
    }

    /// The events up to a number of the run that it falls into, if that goes on.
    pub fn current_run(&self, seq: u64) -> Vec<Event> {
        let last = self.events().find(|event| event.seq == seq).expect("an event with this number");
        let seen = self.events().filter(|event| event.seq <= seq && event.run_id == last.run_id);
        if last.kind.is_end() { Vec::new() } else { seen.cloned().collect() }
    }
}

fn started() -> EventKind {
    EventKind::RunStarted { is_held: false }
}

fn text(id: u32, text: &str) -> EventKind {
    EventKind::TextFinished { message_id: message(id), speaker: "A".into(), text: text.into() }
}

fn called() -> EventKind {
    let call_id = ToolCallId::parse("call_1").unwrap();
    EventKind::ToolCalled { call_id, tool: "t".into(), arguments: json!({}) }
}

fn returned() -> EventKind {
    let call_id = ToolCallId::parse("call_1").unwrap();
    EventKind::ToolReturned { call_id, output: "x".into(), failed: false, files: Vec::new() }
}

fn session() -> SessionId {
    SessionId::root(RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap())
}

fn session_started() -> EventKind {
    EventKind::SessionStarted { session_id: session(), parent: None, why: None }
}

fn session_finished() -> EventKind {
    EventKind::SessionFinished { session_id: session() }
}

fn finished() -> EventKind {
    EventKind::RunFinished {
        outcome: RunOutcome::Success,
        usage: Usage::default(),
        limit: None,
        answered_by: None,
        sources: Vec::new(),
        by_agent: Vec::new(),
    }
}
