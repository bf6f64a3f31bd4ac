//! Reads event logs in the form that the engine's snapshots have: a line for each event, `·` before what is not for the person.
//!
//! Ids are not in the text and are made up here, the same each time. Three forms are not the engine's: `> text` is a person's message,
//! `handoff <phase> <from> → <to>: "message"`, and `progress <step>/<total> <state>: "label"`.

use std::collections::HashMap;

use baton_core::choice::Choice as _;
use baton_core::event::{Event, EventKind, HandoffEvent, HandoffPhase, RunOutcome, Source};
use baton_core::message::{Message, Part, Role, Visibility};
use baton_core::store::HopKind;
use baton_core::workflow::WorkflowProgress;
use baton_core::{AgentName, HandoffId, MessageId, RunId, SessionId, ThreadId, ToolCallId, Usage};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use uuid::Uuid;

use super::Log;

/// The event log of an engine snapshot, if it holds a whole one in its order.
pub fn of_snapshot(snapshot: &str) -> Option<String> {
    let body = snapshot.splitn(3, "---\n").nth(2)?;
    let log = body.split("\n\n").next()?.trim_end_matches('\n');
    let is_whole = log.lines().next()?.ends_with(" run started") && is_end(log.lines().last()?);
    let runs = log.lines().filter(|line| is_end(line)).count();
    (is_whole && runs == 1).then(|| format!("> Go\n{log}\n"))
}

fn is_end(line: &str) -> bool {
    line.contains(" run finished: ") || line.contains(" run failed: ")
}

pub fn parse(text: &str) -> Log {
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.line(line).unwrap_or_else(|| panic!("cannot read the event {line:?}"));
    }
    Log { events: reader.events, questions: reader.questions }
}

/// A person's message, the `at`th of its thread.
pub fn question(at: usize, run_id: RunId, text: &str) -> Message {
    Message {
        id: MessageId::from_uuid(id(4, at)),
        run_id,
        role: Role::User,
        agent: None,
        visibility: Visibility::User,
        parts: vec![Part::text(text)],
        created_at: START.parse().unwrap(),
    }
}

const START: &str = "2026-01-02T03:04:05Z";
/// Between two events.
const TICK: SignedDuration = SignedDuration::from_millis(100);

fn id(kind: u128, at: usize) -> Uuid {
    Uuid::from_u128(0x0189_0a5d_ac96_7000_8000_0000_0000_0000 | kind << 32 | u128::try_from(at).unwrap())
}

#[derive(Default)]
struct Reader {
    events: Vec<Event>,
    questions: Vec<Message>,
    seq: u64,
    serial: usize,
    runs: usize,
    handoffs: usize,
    is_handed_over: bool,
    /// By path, of the run that is being read.
    sessions: HashMap<String, SessionId>,
    texts: HashMap<String, (MessageId, String)>,
    thoughts: HashMap<String, MessageId>,
    sources: Vec<Source>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Option<()> {
        if let Some(text) = line.strip_prefix("> ") {
            self.questions.push(question(self.questions.len(), run_id(self.runs), text));
            return Some(());
        }
        let (visibility, rest) = match line.strip_prefix('·') {
            Some(rest) => (Visibility::Internal, rest),
            None => (Visibility::User, line.strip_prefix(' ')?),
        };
        let (path, what) = rest.split_once(' ')?;
        let what = what.trim_start();
        // Says that a result came, but not which.
        if what == "brought" {
            return Some(());
        }
        let kind = self.kind(path, what, visibility)?;
        self.seq += u64::from(kind.is_kept());
        let is_end = kind.is_end();
        self.events.push(Event {
            seq: self.seq,
            thread_id: ThreadId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
            run_id: run_id(self.runs),
            at: self.now(),
            agent: agent_at(path),
            path: path.into(),
            visibility,
            kind,
        });
        if is_end {
            self.end_run();
        }
        Some(())
    }

    fn now(&self) -> Timestamp {
        START.parse::<Timestamp>().unwrap() + TICK * i32::try_from(self.events.len()).unwrap()
    }

    fn end_run(&mut self) {
        self.runs += 1;
        self.sessions.clear();
        self.texts.clear();
        self.thoughts.clear();
        self.sources.clear();
    }

    fn kind(&mut self, path: &str, what: &str, visibility: Visibility) -> Option<EventKind> {
        None.or_else(|| self.run(what))
            .or_else(|| self.session(path, what, visibility))
            .or_else(|| self.text(path, what))
            .or_else(|| call(what))
            .or_else(|| self.handoff(what))
            .or_else(|| passed(what))
            .or_else(|| team(what))
    }

    fn run(&self, what: &str) -> Option<EventKind> {
        if let Some(end) = what.strip_prefix("run finished: ") {
            let (outcome, limit) =
                end.split_once(", limit ").map_or((end, None), |(outcome, limit)| (outcome, Some(limit)));
            return Some(EventKind::RunFinished {
                outcome: RunOutcome::parse(outcome)?,
                usage: Usage::default(),
                limit: limit.map(str::to_owned),
                answered_by: None,
                sources: self.sources.clone(),
                by_agent: Vec::new(),
            });
        }
        if let Some(failure) = what.strip_prefix("run failed: ") {
            let (code, message) = failure.split_once(": ")?;
            let (code, message) = (code.to_owned(), message.to_owned());
            return Some(EventKind::RunFailed {
                code,
                message,
                usage: Usage::default(),
                by_agent: Vec::new(),
            });
        }
        what.starts_with("run started").then(|| EventKind::RunStarted { is_held: what.ends_with(", held") })
    }

    fn session(&mut self, path: &str, what: &str, visibility: Visibility) -> Option<EventKind> {
        if let Some(why) = what.strip_prefix("session started") {
            let parent = self.session_above(path);
            self.serial += 1;
            let nonce = u32::try_from(self.serial).unwrap();
            let session_id = match &parent {
                Some(parent) => parent.child(&agent_at(path), nonce),
                None => SessionId::root(run_id(self.runs)),
            };
            self.sessions.insert(path.to_owned(), session_id.clone());
            if visibility == Visibility::User {
                self.sources.push(Source { agent: agent_at(path), session_id: session_id.clone() });
            }
            let why = why.strip_prefix(": ").and_then(quoted);
            return Some(EventKind::SessionStarted { session_id, parent, why });
        }
        let session_id = self.sessions.get(path)?.clone();
        if let Some(failure) = what.strip_prefix("session failed: ") {
            let (code, message) = failure.split_once(": ")?;
            return Some(EventKind::SessionFailed {
                session_id,
                code: code.to_owned(),
                message: message.to_owned(),
            });
        }
        (what == "session finished").then_some(EventKind::SessionFinished { session_id })
    }

    fn session_above(&self, path: &str) -> Option<SessionId> {
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        above.filter_map(|path| self.sessions.get(path)).next_back().cloned()
    }

    fn text(&mut self, path: &str, what: &str) -> Option<EventKind> {
        if let Some(speaker) = what.strip_prefix("text starts (") {
            let (message_id, speaker) = (self.message_id(), speaker.strip_suffix(')')?.to_owned());
            self.texts.insert(path.to_owned(), (message_id, speaker.clone()));
            return Some(EventKind::TextStarted { message_id, speaker });
        }
        if let Some(text) = what.strip_prefix("text ends ") {
            let unseen = || super::profiles().name_of(&agent_at(path)).to_owned();
            let (message_id, speaker) =
                self.texts.remove(path).unwrap_or_else(|| (self.message_id(), unseen()));
            return Some(EventKind::TextFinished { message_id, speaker, text: quoted(text)? });
        }
        if let Some(delta) = what.strip_prefix("text ") {
            return Some(EventKind::TextDelta { message_id: self.texts.get(path)?.0, delta: quoted(delta)? });
        }
        if let Some(delta) = what.strip_prefix("thinks ") {
            let fresh = self.message_id();
            let message_id = *self.thoughts.entry(path.to_owned()).or_insert(fresh);
            return Some(EventKind::Reasoning { message_id, delta: quoted(delta)? });
        }
        if what == "turn restarted" {
            let message_id = self.texts.remove(path).map_or_else(|| self.message_id(), |(id, _)| id);
            return Some(EventKind::TurnRestarted { message_id });
        }
        Some(EventKind::Status { text: quoted(what.strip_prefix("status ")?)? })
    }

    fn message_id(&mut self) -> MessageId {
        self.serial += 1;
        MessageId::from_uuid(id(1, self.serial))
    }

    fn handoff(&mut self, what: &str) -> Option<EventKind> {
        if let Some(progress) = what.strip_prefix("progress ") {
            let (step, rest) = progress.split_once('/')?;
            let (total, rest) = rest.split_once(' ')?;
            let (state, label) = rest.split_once(": ")?;
            let (step, total) = (step.parse().ok()?, total.parse().ok()?);
            let (state, label) = (state.to_owned(), quoted(label)?);
            let answered = step - 1;
            let (mode, text) =
                ("[Skill Creation Mode]".to_owned(), format!("{label} - {answered}/{total} answers"));
            let mode = Some(mode);
            let progress =
                WorkflowProgress { state, label, step, total, answered, questions: total, mode, text };
            return Some(EventKind::Progress(progress));
        }
        let (phase, rest) = what.strip_prefix("handoff ")?.split_once(' ')?;
        let phase = HandoffPhase::parse(phase)?;
        let (from, rest) = rest.split_once(" → ")?;
        let (to, message) = rest.split_once(": ")?;
        self.handoffs += usize::from(!self.is_handed_over);
        self.is_handed_over =
            matches!(phase, HandoffPhase::Connecting | HandoffPhase::Active | HandoffPhase::Returning);
        Some(EventKind::Handoff(HandoffEvent {
            handoff_id: HandoffId::from_uuid(id(3, self.handoffs)),
            phase,
            from: AgentName::parse(from).ok()?,
            to: AgentName::parse(to).ok()?,
            reason: "it was asked for".to_owned(),
            message: quoted(message)?,
            estimated_duration_seconds: None,
        }))
    }
}

fn call(what: &str) -> Option<EventKind> {
    let call_id = ToolCallId::parse("call_1").unwrap();
    if let Some(call) = what.strip_prefix("calls ") {
        let (tool, arguments) = call.strip_suffix(')')?.split_once('(')?;
        let arguments: Value = serde_json::from_str(arguments).ok()?;
        return Some(EventKind::ToolCalled { call_id, tool: tool.to_owned(), arguments });
    }
    let (word, output) = what.split_once(' ')?;
    let failed = word == "fails";
    if !failed && word != "returns" {
        return None;
    }
    Some(EventKind::ToolReturned { call_id, output: quoted(output)?, failed, files: Vec::new() })
}

fn passed(what: &str) -> Option<EventKind> {
    let (by, rest) = what.split_once(' ')?;
    let (from, rest) = rest.split_once(" → ")?;
    let (to, rest) = rest.split_once(", heard by ")?;
    let (heard_by, reason) = rest.split_once(": ")?;
    Some(EventKind::Passed {
        by: HopKind::parse(by)?,
        from: AgentName::parse(from).ok()?,
        to: AgentName::parse(to).ok()?,
        reason: quoted(reason)?,
        heard_by: Visibility::parse(heard_by)?,
    })
}

fn team(what: &str) -> Option<EventKind> {
    if let Some(end) = what.strip_prefix("team ended after ") {
        let (rounds, rest) = end.split_once(" rounds by ")?;
        let (by, dissent) = rest.split_once(", dissent ")?;
        let (rounds, dissent) = (rounds.parse().ok()?, serde_json::from_str(dissent).ok()?);
        return Some(EventKind::TeamEnded { rounds, by: by.to_owned(), dissent });
    }
    let (member, rest) = what.split_once(" in round ")?;
    let (round, text) = rest.split_once(": ")?;
    let member = AgentName::parse(member).ok()?;
    let text = quoted(text)?;
    match round.split_once(" is ") {
        None => Some(EventKind::Broadcast { member, round: round.parse().ok()?, text }),
        Some((round, vote)) => {
            let (round, ready) = (round.parse().ok()?, vote == "ready");
            Some(EventKind::Voted { member, round, ready, reason: text })
        }
    }
}

/// A text as `{:?}` writes it.
fn quoted(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

/// The agent of a path: the last one that was involved there.
fn agent_at(path: &str) -> AgentName {
    const EDGES: [&str; 8] =
        ["advisor", "call", "delegate", "handoff", "member", "route", "transfer", "chain"];
    let mut parts = path.split('/');
    let root = parts.next().unwrap_or_default();
    let mut involved = parts.filter_map(|part| part.split_once(':')).filter(|(edge, _)| EDGES.contains(edge));
    AgentName::parse(involved.next_back().map_or(root, |(_, agent)| agent)).unwrap()
}

fn run_id(at: usize) -> RunId {
    RunId::from_uuid(id(2, at))
}
