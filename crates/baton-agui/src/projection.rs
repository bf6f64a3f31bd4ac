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
    /// The reasoning or hidden text that is being written.
    reasoning: Option<String>,
    text: Option<String>,
}

impl Projection {
    pub fn new(detail: Detail) -> Self {
        Self { detail, reasoning: None, text: None }
    }

    /// The events for one thing that happened; often one, sometimes none or several.
    pub fn project(&mut self, event: &Event) -> Vec<AguiEvent> {
        if event.visibility == Visibility::Internal && self.detail == Detail::Person {
            return Vec::new();
        }
        let hidden = event.visibility == Visibility::Internal;
        let mut bodies = Vec::new();
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
                let message_id = message_id.to_string();
                self.text = Some(message_id.clone());
                out.push(Body::TextMessageStart { message_id, role: "assistant", name: speaker.clone() });
            }
            EventKind::TextDelta { message_id, delta } => {
                out.push(Body::TextMessageContent {
                    message_id: message_id.to_string(),
                    delta: delta.clone(),
                });
            }
            EventKind::TurnRestarted { message_id } => {
                self.end_text(out);
                out.push(Body::Custom {
                    name: "baton.turn_restarted",
                    value: json!({ "message_id": message_id }),
                });
            }
            EventKind::Reasoning { .. } => self.thought(kind, out),
            _ => self.end_text(out),
        }
    }

    /// Text that is not for the person is thinking aloud.
    fn thought(&mut self, kind: &EventKind, out: &mut Vec<Body>) {
        if let EventKind::TextDelta { message_id, delta } | EventKind::Reasoning { message_id, delta } = kind
        {
            self.think(&message_id.to_string(), delta, out);
        }
    }

    fn think(&mut self, id: &str, delta: &str, out: &mut Vec<Body>) {
        if self.reasoning.as_deref() != Some(id) {
            self.end_reasoning(out);
            self.reasoning = Some(id.to_owned());
            out.push(Body::ReasoningStart { message_id: id.to_owned() });
            out.push(Body::ReasoningMessageStart { message_id: id.to_owned(), role: "reasoning" });
        }
        out.push(Body::ReasoningMessageContent { message_id: id.to_owned(), delta: delta.to_owned() });
    }

    fn end_reasoning(&mut self, out: &mut Vec<Body>) {
        if let Some(message_id) = self.reasoning.take() {
            out.push(Body::ReasoningMessageEnd { message_id: message_id.clone() });
            out.push(Body::ReasoningEnd { message_id });
        }
    }

    fn end_text(&mut self, out: &mut Vec<Body>) {
        if let Some(message_id) = self.text.take() {
            out.push(Body::TextMessageEnd { message_id });
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
        EventKind::TextDelta { .. } | EventKind::TextStarted { .. } => !hidden,
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
            (internal, EventKind::TextFinished { message_id: id(1), text: "plan".into() }),
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
            (user, EventKind::TextFinished { message_id: id(4), text: "Hello".into() }),
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
