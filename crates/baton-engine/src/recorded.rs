//! Decodes what the steps of a run recorded, for transcripts and the API.

use baton_core::chat::{Reply, ToolCall, ToolResult};
use baton_core::choice::Choice as _;
use baton_core::message::{Image, Part};
use baton_core::store::{Step, StepKind, StepState};
use serde::Deserialize;
use serde_json::Value;

use crate::bounds::Edge;

/// What one step recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum Recorded {
    /// The task of a session. Empty for the session of the run itself: its task is the message that the run is about.
    Task(Vec<Part>),
    /// What a model said in a turn.
    Reply(Reply),
    /// What a tool returned.
    Returned(ToolResult),
    /// A text that was shown without being streamed.
    Text(String),
    /// The end of a round, or a note.
    Data(Value),
    /// It was begun and never finished, or what it recorded cannot be read.
    Unfinished,
}

/// What is read of a session's step, started or finished.
#[derive(Default, Deserialize)]
struct Begun {
    #[serde(default)]
    input: Vec<Part>,
}

/// What is read of a finished turn.
#[derive(Deserialize)]
struct Taken {
    reply: Reply,
}

impl Recorded {
    pub fn of(step: &Step) -> Self {
        let data = &step.data;
        match (step.kind, step.state) {
            (StepKind::Session, _) => Self::Task(Begun::deserialize(data).unwrap_or_default().input),
            (StepKind::Round | StepKind::Note, _) => Self::Data(data.clone()),
            (_, StepState::Started) => Self::Unfinished,
            (StepKind::Turn, _) => {
                Taken::deserialize(data).map_or(Self::Unfinished, |Taken { reply }| Self::Reply(reply))
            }
            (StepKind::Tool, _) => ToolResult::deserialize(data).map_or(Self::Unfinished, Self::Returned),
            (StepKind::Say, _) => Self::Text(data.as_str().unwrap_or_default().to_owned()),
        }
    }
}

/// The call that a tool's step belongs to: `…/turn:2/tool:1` is the first call of the reply at `…/turn:2`.
pub fn call_of<'a>(path: &str, reply_at: impl FnOnce(&str) -> Option<&'a Reply>) -> Option<&'a ToolCall> {
    let (turn, tool) = path.rsplit_once('/')?;
    let number: usize = tool.strip_prefix("tool:")?.parse().ok()?;
    reply_at(turn)?.calls.get(number.checked_sub(1)?)
}

/// The agent that works at a path: the last one that was involved on the way there, or the one that the run began with.
pub fn agent_of(path: &str) -> &str {
    let involved =
        |segment: &'_ str| segment.split_once(':').is_some_and(|(word, _)| Edge::parse(word).is_some());
    let segment = path.rsplit('/').find(|segment| involved(segment));
    match segment.and_then(|segment| segment.split_once(':')) {
        Some((_, agent)) => agent,
        None => path.split('/').next().unwrap_or(path),
    }
}

/// All parts as text; those that are none are named.
pub fn words(parts: &[Part]) -> String {
    let words = parts.iter().map(|part| match part {
        Part::Text { text } => text.clone(),
        Part::Image(Image { media_type, .. }) => format!("[image: {media_type}]"),
        Part::File { name, .. } => format!("[file: {name}]"),
        Part::Data { data } => data.to_string(),
    });
    words.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use baton_core::{RunId, SessionId, ToolCallId};
    use jiff::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn recorded(kind: StepKind, state: StepState, data: Value) -> Recorded {
        let session_id = SessionId::root(RunId::from_uuid(Uuid::now_v7()));
        Recorded::of(&Step { path: "a".into(), session_id, kind, state, data, at: Timestamp::UNIX_EPOCH })
    }

    #[test]
    fn steps_are_decoded_by_their_kind_and_state() {
        use StepState::{Finished, Started};
        let task = json!({ "why": "x", "input": [{ "type": "text", "text": "Look" }] });
        assert_eq!(recorded(StepKind::Session, Started, task), Recorded::Task(vec![Part::text("Look")]));
        assert_eq!(recorded(StepKind::Session, Finished, json!({ "answer": "x" })), Recorded::Task(vec![]));
        let reply = Reply { text: "Hi".to_owned(), ..Reply::default() };
        let turn = json!({ "reply": { "text": "Hi" }, "finish": "stop" });
        assert_eq!(recorded(StepKind::Turn, Finished, turn.clone()), Recorded::Reply(reply));
        assert_eq!(recorded(StepKind::Turn, Started, turn), Recorded::Unfinished);
        assert_eq!(recorded(StepKind::Turn, Finished, json!(7)), Recorded::Unfinished);
        assert_eq!(recorded(StepKind::Say, Finished, json!("Hi")), Recorded::Text("Hi".to_owned()));
        assert_eq!(recorded(StepKind::Note, Finished, json!([1])), Recorded::Data(json!([1])));
    }

    #[test]
    fn a_tool_belongs_to_the_call_with_its_number() {
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
    fn the_agent_of_a_path_is_the_last_that_was_involved() {
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
    fn every_way_to_involve_an_agent_names_it_in_the_path() {
        for (word, _) in Edge::ALL {
            assert_eq!(agent_of(&format!("assistant/{word}:research/turn:1")), "research");
        }
    }
}
