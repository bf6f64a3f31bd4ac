mod catch_up;
mod state;
mod text_delta;
mod waiting;

use baton_core::ledger::AgentUsage;
use baton_core::store::HopKind;
use baton_core::{AgentName, MessageId, RunId, ThreadId, ToolCallId, Usage};

use serde_json::Value;

use super::*;
use crate::AgentProfile;

fn face(name: &str) -> AgentProfile {
    AgentProfile { display_name: name.to_owned(), color: None, exitable: true, mode: None }
}

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

/// Event types of a run with reasoning, a tool call, an interrupted answer and the answer.
fn types(detail: Detail) -> Vec<String> {
    let id = |n: u8| MessageId::parse(&format!("01890a5d-ac96-774b-bcce-b3020000000{n}")).unwrap();
    let call_id = ToolCallId::parse("call_1").unwrap();
    let (user, internal) = (Visibility::User, Visibility::Internal);
    let events = [
        (user, EventKind::RunStarted { is_held: false }),
        (internal, EventKind::TextStarted { message_id: id(1), speaker: "A".into() }),
        (internal, EventKind::TextDelta { message_id: id(1), delta: "plan".into() }),
        (internal, EventKind::TextFinished { message_id: id(1), speaker: "A".into(), text: "plan".into() }),
        (internal, EventKind::Reasoning { message_id: id(2), delta: "hm".into() }),
        (
            internal,
            EventKind::ToolCalled { call_id: call_id.clone(), tool: "t".into(), arguments: json!({}) },
        ),
        (internal, EventKind::ToolReturned { call_id, output: "x".into(), failed: false, files: Vec::new() }),
        (user, EventKind::TextStarted { message_id: id(3), speaker: "A".into() }),
        (user, EventKind::TextDelta { message_id: id(3), delta: "Hel".into() }),
        (user, EventKind::TurnRestarted { message_id: id(3) }),
        (user, EventKind::TextStarted { message_id: id(4), speaker: "A".into() }),
        (user, EventKind::TextDelta { message_id: id(4), delta: "Hello".into() }),
        (user, EventKind::TextFinished { message_id: id(4), speaker: "A".into(), text: "Hello".into() }),
        (
            user,
            EventKind::RunFinished {
                outcome: RunOutcome::Success,
                usage: Usage::default(),
                limit: None,
                answered_by: None,
                sources: Vec::new(),
                by_agent: Vec::new(),
            },
        ),
    ];
    let mut projection = Projection::new(detail);
    let projected =
        events.into_iter().flat_map(|(visibility, kind)| projection.project(&event(visibility, kind)));
    projected.map(|event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn person_sees_only_user_visible_events() {
    assert_eq!(
        types(Detail::Person),
        [
            "RUN_STARTED",
            "STATE_SNAPSHOT",
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
fn trace_shows_everything_and_closes_every_item() {
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
fn missed_text_is_sent_with_its_end() {
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
    assert_eq!(contents(vec![finished.clone()]), (5, whole.clone()), "with the beginning of the run");
    assert_eq!(contents(vec![started, hello.clone(), finished.clone()]), (6, whole.clone()));
    assert_eq!(contents(vec![hello, finished]), (5, whole), "a piece without its beginning is not shown");
}

#[test]
fn fields_are_camel_case_and_never_null() {
    let mut projection = Projection::new(Detail::Person);
    let started = projection.project(&event(Visibility::User, EventKind::RunStarted { is_held: false }));
    let json = serde_json::to_string(&started[0]).unwrap();
    assert_eq!(
        json,
        r#"{"type":"RUN_STARTED","threadId":"550e8400-e29b-41d4-a716-446655440000","runId":"01890a5d-ac96-774b-bcce-b302099a8057","protocolVersion":"1.0","timestamp":1767323045000,"metadata":{"baton":{"thread_id":"550e8400-e29b-41d4-a716-446655440000","run_id":"01890a5d-ac96-774b-bcce-b302099a8057","agent":"assistant","path":["assistant","turn:1"],"seq":1}}}"#
    );
}

/// An internal event at another path, by another agent.
fn at(path: &str, agent: &str, visibility: Visibility, kind: EventKind) -> Event {
    Event { path: path.into(), agent: AgentName::parse(agent).unwrap(), ..event(visibility, kind) }
}

/// Events as JSON without the fields that all have in common.
fn essence(projected: Vec<AguiEvent>) -> Vec<Value> {
    let strip = |event| {
        let mut json = serde_json::to_value(event).unwrap();
        for common in ["timestamp", "metadata", "threadId", "runId"] {
            json.as_object_mut().unwrap().remove(common);
        }
        json
    };
    projected.into_iter().map(strip).collect()
}

/// A delegation in AG-UI: the call, the sub-agent within it, its text, its end, the result.
#[test]
fn sub_agent_starts_within_its_call_and_uses_its_own_id() {
    let run = RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap();
    let session_id = SessionId::root(run).child(&AgentName::parse("legal").unwrap(), 1);
    let call_id = ToolCallId::parse("c1").unwrap();
    let message_id = MessageId::parse("01890a5d-ac96-774b-bcce-b30200000001").unwrap();
    let (user, internal) = (Visibility::User, Visibility::Internal);
    let (call, child) = ("assistant/turn:1/tool:1", "assistant/turn:1/tool:1/call:legal");
    let started = EventKind::SessionStarted {
        session_id: session_id.clone(),
        parent: Some(SessionId::root(run)),
        why: Some("Is it allowed?".into()),
    };
    let failed = EventKind::SessionFailed { session_id, code: "late".into(), message: "too late".into() };
    let called = EventKind::ToolCalled { call_id, tool: "call_agent".into(), arguments: json!({}) };
    let said = EventKind::TextFinished { message_id, speaker: "Legal".into(), text: "No.".into() };
    let events = [
        at(call, "assistant", internal, called),
        at(child, "legal", user, started),
        at(&format!("{child}/turn:1"), "legal", internal, said),
        at(child, "legal", user, failed),
    ];
    let profiles: Arc<AgentProfiles> =
        Arc::new([(AgentName::parse("legal").unwrap(), face("Legal Counsel"))].into_iter().collect());
    let heard = |detail| {
        let mut projection = Projection::new(detail).with_profiles(Arc::clone(&profiles));
        essence(events.iter().flat_map(|event| projection.project(event)).collect())
    };
    let id = "01890a5d-ac96-774b-bcce-b302099a8057:sub_legal_00000001";
    let error = json!({"type": "SUBAGENT_ERROR", "subagentRunId": id, "message": "too late", "code": "late"});
    assert_eq!(
        heard(Detail::Person)[2..],
        [
            json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "Legal Counsel",
                "description": "Is it allowed?"}),
            error.clone()
        ]
    );
    let message = "01890a5d-ac96-774b-bcce-b30200000001";
    assert_eq!(
        heard(Detail::Trace)[5..],
        [
            json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "Legal Counsel",
                "description": "Is it allowed?", "parentToolCallId": "assistant/turn:1/tool:1/c1"}),
            json!({"type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant", "name": "Legal",
                "subagentRunId": id}),
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": "No.", "subagentRunId": id}),
            json!({"type": "TEXT_MESSAGE_END", "messageId": message, "subagentRunId": id}),
            error
        ]
    );
}

#[test]
fn hops_and_teams_are_trace_only_and_run_end_names_the_answering_agent() {
    let name = |text| AgentName::parse(text).unwrap();
    let events = [
        EventKind::Passed {
            by: HopKind::Route,
            from: name("a"),
            to: name("b"),
            reason: "r".into(),
            heard_by: Visibility::Internal,
        },
        EventKind::Voted { member: name("b"), round: 1, ready: true, reason: "yes".into() },
        EventKind::RunFinished {
            outcome: RunOutcome::Success,
            usage: Usage::default(),
            limit: None,
            answered_by: Some(name("b")),
            sources: Vec::new(),
            by_agent: vec![AgentUsage { agent: name("b"), usage: Usage::default() }],
        },
    ];
    let [hop, vote, end] = events;
    let events =
        [event(Visibility::Internal, hop), event(Visibility::Internal, vote), event(Visibility::User, end)];
    let values = |detail| {
        let mut projection = Projection::new(detail);
        let projected = essence(events.iter().flat_map(|event| projection.project(event)).collect());
        let customs = projected.into_iter().filter(|event| event["type"] == "CUSTOM");
        customs.map(|event| (event["name"].clone(), event["value"].clone())).collect::<Vec<_>>()
    };
    let trace = values(Detail::Trace);
    assert_eq!(
        trace[..2],
        [
            (json!("baton.hop"), json!({"by": "route", "from": "a", "to": "b", "reason": "r"})),
            (
                json!("baton.team"),
                json!({"kind": "voted", "member": "b", "round": 1, "ready": true, "reason": "yes"})
            ),
        ]
    );
    assert_eq!(trace[2].1["answered_by"], "b");
    assert_eq!(trace[2].1.get("limit"), None);
    let nothing = json!({"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "reasoning_tokens": 0,
        "cost": {"price": "known", "usd": 0.0}});
    assert_eq!(trace[2].1["by_agent"], json!([{"agent": "b", "usage": nothing}]));
    assert_eq!(values(Detail::Person), trace[2..]);
}

/// D8: the files of an answer are one activity with parts that have their addresses; it replaces itself if it is sent again.
#[test]
fn d8_files_of_an_answer_are_an_activity() {
    let message_id = MessageId::parse("01890a5d-ac96-774b-bcce-b30200000001").unwrap();
    let artifact_id = "01890a5d-ac96-774b-bcce-b30200000002".parse().unwrap();
    let (name, media_type) = ("chart.png".to_owned(), "image/png".to_owned());
    let file = baton_core::FileRef { artifact_id, name, media_type, size: 18, is_for_user: true };
    let mut projection = Projection::new(Detail::Person);
    let files = event(Visibility::User, EventKind::Files { message_id, files: vec![file] });
    let projected = projection.project(&files).into_iter().map(|event| serde_json::to_value(event).unwrap());
    let activity = projected.last().unwrap();
    assert_eq!(
        (&activity["type"], &activity["activityType"], &activity["messageId"]),
        (&json!("ACTIVITY_SNAPSHOT"), &json!("baton.files"), &json!(format!("{message_id}/baton.files")))
    );
    let uri = "/api/v1/artifacts/01890a5d-ac96-774b-bcce-b30200000002";
    let part = json!({ "type": "image", "uri": uri, "media_type": "image/png", "name": "chart.png" });
    assert_eq!(activity["content"], json!({ "message_id": message_id, "parts": [part] }));
}
