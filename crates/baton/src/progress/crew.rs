//! The running agents of a run: the one that answers the person, and its sub-agents below it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_core::event::{Event, EventKind, HandoffPhase};
use baton_core::message::Visibility;
use baton_core::{AgentName, MessageId, SessionId};

use crate::report::table::{cut, line};
use crate::report::{figures, visible};

/// Maximum width of the reason of a call, in columns.
const WHY: usize = 40;
/// Of a name.
const NAME: usize = 32;
/// A guess that fits most languages; the exact numbers come when the run has ended.
const BYTES_PER_TOKEN: usize = 4;

/// How agents are called in front of people.
pub type AgentNames = BTreeMap<AgentName, String>;

/// The running agents, parents before children. The first one answers the person.
#[derive(Debug)]
pub(super) struct Crew {
    names: AgentNames,
    members: Vec<CrewMember>,
}

#[derive(Debug)]
pub(super) struct CrewMember {
    /// The one who speaks to the person has none of their own.
    session: Option<SessionId>,
    path: Arc<str>,
    level: usize,
    name: String,
    why: Option<String>,
    doing: Doing,
    /// Bytes, and the text that they belong to.
    written: usize,
    growing: Option<MessageId>,
    /// How many have worked for it since it thought last.
    helpers: u64,
    began: Instant,
}

#[derive(Debug, PartialEq, Eq)]
enum Doing {
    Thinks,
    Uses(String),
    /// Others have worked for it, and are done.
    Combines(u64),
    /// In its own words.
    Says(String),
}

/// What an event changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CrewChange {
    Nothing,
    /// An agent started.
    Joined(usize),
    /// A line reads differently.
    Changed(usize),
    /// This many agents from this index on have ended. The text says how.
    Left(usize, usize, String),
}

impl Crew {
    pub(super) fn new(names: AgentNames, first: &AgentName) -> Self {
        let mut crew = Self { names, members: Vec::new() };
        let name = crew.name(first);
        crew.members.push(CrewMember::new(None, first.as_str().into(), 0, name));
        crew
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// A member's line, in so many columns.
    pub(super) fn line(&self, at: usize, room: usize) -> String {
        let line = |member: &CrewMember| cut(&member.line(self.children(at)), room);
        self.members.get(at).map(line).unwrap_or_default()
    }

    /// Number of running sub-agents of a member.
    fn children(&self, at: usize) -> u64 {
        let (level, end) = (self.members[at].level, self.below(at));
        let children = self.members[at + 1..end].iter().filter(|member| member.level == level + 1);
        children.map(|_| 1).sum()
    }

    /// When a member began.
    pub(super) fn since(&self, at: usize) -> Instant {
        self.members.get(at).map_or_else(Instant::now, |member| member.began)
    }

    fn name(&self, agent: &AgentName) -> String {
        cut(&visible(self.names.get(agent).map_or(agent.as_str(), String::as_str)), NAME)
    }

    pub(super) fn take(&mut self, event: &Event) -> CrewChange {
        match &event.kind {
            EventKind::SessionStarted { session_id, why, .. } if event.visibility == Visibility::User => {
                self.join(event, session_id, why.as_deref())
            }
            EventKind::SessionFinished { session_id } => self.leave(session_id, None),
            EventKind::SessionFailed { session_id, message, .. } => self.leave(session_id, Some(message)),
            // The holder of the thread answers, which may be another agent than the requested one.
            kind if kind.is_start() => self.speaks(&event.agent),
            // The baton was passed, so another agent answers from now on.
            EventKind::Passed { to, .. } if self.at(&event.path) == 0 => self.speaks(to),
            EventKind::Handoff(handoff) => match handoff.phase {
                HandoffPhase::Connecting | HandoffPhase::Active => self.speaks(&handoff.to),
                _ => self.speaks(&handoff.from),
            },
            _ => {
                let at = self.at(&event.path);
                if self.members[at].take(event) { CrewChange::Changed(at) } else { CrewChange::Nothing }
            }
        }
    }

    /// This one speaks to the person from now on.
    fn speaks(&mut self, agent: &AgentName) -> CrewChange {
        self.members[0].name = self.name(agent);
        self.members[0].doing = Doing::Thinks;
        CrewChange::Changed(0)
    }

    /// Whose work something at this place is: the nearest member above it, or the first.
    fn at(&self, path: &str) -> usize {
        let is_within = |member: &CrewMember| {
            path.strip_prefix(&*member.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let above = self.members.iter().enumerate().skip(1).filter(|(_, member)| is_within(member));
        above.max_by_key(|(_, member)| member.path.len()).map_or(0, |(at, _)| at)
    }

    fn join(&mut self, event: &Event, session: &SessionId, why: Option<&str>) -> CrewChange {
        let parent = self.at(&event.path);
        let level = self.members[parent].level + 1;
        self.members[parent].helpers += 1;
        let at = self.below(parent);
        let name = self.name(&event.agent);
        let mut member = CrewMember::new(Some(session.clone()), Arc::clone(&event.path), level, name);
        member.why = why.map(|why| cut(&line(why), WHY)).filter(|why| !why.is_empty());
        self.members.insert(at, member);
        CrewChange::Joined(at)
    }

    /// Where the members below this one end.
    fn below(&self, at: usize) -> usize {
        let level = self.members[at].level;
        let below = self.members[at + 1..].iter().take_while(|member| member.level > level);
        at + 1 + below.count()
    }

    fn leave(&mut self, session: &SessionId, failed: Option<&str>) -> CrewChange {
        let Some(at) = self.members.iter().position(|member| member.session.as_ref() == Some(session)) else {
            return CrewChange::Nothing;
        };
        let end = self.below(at);
        let told = self.members[at].returning_message(failed);
        let parent =
            self.members[..at].iter().rposition(|one| one.level < self.members[at].level).unwrap_or(0);
        self.members.drain(at..end);
        if self.below(parent) == parent + 1 {
            let parent = &mut self.members[parent];
            parent.doing = Doing::Combines(std::mem::take(&mut parent.helpers));
        }
        CrewChange::Left(at, end - at, told)
    }
}

impl CrewMember {
    fn new(session: Option<SessionId>, path: Arc<str>, level: usize, name: String) -> Self {
        let (why, growing, began) = (None, None, Instant::now());
        let doing = Doing::Thinks;
        Self { session, path, level, name, why, doing, written: 0, growing, helpers: 0, began }
    }

    /// Whether its line reads differently now.
    fn take(&mut self, event: &Event) -> bool {
        match &event.kind {
            EventKind::ToolCalled { tool, .. } => self.doing = Doing::Uses(tool.clone()),
            EventKind::ToolReturned { .. } if !matches!(self.doing, Doing::Combines(_)) => {
                self.doing = Doing::Thinks;
            }
            EventKind::Status { text } => self.doing = Doing::Says(text.clone()),
            EventKind::TextDelta { message_id, delta } | EventKind::Reasoning { message_id, delta } => {
                self.growing = Some(*message_id);
                self.written += delta.len();
            }
            // A text without deltas.
            EventKind::TextFinished { message_id, text, .. } if self.growing != Some(*message_id) => {
                self.written += text.len();
            }
            _ => return false,
        }
        true
    }

    fn tokens(&self) -> Option<String> {
        let tokens = self.written.div_ceil(BYTES_PER_TOKEN);
        (tokens > 0).then(|| format!("~{tokens} tokens"))
    }

    fn line(&self, children: u64) -> String {
        let doing = match &self.doing {
            Doing::Thinks | Doing::Uses(_) | Doing::Combines(_) if children > 0 => {
                format!("{} waits for {}…", self.name, figures::count(children, "agent"))
            }
            Doing::Thinks => format!("{} thinks…", self.name),
            // Tools are named by the model, and a status may quote a server.
            Doing::Uses(tool) => format!("{} uses {}…", self.name, visible(tool)),
            Doing::Combines(1) => format!("{} looks at the result…", self.name),
            Doing::Combines(results) => format!("{} puts {results} results together…", self.name),
            Doing::Says(text) => line(text),
        };
        let why = self.why.as_ref().map(|why| format!("({why})"));
        let tokens = self.tokens().filter(|_| self.level > 0);
        let parts = [Some(doing), tokens, why];
        self.indent() + &parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    fn indent(&self) -> String {
        match self.level {
            0 => String::new(),
            level => "  ".repeat(level - 1) + "└ ",
        }
    }

    /// What is left to read when it has gone.
    fn returning_message(&self, failed: Option<&str>) -> String {
        let sign = if failed.is_some() { "✗" } else { "✓" };
        let took: Duration = self.began.elapsed();
        let parts = [
            Some(self.name.clone()),
            self.tokens(),
            Some(figures::stretch(took)),
            failed.map(|message| cut(&line(message), 2 * WHY)),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{}{sign} {}", "  ".repeat(self.level.saturating_sub(1)), parts.join(" · "))
    }
}

#[cfg(test)]
mod tests {
    use baton_core::store::HopKind;
    use baton_core::{RunId, ThreadId, ToolCallId};
    use serde_json::json;

    use super::*;

    fn name(text: &str) -> AgentName {
        AgentName::parse(text).unwrap()
    }

    fn event(path: &str, visibility: Visibility, kind: EventKind) -> Event {
        let agent = path.rsplit([':', '/']).next().unwrap();
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

    fn run() -> RunId {
        RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap()
    }

    fn session(path: &str) -> SessionId {
        SessionId::root(run()).child(&name("x"), u32::try_from(path.len()).unwrap())
    }

    fn started(path: &str, why: &str) -> Event {
        let why = Some(why.to_owned());
        event(
            path,
            Visibility::User,
            EventKind::SessionStarted { session_id: session(path), parent: None, why },
        )
    }

    fn finished(path: &str) -> Event {
        event(path, Visibility::User, EventKind::SessionFinished { session_id: session(path) })
    }

    fn lines(crew: &Crew) -> Vec<String> {
        (0..crew.len()).map(|at| crew.line(at, 200)).collect()
    }

    /// F31: who was spawned and why, how far each has come, and that the results are being combined.
    #[test]
    fn f31_the_tree_shows_spawning_progress_and_combining() {
        let names = AgentNames::from([(name("legal"), "Legal Counsel".to_owned())]);
        let mut crew = Crew::new(names, &name("a"));
        let (legal, books, web) = (
            "a/turn:1/tool:1/call:legal",
            "a/turn:1/tool:1/call:legal/turn:1/tool:1/call:books",
            "a/turn:1/tool:2/call:web",
        );
        let call_id = ToolCallId::parse("c").unwrap();
        let called = EventKind::ToolCalled {
            call_id: call_id.clone(),
            tool: "call_agent\u{1b}".into(),
            arguments: json!({}),
        };
        assert_eq!(
            crew.take(&event("a/turn:1/tool:1", Visibility::Internal, called)),
            CrewChange::Changed(0)
        );
        assert_eq!(lines(&crew), ["a uses call_agent\\u{1b}…"]);
        assert_eq!(crew.take(&started(legal, "Is it\nallowed?")), CrewChange::Joined(1));
        assert_eq!(crew.take(&started(web, "")), CrewChange::Joined(2));
        assert_eq!(crew.take(&started(books, "Which law?")), CrewChange::Joined(2));
        let message_id = MessageId::parse("01890a5d-ac96-774b-bcce-b30200000001").unwrap();
        let delta = EventKind::TextDelta { message_id, delta: "eight by".into() };
        assert_eq!(
            crew.take(&event(&format!("{books}/turn:1"), Visibility::Internal, delta)),
            CrewChange::Changed(2)
        );
        assert_eq!(
            lines(&crew),
            [
                "a waits for 2 agents…",
                "└ Legal Counsel waits for 1 agent… (Is it allowed?)",
                "  └ books thinks… ~2 tokens (Which law?)",
                "└ web thinks…"
            ]
        );
        // The sub-agents of an agent that ends have ended too.
        let CrewChange::Left(1, 2, told) = crew.take(&finished(legal)) else { panic!("two left") };
        assert!(told.starts_with("✓ Legal Counsel · "), "{told}");
        let failed = EventKind::SessionFailed {
            session_id: session(web),
            code: "late".into(),
            message: "too late".into(),
        };
        let CrewChange::Left(1, 1, told) = crew.take(&event(web, Visibility::User, failed)) else {
            panic!("one left")
        };
        assert!(told.starts_with("✗ web · ") && told.ends_with(" · too late"), "{told}");
        let returned =
            EventKind::ToolReturned { call_id, output: String::new(), failed: false, files: Vec::new() };
        crew.take(&event("a/turn:1/tool:1", Visibility::Internal, returned));
        assert_eq!(lines(&crew), ["a puts 2 results together…"]);
    }

    #[test]
    fn lines_fit_into_narrow_terminals() {
        let long = "A very long name that nobody should give to an agent, but people do";
        let mut crew = Crew::new(AgentNames::from([(name("b"), long.to_owned())]), &name("a"));
        crew.take(&started("a/turn:1/tool:1/call:b", "And a reason that is long too, as models like it"));
        assert_eq!(
            [40, 60].map(|room| crew.line(1, room)),
            [
                "└ A very long name that nobody sh… thin…",
                "└ A very long name that nobody sh… thinks… (And a reason th…"
            ]
        );
        // One is done before another one begins: that is no result yet.
        crew.take(&finished("a/turn:1/tool:1/call:b"));
        crew.take(&started("a/turn:1/tool:2/call:c", ""));
        assert_eq!(lines(&crew)[0], "a waits for 1 agent…");
    }

    #[test]
    fn whoever_gets_the_baton_is_who_thinks_now() {
        let mut crew = Crew::new(AgentNames::new(), &name("a"));
        let (from, to) = (name("a"), name("b"));
        let (by, heard_by) = (HopKind::Transfer, Visibility::User);
        let passed = EventKind::Passed { by, from, to, reason: String::new(), heard_by };
        crew.take(&event("a/turn:1/tool:1/transfer:b", Visibility::Internal, passed));
        // Not a sub-agent: it speaks to the person.
        let path = "a/turn:1/tool:1/transfer:b";
        let kind = EventKind::SessionStarted { session_id: session(path), parent: None, why: None };
        assert_eq!(crew.take(&event(path, Visibility::Internal, kind)), CrewChange::Nothing);
        assert_eq!(lines(&crew), ["b thinks…"]);
    }
}
