//! Runs as the engine tells them, made up.

use std::collections::VecDeque;

use baton_agui::{AgentProfile, AgentProfiles};
use baton_core::choice::Choice as _;
use baton_core::event::{Event, EventKind, HandoffEvent, HandoffPhase, RunOutcome, Source};
use baton_core::ledger::AgentUsage;
use baton_core::message::Visibility;
use baton_core::store::{ApprovalPreview, ApprovalRequest, HopKind};
use baton_core::{AgentName, HandoffId, MessageId, RunId, SessionId, ThreadId, ToolCallId, Usage};
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

const RUN: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// A run, and what has to be heard of it.
#[derive(Debug, Clone)]
pub struct Story {
    pub events: Vec<Event>,
    pub said: Vec<Said>,
    /// Agents that begin to work behind the scenes.
    pub subagents: usize,
    pub is_told_of_subagents: bool,
}

/// A text that was written to its end.
#[derive(Debug, Clone)]
pub struct Said {
    pub id: String,
    pub text: String,
    pub owner: Option<String>,
    pub is_shown: bool,
}

/// How agents look to people; most have only their id.
pub fn profiles() -> AgentProfiles {
    let color = Some("#15803d".to_owned());
    let face = AgentProfile { display_name: "Agent One".to_owned(), color, exitable: true, mode: None };
    [(name("a1"), face)].into_iter().collect()
}

/// An agent's part.
#[derive(Debug, Clone)]
struct Part {
    edge: &'static str,
    turns: Vec<Turn>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Well,
    Failed,
    /// Its process died, or it was dropped.
    Never,
}

#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each can happen without the others")]
struct Turn {
    thinks: bool,
    pieces: Vec<String>,
    /// The text was cut and came again.
    is_cut: bool,
    /// Nobody saw it growing.
    is_missed: bool,
    /// What is said is not for the person, although its speaker speaks to them.
    is_draft: bool,
    status: bool,
    /// Something about the thread's lease.
    lease: Option<HandoffPhase>,
    /// Those who work in one call, side by side.
    calls: Vec<Vec<Part>>,
}

fn part() -> impl Strategy<Value = Part> {
    let leaf = (edge(), prop::collection::vec(turn(Just(Vec::new())), 1..3), end());
    let leaf = leaf.prop_map(|(edge, turns, end)| Part { edge, turns, end });
    leaf.prop_recursive(3, 24, 3, |inner| {
        let calls = prop::collection::vec(prop::collection::vec(inner, 0..4), 0..3);
        let turns = prop::collection::vec(turn(calls), 1..3);
        (edge(), turns, end()).prop_map(|(edge, turns, end)| Part { edge, turns, end })
    })
}

fn edge() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["call", "delegate", "advisor", "member", "transfer", "handoff"])
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![4 => Just(End::Well), 1 => Just(End::Failed), 1 => Just(End::Never)]
}

fn turn(calls: impl Strategy<Value = Vec<Vec<Part>>>) -> impl Strategy<Value = Turn> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let lease = prop::sample::select(HandoffPhase::ALL).prop_map(|(_, phase)| phase);
    let lease = prop::option::weighted(0.2, lease);
    let pieces = prop::collection::vec("[a-zä€ ]{1,6}", 0..4);
    (flags, pieces, lease, calls).prop_map(|(flags, pieces, lease, calls)| {
        let (thinks, is_cut, is_missed, is_draft, status) = flags;
        Turn { thinks, pieces, is_cut, is_missed, is_draft, status, lease, calls }
    })
}

/// Any run: with parallel children, cut off anywhere or told to its end.
pub fn story() -> impl Strategy<Value = Story> {
    (part(), any::<bool>(), any::<u64>(), prop::option::weighted(0.3, any::<prop::sample::Index>())).prop_map(
        |(part, is_told_of_subagents, seed, cut)| {
            let mut teller = Teller { seed, serial: 0, is_told_of_subagents, said: Vec::new() };
            let root =
                Place { path: "root".into(), session: SessionId::root(run()), owner: None, is_voice: true };
            let mut events =
                vec![event("root", "root", Visibility::User, EventKind::RunStarted { is_held: false })];
            let started =
                EventKind::SessionStarted { session_id: root.session.clone(), parent: None, why: None };
            events.push(event("root", "root", Visibility::Internal, started));
            events.extend(teller.turns(&part.turns, &root, "root"));
            let mut said = teller.said;
            if let Some(cut) = cut {
                events.truncate(1 + cut.index(events.len()));
                said.retain(|said| events.iter().any(|event| is_end_of(event, &said.id)));
            }
            let begins = |event: &&Event| {
                matches!(event.kind, EventKind::SessionStarted { .. }) && event.visibility == Visibility::User
            };
            let subagents = events.iter().filter(begins).count();
            events.push(event("root", "root", Visibility::User, ending(seed)));
            // Whatever comes late is not heard.
            events.push(event("root", "root", Visibility::User, EventKind::Status { text: "late".into() }));
            number(&mut events);
            Story { events, said, subagents, is_told_of_subagents }
        },
    )
}

/// As the journal numbers them: what is not kept has the number of what was kept last.
fn number(events: &mut [Event]) {
    let mut seq = 0;
    for (at, event) in events.iter_mut().enumerate() {
        seq += u64::from(event.kind.is_kept());
        event.seq = seq;
        event.at += SignedDuration::from_millis(i64::try_from(at).unwrap());
    }
}

fn is_end_of(event: &Event, id: &str) -> bool {
    matches!(&event.kind, EventKind::TextFinished { message_id, .. } if message_id.to_string() == id)
}

fn ending(seed: u64) -> EventKind {
    let source = Source { agent: name("b"), session_id: SessionId::root(run()) };
    match seed % 4 {
        3 => EventKind::RunWaiting {
            interrupts: vec![interrupt()],
            waits_for: vec![interrupt().approval_id],
            usage: Usage::default(),
            by_agent: Vec::new(),
        },
        0 => EventKind::RunFailed {
            code: "model".into(),
            message: "no".into(),
            usage: Usage::default(),
            by_agent: Vec::new(),
        },
        other => EventKind::RunFinished {
            outcome: if other == 1 { RunOutcome::Success } else { RunOutcome::Cancelled },
            usage: Usage::default(),
            limit: None,
            answered_by: Some(name("root")),
            sources: vec![source],
            by_agent: vec![AgentUsage { agent: name("root"), usage: Usage::default() }],
        },
    }
}

/// A call of a sub-agent that waits for approval.
fn interrupt() -> ApprovalRequest {
    let path = "root/turn:1/tool:1/call:b/turn:1/tool:1";
    ApprovalRequest {
        preview: ApprovalPreview { heading: "Use the tool shell".to_owned(), fields: Vec::new() },
        ..ApprovalRequest::of_call(path, name("b"), "shell", json!({ "command": "make" }))
    }
}

fn run() -> RunId {
    RunId::parse(RUN).unwrap()
}

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

fn event(path: &str, agent: &str, visibility: Visibility, kind: EventKind) -> Event {
    Event {
        seq: 1,
        thread_id: ThreadId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
        run_id: run(),
        at: "2026-01-02T03:04:05Z".parse().unwrap(),
        agent: name(agent),
        path: path.into(),
        visibility,
        kind,
    }
}

fn thinks(path: &str, agent: &str, message_id: MessageId, delta: &str) -> Event {
    event(path, agent, Visibility::Internal, EventKind::Reasoning { message_id, delta: delta.into() })
}

fn lease(path: &str, agent: &str, phase: HandoffPhase) -> Event {
    let handoff = HandoffEvent {
        handoff_id: HandoffId::parse("01890a5d-ac96-774b-bcce-b302099a8058").unwrap(),
        phase,
        from: name("root"),
        to: name("a1"),
        reason: "it is long".into(),
        message: "Connecting you with Agent One…".into(),
        estimated_duration_seconds: None,
    };
    event(path, agent, Visibility::User, EventKind::Handoff(handoff))
}

/// Where an agent is at work.
struct Place {
    path: String,
    session: SessionId,
    owner: Option<String>,
    is_voice: bool,
}

struct Teller {
    seed: u64,
    serial: u64,
    is_told_of_subagents: bool,
    said: Vec<Said>,
}

impl Teller {
    fn turns(&mut self, turns: &[Turn], place: &Place, agent: &str) -> Vec<Event> {
        let told = turns.iter().enumerate().map(|(at, turn)| self.turn(at + 1, turn, place, agent));
        told.collect::<Vec<_>>().concat()
    }

    fn turn(&mut self, number: usize, turn: &Turn, place: &Place, agent: &str) -> Vec<Event> {
        let path = format!("{}/turn:{number}", place.path);
        let mut events = Vec::new();
        if turn.status {
            let kind = EventKind::Status { text: "it takes long".into() };
            let is_shown = place.is_voice && !turn.is_draft;
            let visibility = if is_shown { Visibility::User } else { Visibility::Internal };
            events.push(event(&path, agent, visibility, kind));
        }
        events.extend(turn.lease.filter(|_| place.is_voice).map(|phase| lease(&path, agent, phase)));
        if turn.is_cut {
            events.extend(self.cut(&path, place, agent));
        }
        let thought = self.id();
        if turn.thinks {
            events.extend(["hm", ", so"].map(|delta| thinks(&path, agent, thought, delta)));
        }
        if !turn.pieces.is_empty() {
            let mut text = self.text(&path, turn, place, agent);
            if turn.thinks && text.len() > 2 {
                // Some models think on while they speak.
                text.insert(2, thinks(&path, agent, thought, "; yes"));
            }
            events.extend(text);
        }
        for (at, parts) in turn.calls.iter().enumerate() {
            events.extend(self.call(&format!("{path}/tool:{}", at + 1), parts, place, agent));
        }
        events
    }

    fn cut(&mut self, path: &str, place: &Place, agent: &str) -> Vec<Event> {
        let visibility = if place.is_voice { Visibility::User } else { Visibility::Internal };
        let message_id = self.id();
        let kinds = [
            EventKind::TextStarted { message_id, speaker: agent.into() },
            EventKind::TextDelta { message_id, delta: "cut".into() },
            EventKind::TurnRestarted { message_id },
        ];
        kinds.map(|kind| event(path, agent, visibility, kind)).to_vec()
    }

    fn text(&mut self, path: &str, turn: &Turn, place: &Place, agent: &str) -> Vec<Event> {
        let is_shown = place.is_voice && !turn.is_draft;
        let visibility = if is_shown { Visibility::User } else { Visibility::Internal };
        let (message_id, speaker, text) = (self.id(), agent.to_owned(), turn.pieces.concat());
        let mut kinds = vec![EventKind::TextStarted { message_id, speaker: speaker.clone() }];
        kinds.extend(
            turn.pieces.iter().map(|delta| EventKind::TextDelta { message_id, delta: delta.clone() }),
        );
        if turn.is_missed {
            kinds.clear();
        }
        self.said.push(Said {
            id: message_id.to_string(),
            text: text.clone(),
            owner: place.owner.clone(),
            is_shown,
        });
        kinds.push(EventKind::TextFinished { message_id, speaker, text });
        kinds.into_iter().map(|kind| event(path, agent, visibility, kind)).collect()
    }

    /// A call, and those who work within it at the same time.
    fn call(&mut self, path: &str, parts: &[Part], place: &Place, agent: &str) -> Vec<Event> {
        let call_id = ToolCallId::parse("call_1").unwrap();
        let called =
            EventKind::ToolCalled { call_id: call_id.clone(), tool: "t".into(), arguments: json!({"x": 1}) };
        let mut events = vec![event(path, agent, Visibility::Internal, called)];
        // Only one can get the baton.
        let is_alone = parts.len() == 1;
        let told = parts.iter().enumerate().map(|(at, part)| {
            let part = Part { edge: if is_alone { part.edge } else { "delegate" }, ..part.clone() };
            self.part(at, &part, path, place)
        });
        let told = told.collect();
        let is_whole = parts.iter().all(|part| part.end != End::Never);
        events.extend(self.interleaved(told));
        if is_whole {
            let returned =
                EventKind::ToolReturned { call_id, output: "done".into(), failed: false, files: Vec::new() };
            events.push(event(path, agent, Visibility::Internal, returned));
        }
        events
    }

    fn part(&mut self, at: usize, part: &Part, path: &str, above: &Place) -> Vec<Event> {
        let agent = format!("a{at}");
        let path = format!("{path}/{}:{agent}", part.edge);
        self.serial += 1;
        let session = above.session.child(&name(&agent), u32::try_from(self.serial).unwrap());
        let is_voice = above.is_voice && matches!(part.edge, "transfer" | "handoff");
        let owner = if is_voice { above.owner.clone() } else { Some(session.to_string()) };
        let is_announced = !is_voice && self.is_told_of_subagents;
        let visibility = if is_announced { Visibility::User } else { Visibility::Internal };
        let mut events = Vec::new();
        if is_voice {
            let (from, to) = (name("root"), name(&agent));
            let (by, heard_by) = (HopKind::Transfer, Visibility::User);
            let passed = EventKind::Passed { by, from, to, reason: "it knows".into(), heard_by };
            events.push(event(&path, &agent, Visibility::Internal, passed));
        }
        let (parent, why) = (Some(above.session.clone()), Some("because".to_owned()));
        let started = EventKind::SessionStarted { session_id: session.clone(), parent, why };
        events.push(event(&path, &agent, visibility, started));
        let place = Place { path: path.clone(), session: session.clone(), owner, is_voice };
        events.extend(self.turns(&part.turns, &place, &agent));
        let end = match part.end {
            End::Well => Some(EventKind::SessionFinished { session_id: session }),
            End::Failed => Some(EventKind::SessionFailed {
                session_id: session,
                code: "model".into(),
                message: "no".into(),
            }),
            End::Never => None,
        };
        events.extend(end.map(|kind| event(&path, &agent, visibility, kind)));
        events
    }

    /// Side by side, each in its own order.
    fn interleaved(&mut self, told: Vec<Vec<Event>>) -> Vec<Event> {
        let mut queues: Vec<VecDeque<Event>> = told.into_iter().map(VecDeque::from).collect();
        let mut events = Vec::new();
        while queues.iter().any(|queue| !queue.is_empty()) {
            self.seed =
                self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(self.seed >> 33).unwrap() % queues.len();
            events.extend(queues[at].pop_front());
        }
        events
    }

    fn id(&mut self) -> MessageId {
        self.serial += 1;
        MessageId::from_uuid(Uuid::from_u128(u128::from(self.serial)))
    }
}
