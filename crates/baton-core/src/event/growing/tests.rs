use uuid::Uuid;

use super::*;
use crate::id::{AgentName, RunId, SessionId, ThreadId, ToolCallId};
use crate::message::Visibility;

fn event(path: &str, kind: EventKind) -> Event {
    Event {
        seq: 1,
        thread_id: ThreadId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
        run_id: run(),
        at: "2026-01-02T03:04:05Z".parse().unwrap(),
        agent: AgentName::parse("a").unwrap(),
        path: path.into(),
        visibility: Visibility::User,
        kind,
    }
}

fn run() -> RunId {
    RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap()
}

fn id(number: u128) -> MessageId {
    MessageId::from_uuid(Uuid::from_u128(number))
}

fn thought(path: &str, number: u128, delta: &str) -> Event {
    event(path, EventKind::Reasoning { message_id: id(number), delta: delta.into() })
}

fn piece(path: &str, number: u128, delta: &str) -> Event {
    event(path, EventKind::TextDelta { message_id: id(number), delta: delta.into() })
}

fn begun(path: &str, number: u128) -> Event {
    event(path, EventKind::TextStarted { message_id: id(number), speaker: "A".into() })
}

fn called(path: &str) -> Event {
    let call_id = ToolCallId::parse("c").unwrap();
    event(path, EventKind::ToolCalled { call_id, tool: "t".into(), arguments: serde_json::Value::Null })
}

fn after(events: &[Event]) -> Vec<(bool, String)> {
    let mut growing = Vec::new();
    for event in events {
        Growing::follow(&mut growing, event);
    }
    growing.iter().map(|text| (text.is_thought(), text.text.clone())).collect()
}

#[test]
fn a_text_grows_until_it_is_finished() {
    let text = |finished: u128| EventKind::TextFinished {
        message_id: id(finished),
        speaker: "A".into(),
        text: "Hello".into(),
    };
    let story = [begun("a/turn:1", 1), piece("a/turn:1", 1, "Hel"), piece("a/turn:1", 1, "lo")];
    assert_eq!(after(&story[..1]), [(false, String::new())]);
    assert_eq!(after(&story), [(false, "Hello".to_owned())]);
    let [a, b, c] = story;
    assert_eq!(after(&[a, b, c, event("a/turn:1", text(1))]), []);
}

#[test]
fn what_is_thought_is_not_what_is_said() {
    let story = [thought("a/turn:1", 1, "hm"), begun("a/turn:1", 1), piece("a/turn:1", 1, "Hello")];
    assert_eq!(after(&story), [(true, "hm".to_owned()), (false, "Hello".to_owned())]);
}

/// Including a turn that only calls tools.
#[test]
fn a_thought_is_over_when_whoever_has_it_does_something_else() {
    let thinking = [thought("a/turn:1", 1, "hm")];
    assert_eq!(after(&thinking).len(), 1);
    for (path, is_over) in [("a/turn:1", true), ("a/turn:1/tool:1", true), ("a/turn:10", false), ("a", false)]
    {
        let [thinking] = thinking.clone();
        assert_eq!(after(&[thinking, called(path)]).is_empty(), is_over, "{path}");
    }
}

/// An agent that panics does not finish its texts.
#[test]
fn nothing_grows_where_a_session_has_ended() {
    let session_id = SessionId::root(run()).child(&AgentName::parse("b").unwrap(), 1);
    let failed = EventKind::SessionFailed { session_id, code: "broken".into(), message: "no".into() };
    let story = [begun("a/call:b/turn:1", 1), begun("a/call:bc/turn:1", 2), event("a/call:b", failed)];
    assert_eq!(after(&story).len(), 1);
}
