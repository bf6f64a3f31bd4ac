//! From what happened to what a client is told.

use baton_core::choices;
use baton_core::event::{Event, EventKind, Outcome};
use baton_core::message::Visibility;
use serde_json::{Value, json};

use crate::wire::{AguiEvent, Body, Metadata, Origin};

choices! {
    /// How much a listener may see.
    pub enum Detail {
        /// What the person sees.
        Person = "person",
        /// Everything, also what agents say behind the scenes.
        Trace = "trace",
    }
}

/// Projects one run for one listener. Keeps what is open, because clients refuse an end without a start and a run that
/// ends with something open.
#[derive(Debug)]
pub struct Projection {
    detail: Detail,
    /// Clients want to hear of the run before anything in it.
    is_started: bool,
    /// The reasoning or hidden text that is being written.
    reasoning: Option<Text>,
    text: Option<Text>,
}

/// A text that is being written, and how much of it was sent.
#[derive(Debug)]
struct Text {
    id: String,
    sent: usize,
}

impl Projection {
    pub fn new(detail: Detail) -> Self {
        Self { detail, is_started: false, reasoning: None, text: None }
    }

    /// The events for one thing that happened; often one, sometimes none or several.
    pub fn project(&mut self, event: &Event) -> Vec<AguiEvent> {
        if event.visibility == Visibility::Internal && self.detail == Detail::Person {
            return Vec::new();
        }
        let hidden = event.visibility == Visibility::Internal;
        let mut bodies = Vec::new();
        if !std::mem::replace(&mut self.is_started, true) && event.kind != EventKind::RunStarted {
            // It ended before it began, as when it was cancelled while it waited.
            bodies.push(Body::RunStarted { thread_id: event.thread_id, run_id: event.run_id });
        }
        if ends_thought(&event.kind, hidden) {
            self.end_reasoning(&mut bodies);
        }
        self.bodies(event, hidden, &mut bodies);
        bodies.into_iter().map(|body| envelope(event, body)).collect()
    }

    fn bodies(&mut self, event: &Event, hidden: bool, out: &mut Vec<Body>) {
        let (thread_id, run_id) = (event.thread_id, event.run_id);
        match &event.kind {
            EventKind::RunStarted => out.push(Body::RunStarted { thread_id, run_id }),
            EventKind::RunFinished { outcome, usage, limit } => {
                self.end_text(out);
                out.push(Body::Custom {
                    name: "baton.usage",
                    value: json!({ "usage": usage, "limit": limit }),
                });
                let outcome =
                    json!({ "type": if *outcome == Outcome::Cancelled { "cancelled" } else { "success" } });
                out.push(Body::RunFinished { thread_id, run_id, outcome });
            }
            EventKind::RunFailed { code, message, usage } => {
                self.end_text(out);
                out.push(Body::Custom { name: "baton.usage", value: json!({ "usage": usage }) });
                out.push(Body::RunError { message: message.clone(), code: code.clone() });
            }
            EventKind::Status { text } => out.push(activity(event, "baton.status", json!({ "text": text }))),
            EventKind::Progress { state, label, step, total } => {
                let content = json!({ "state": state, "label": label, "step": step, "total": total });
                out.push(activity(event, "baton.progress", content));
            }
            EventKind::Handoff(handoff) => {
                let value = serde_json::to_value(handoff).unwrap_or(Value::Null);
                out.push(Body::Custom { name: "baton.handoff", value });
            }
            EventKind::ToolCalled { .. } | EventKind::ToolReturned { .. } => tool(event, out),
            EventKind::SessionStarted { .. }
            | EventKind::SessionFinished { .. }
            | EventKind::SessionFailed { .. } => {}
            words if hidden => self.thought(words, out),
            words => self.words(words, out),
        }
    }

    /// What the person reads.
    fn words(&mut self, kind: &EventKind, out: &mut Vec<Body>) {
        match kind {
            EventKind::TextStarted { message_id, speaker } => {
                self.start_text(&message_id.to_string(), speaker, out);
            }
            EventKind::TextDelta { message_id, delta } => self.grow(&message_id.to_string(), delta, out),
            EventKind::TurnRestarted { message_id } => {
                self.end_text(out);
                out.push(Body::Custom {
                    name: "baton.turn_restarted",
                    value: json!({ "message_id": message_id }),
                });
            }
            EventKind::Reasoning { .. } => self.thought(kind, out),
            EventKind::TextFinished { message_id, speaker, text } => {
                self.whole_text(&message_id.to_string(), speaker, text, out);
            }
            _ => self.end_text(out),
        }
    }

    fn start_text(&mut self, id: &str, speaker: &str, out: &mut Vec<Body>) {
        self.end_text(out);
        self.text = Some(Text { id: id.to_owned(), sent: 0 });
        let (message_id, name) = (id.to_owned(), speaker.to_owned());
        out.push(Body::TextMessageStart { message_id, role: "assistant", name });
    }

    /// More of a text that was started here.
    fn grow(&mut self, id: &str, delta: &str, out: &mut Vec<Body>) {
        if let Some(text) = self.text.as_mut().filter(|text| text.id == id && !delta.is_empty()) {
            text.sent += delta.len();
            out.push(Body::TextMessageContent { message_id: id.to_owned(), delta: delta.to_owned() });
        }
    }

    /// The end of a text, with whatever of it this listener did not see growing.
    fn whole_text(&mut self, id: &str, speaker: &str, text: &str, out: &mut Vec<Body>) {
        if self.text.as_ref().is_none_or(|open| open.id != id) {
            self.start_text(id, speaker, out);
        }
        let sent = self.text.as_ref().map_or(0, |open| open.sent);
        self.grow(id, text.get(sent..).unwrap_or_default(), out);
        self.end_text(out);
    }

    /// Text that is not for the person is thinking aloud.
    fn thought(&mut self, kind: &EventKind, out: &mut Vec<Body>) {
        if let EventKind::TextFinished { message_id, text, .. } = kind {
            return self.whole_thought(&message_id.to_string(), text, out);
        }
        if let EventKind::TextDelta { message_id, delta } | EventKind::Reasoning { message_id, delta } = kind
        {
            self.think(&message_id.to_string(), delta, out);
        }
    }

    /// The end of a thought, with whatever of it this listener did not see growing.
    fn whole_thought(&mut self, id: &str, text: &str, out: &mut Vec<Body>) {
        let open = self.reasoning.as_ref().filter(|open| open.id == id);
        let missed = text.get(open.map_or(0, |open| open.sent)..).unwrap_or_default();
        if !missed.is_empty() {
            self.think(id, missed, out);
        }
        self.end_reasoning(out);
    }

    fn think(&mut self, id: &str, delta: &str, out: &mut Vec<Body>) {
        if self.reasoning.as_ref().is_none_or(|open| open.id != id) {
            self.end_reasoning(out);
            self.reasoning = Some(Text { id: id.to_owned(), sent: 0 });
            out.push(Body::ReasoningStart { message_id: id.to_owned() });
            out.push(Body::ReasoningMessageStart { message_id: id.to_owned(), role: "reasoning" });
        }
        if let Some(open) = &mut self.reasoning {
            open.sent += delta.len();
        }
        out.push(Body::ReasoningMessageContent { message_id: id.to_owned(), delta: delta.to_owned() });
    }

    fn end_reasoning(&mut self, out: &mut Vec<Body>) {
        if let Some(Text { id: message_id, .. }) = self.reasoning.take() {
            out.push(Body::ReasoningMessageEnd { message_id: message_id.clone() });
            out.push(Body::ReasoningEnd { message_id });
        }
    }

    fn end_text(&mut self, out: &mut Vec<Body>) {
        if let Some(text) = self.text.take() {
            out.push(Body::TextMessageEnd { message_id: text.id });
        }
    }
}

fn tool(event: &Event, out: &mut Vec<Body>) {
    match &event.kind {
        EventKind::ToolCalled { call_id, tool, arguments } => {
            let id = unique(event, call_id.as_str());
            out.push(Body::ToolCallStart { tool_call_id: id.clone(), tool_call_name: tool.clone() });
            out.push(Body::ToolCallArgs { tool_call_id: id.clone(), delta: arguments.to_string() });
            out.push(Body::ToolCallEnd { tool_call_id: id });
        }
        EventKind::ToolReturned { call_id, output, .. } => {
            let tool_call_id = unique(event, call_id.as_str());
            let message_id = format!("{tool_call_id}/result");
            out.push(Body::ToolCallResult {
                message_id,
                tool_call_id,
                content: output.clone(),
                role: "tool",
            });
        }
        _ => {}
    }
}

/// Whether an event is something else than more of the same thought.
fn ends_thought(kind: &EventKind, hidden: bool) -> bool {
    match kind {
        EventKind::Reasoning { .. } => false,
        EventKind::TextDelta { .. } | EventKind::TextStarted { .. } | EventKind::TextFinished { .. } => {
            !hidden
        }
        _ => true,
    }
}

/// Providers number calls anew in each turn; clients want an id once per run.
fn unique(event: &Event, call_id: &str) -> String {
    format!("{}/{call_id}", event.path)
}

fn activity(event: &Event, activity_type: &'static str, content: Value) -> Body {
    Body::ActivitySnapshot { message_id: format!("{}/{activity_type}", event.run_id), activity_type, content }
}

fn envelope(event: &Event, body: Body) -> AguiEvent {
    let origin = Origin {
        thread_id: event.thread_id,
        run_id: event.run_id,
        agent: event.agent.clone(),
        path: event.path.split('/').map(str::to_owned).collect(),
        seq: event.seq,
    };
    AguiEvent { body, timestamp: event.at.as_millisecond(), metadata: Metadata { baton: origin } }
}

#[cfg(test)]
mod tests {
    use baton_core::{AgentName, MessageId, RunId, ThreadId, ToolCallId, Usage};

    use super::*;

    fn event(visibility: Visibility, kind: EventKind) -> Event {
        Event {
            seq: 1,
            thread_id: ThreadId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
            run_id: RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap(),
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            agent: AgentName::parse("assistant").unwrap(),
            path: "assistant/turn:1".into(),
            visibility,
            kind,
        }
    }

    /// A run with thinking, a tool, a cut answer and the answer, as type names.
    fn types(detail: Detail) -> Vec<String> {
        let id = |n: u8| MessageId::parse(&format!("01890a5d-ac96-774b-bcce-b3020000000{n}")).unwrap();
        let call_id = ToolCallId::parse("call_1").unwrap();
        let (user, internal) = (Visibility::User, Visibility::Internal);
        let events = [
            (user, EventKind::RunStarted),
            (internal, EventKind::TextStarted { message_id: id(1), speaker: "A".into() }),
            (internal, EventKind::TextDelta { message_id: id(1), delta: "plan".into() }),
            (
                internal,
                EventKind::TextFinished { message_id: id(1), speaker: "A".into(), text: "plan".into() },
            ),
            (internal, EventKind::Reasoning { message_id: id(2), delta: "hm".into() }),
            (
                internal,
                EventKind::ToolCalled { call_id: call_id.clone(), tool: "t".into(), arguments: json!({}) },
            ),
            (internal, EventKind::ToolReturned { call_id, output: "x".into(), failed: false }),
            (user, EventKind::TextStarted { message_id: id(3), speaker: "A".into() }),
            (user, EventKind::TextDelta { message_id: id(3), delta: "Hel".into() }),
            (user, EventKind::TurnRestarted { message_id: id(3) }),
            (user, EventKind::TextStarted { message_id: id(4), speaker: "A".into() }),
            (user, EventKind::TextDelta { message_id: id(4), delta: "Hello".into() }),
            (user, EventKind::TextFinished { message_id: id(4), speaker: "A".into(), text: "Hello".into() }),
            (
                user,
                EventKind::RunFinished { outcome: Outcome::Success, usage: Usage::default(), limit: None },
            ),
        ];
        let mut projection = Projection::new(detail);
        let projected =
            events.into_iter().flat_map(|(visibility, kind)| projection.project(&event(visibility, kind)));
        projected
            .map(|event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_person_sees_only_what_is_said_to_them() {
        assert_eq!(
            types(Detail::Person),
            [
                "RUN_STARTED",
                "TEXT_MESSAGE_START",
                "TEXT_MESSAGE_CONTENT",
                "TEXT_MESSAGE_END",
                "CUSTOM",
                "TEXT_MESSAGE_START",
                "TEXT_MESSAGE_CONTENT",
                "TEXT_MESSAGE_END",
                "CUSTOM",
                "RUN_FINISHED"
            ]
        );
    }

    #[test]
    fn a_trace_shows_everything_and_leaves_nothing_open() {
        let types = types(Detail::Trace);
        let count = |name: &str| types.iter().filter(|t| *t == name).count();
        assert_eq!(count("REASONING_START"), 2);
        for (start, end) in [
            ("REASONING_START", "REASONING_END"),
            ("TEXT_MESSAGE_START", "TEXT_MESSAGE_END"),
            ("TOOL_CALL_START", "TOOL_CALL_RESULT"),
        ] {
            assert_eq!(count(start), count(end), "{start}");
        }
        assert_eq!(types.last().unwrap(), "RUN_FINISHED");
    }

    #[test]
    fn what_was_missed_of_a_text_comes_with_its_end() {
        let message_id = MessageId::parse("01890a5d-ac96-774b-bcce-b30200000001").unwrap();
        let (speaker, text) = ("A".to_owned(), "Hello, world".to_owned());
        let finished = EventKind::TextFinished { message_id, speaker: speaker.clone(), text };
        let contents = |seen: Vec<EventKind>| {
            let mut projection = Projection::new(Detail::Person);
            let events = seen.into_iter().flat_map(|kind| projection.project(&event(Visibility::User, kind)));
            let json: Vec<Value> = events.map(|event| serde_json::to_value(event).unwrap()).collect();
            let text: String = json.iter().filter_map(|event| event["delta"].as_str()).collect();
            (json.len(), text)
        };
        let started = EventKind::TextStarted { message_id, speaker };
        let hello = EventKind::TextDelta { message_id, delta: "Hello".into() };
        let whole = "Hello, world".to_owned();
        assert_eq!(contents(vec![finished.clone()]), (4, whole.clone()), "with the beginning of the run");
        assert_eq!(contents(vec![started, hello.clone(), finished.clone()]), (5, whole.clone()));
        assert_eq!(contents(vec![hello, finished]), (4, whole), "a piece without its beginning is not shown");
    }

    #[test]
    fn fields_are_camel_case_and_never_null() {
        let mut projection = Projection::new(Detail::Person);
        let started = projection.project(&event(Visibility::User, EventKind::RunStarted));
        let json = serde_json::to_string(&started[0]).unwrap();
        assert_eq!(
            json,
            r#"{"type":"RUN_STARTED","threadId":"550e8400-e29b-41d4-a716-446655440000","runId":"01890a5d-ac96-774b-bcce-b302099a8057","timestamp":1767323045000,"metadata":{"baton":{"thread_id":"550e8400-e29b-41d4-a716-446655440000","run_id":"01890a5d-ac96-774b-bcce-b302099a8057","agent":"assistant","path":["assistant","turn:1"],"seq":1}}}"#
        );
    }
}
