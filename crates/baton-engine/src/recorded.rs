//! Decodes the steps of a run, for transcripts and the API.

use baton_core::chat::{Reply, ToolCall, ToolResult};
use baton_core::choice::Choice as _;
use baton_core::message::{IncludedParts, Part, parts_to_text};
use baton_core::store::{Step, StepKind, StepState};
use serde::Deserialize;
use serde_json::Value;

use crate::bounds::InvocationKind;

/// The decoded data of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordedStep {
    /// The task of a session. Empty for the root session: its task is the message of the run.
    Task(Vec<Part>),
    /// The reply of a model in a turn.
    Reply(Reply),
    /// The result of a tool call.
    Returned(ToolResult),
    /// A text that was published without streaming it.
    Text(String),
    /// The data of a round, a note or a wait.
    Data(Value),
    /// The step was started and never finished, or its data cannot be read.
    Unfinished,
}

/// The field that is read from a session's step, started or finished.
#[derive(Default, Deserialize)]
struct RecordedInput {
    #[serde(default)]
    input: Vec<Part>,
}

/// The field that is read from a finished turn.
#[derive(Deserialize)]
struct RecordedTurn {
    reply: Reply,
}

impl RecordedStep {
    pub fn of(step: &Step) -> Self {
        let data = &step.data;
        match (step.kind, step.state) {
            (StepKind::Session, _) => Self::Task(data.read::<RecordedInput>().unwrap_or_default().input),
            (StepKind::Round | StepKind::Note | StepKind::Wait, _) => Self::Data(data.json()),
            (_, StepState::Started) => Self::Unfinished,
            (StepKind::Turn, _) => data
                .read::<RecordedTurn>()
                .map_or(Self::Unfinished, |RecordedTurn { reply }| Self::Reply(reply)),
            (StepKind::Tool, _) => data.read().map_or(Self::Unfinished, Self::Returned),
            (StepKind::Say, _) => Self::Text(data.read().unwrap_or_default()),
        }
    }
}

/// The call that a tool's step belongs to: `…/turn:2/tool:1` is the first call of the reply at `…/turn:2`.
pub fn call_of<'a>(path: &str, reply_at: impl FnOnce(&str) -> Option<&'a Reply>) -> Option<&'a ToolCall> {
    let (turn, tool) = path.rsplit_once('/')?;
    let number: usize = tool.strip_prefix("tool:")?.parse().ok()?;
    reply_at(turn)?.calls.get(number.checked_sub(1)?)
}

/// The agents of a path, from the run's own to the one at the path.
pub fn agents_of(path: &str) -> impl Iterator<Item = &str> {
    let mut segments = path.split('/');
    let root = segments.next().unwrap_or(path);
    std::iter::once(root).chain(segments.filter_map(invoked))
}

/// The agent at a path: the last one that was invoked on the way there, or the run's own.
pub fn agent_of(path: &str) -> &str {
    let last = path.rsplit('/').find_map(invoked);
    last.unwrap_or_else(|| path.split('/').next().unwrap_or(path))
}

/// The agent that a segment such as `call:research` names.
fn invoked(segment: &str) -> Option<&str> {
    let (word, agent) = segment.split_once(':')?;
    InvocationKind::parse(word).map(|_| agent)
}

/// All parts as text. Parts without text are named.
pub fn text_of(parts: &[Part]) -> String {
    parts_to_text(parts, IncludedParts::All)
}

#[cfg(test)]
mod tests {
    use baton_core::{RunId, SessionId, ToolCallId};
    use jiff::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn recorded(kind: StepKind, state: StepState, data: Value) -> RecordedStep {
        let session_id = SessionId::root(RunId::from_uuid(Uuid::now_v7()));
        let data = data.into();
        RecordedStep::of(&Step { path: "a".into(), session_id, kind, state, data, at: Timestamp::UNIX_EPOCH })
    }

    #[test]
    fn steps_are_decoded_by_their_kind_and_state() {
        use StepState::{Finished, Started};
        let task = json!({ "why": "x", "input": [{ "type": "text", "text": "Look" }] });
        assert_eq!(recorded(StepKind::Session, Started, task), RecordedStep::Task(vec![Part::text("Look")]));
        assert_eq!(
            recorded(StepKind::Session, Finished, json!({ "answer": "x" })),
            RecordedStep::Task(vec![])
        );
        let reply = Reply { text: "Hi".to_owned(), ..Reply::default() };
        let turn = json!({ "reply": { "text": "Hi" }, "finish": "stop" });
        assert_eq!(recorded(StepKind::Turn, Finished, turn.clone()), RecordedStep::Reply(reply));
        assert_eq!(recorded(StepKind::Turn, Started, turn), RecordedStep::Unfinished);
        assert_eq!(recorded(StepKind::Turn, Finished, json!(7)), RecordedStep::Unfinished);
        assert_eq!(recorded(StepKind::Say, Finished, json!("Hi")), RecordedStep::Text("Hi".to_owned()));
        assert_eq!(recorded(StepKind::Note, Finished, json!([1])), RecordedStep::Data(json!([1])));
    }

    #[test]
    fn tool_step_belongs_to_the_call_with_its_number() {
        let call = |name: &str| ToolCall {
            id: ToolCallId::parse(name).unwrap(),
            name: name.to_owned(),
            arguments: "{}".to_owned(),
            signature: None,
        };
        let reply = Reply { calls: vec![call("one"), call("two")], ..Reply::default() };
        let at = |turn: &str| (turn == "a/turn:1").then_some(&reply);
        assert_eq!(call_of("a/turn:1/tool:2", at).map(|call| call.name.as_str()), Some("two"));
        for path in
            ["a/turn:1/tool:3", "a/turn:1/tool:0", "a/turn:2/tool:1", "a/turn:1", "a", "a/turn:1/tool:x"]
        {
            assert_eq!(call_of(path, at), None, "{path}");
        }
    }

    #[test]
    fn agent_of_a_path_is_the_last_one_invoked() {
        for (path, agent) in [
            ("assistant", "assistant"),
            ("assistant/turn:1/tool:1", "assistant"),
            ("assistant/turn:1/tool:1/call:research/turn:2/tool:1", "research"),
            ("assistant/turn:1/tool:1/call:research/turn:2/tool:1/delegate:legal/turn:1/tool:3", "legal"),
            ("assistant/handoff:editor/turn:1/tool:1", "editor"),
            ("assistant/turn:1/tool:1/transfer:clerk/advisor:legal/turn:1/tool:1", "legal"),
            ("lead/round:2/member:writer/turn:1/tool:1", "writer"),
            ("lead/round:2/coordinator/turn:1/tool:1", "lead"),
            ("maker/turn:1/tool:1/walk/entry:1", "maker"),
            ("turn", "turn"),
        ] {
            assert_eq!(agent_of(path), agent, "{path}");
        }
    }

    #[test]
    fn agents_of_a_path_are_those_on_the_way() {
        let path = "assistant/turn:1/tool:1/call:research/turn:2/tool:1/delegate:legal/turn:1/tool:3";
        assert_eq!(agents_of(path).collect::<Vec<_>>(), ["assistant", "research", "legal"]);
        assert_eq!(agents_of("maker/turn:1/tool:1/walk/entry:1").collect::<Vec<_>>(), ["maker"]);
    }

    #[test]
    fn every_invocation_kind_names_the_agent_in_the_path() {
        for (word, _) in InvocationKind::ALL {
            assert_eq!(agent_of(&format!("assistant/{word}:research/turn:1")), "research");
        }
    }
}
