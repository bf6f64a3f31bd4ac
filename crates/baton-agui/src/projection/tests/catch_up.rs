//! Joining a run in the middle.

use baton_core::event::Growing;

use super::*;

fn id(number: u8) -> MessageId {
    MessageId::parse(&format!("01890a5d-ac96-774b-bcce-b3020000000{number}")).unwrap()
}

fn session() -> SessionId {
    let run = RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap();
    SessionId::root(run).child(&AgentName::parse("legal").unwrap(), 1)
}

fn begun(number: u8) -> EventKind {
    EventKind::TextStarted { message_id: id(number), speaker: "A".into() }
}

fn piece(number: u8, delta: &str) -> EventKind {
    EventKind::TextDelta { message_id: id(number), delta: delta.into() }
}

fn finished(number: u8, text: &str) -> EventKind {
    EventKind::TextFinished { message_id: id(number), speaker: "A".into(), text: text.into() }
}

fn growing(visibility: Visibility, number: u8, text: &str) -> Growing {
    Growing { first: event(visibility, begun(number)), message_id: id(number), text: text.into() }
}

/// A projection in the middle of a run.
fn middle(detail: Detail) -> Projection {
    let mut projection = Projection::new(detail);
    projection.project(&event(Visibility::User, EventKind::RunStarted { is_held: false }));
    projection
}

fn told(events: Vec<AguiEvent>) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    essence(events).iter().map(|event| (text(&event["type"]), text(&event["delta"]))).collect()
}

fn pair(kind: &str, delta: &str) -> (String, String) {
    (kind.to_owned(), delta.to_owned())
}

/// Also with characters of several bytes.
#[test]
fn only_the_new_part_of_a_growing_text_is_sent() {
    let mut projection = middle(Detail::Person);
    let mut grown = |text: &str| told(projection.grown(&growing(Visibility::User, 1, text)));
    assert_eq!(grown(""), [pair("TEXT_MESSAGE_START", "")]);
    assert_eq!(grown("Grü"), [pair("TEXT_MESSAGE_CONTENT", "Grü")]);
    assert_eq!(grown("Grü"), []);
    assert_eq!(grown("Grüße €"), [pair("TEXT_MESSAGE_CONTENT", "ße €")]);
    let mut project = |kind| told(projection.project(&event(Visibility::User, kind)));
    assert_eq!(project(piece(1, "1")), [pair("TEXT_MESSAGE_CONTENT", "1")]);
    assert_eq!(
        project(finished(1, "Grüße €10")),
        [pair("TEXT_MESSAGE_CONTENT", "0"), pair("TEXT_MESSAGE_END", "")]
    );
}

#[test]
fn internal_text_is_not_streamed_to_the_person() {
    let plan = growing(Visibility::Internal, 1, "plan");
    assert_eq!(told(middle(Detail::Person).grown(&plan)), []);
    assert_eq!(
        told(middle(Detail::Trace).grown(&plan)),
        [
            pair("REASONING_START", ""),
            pair("REASONING_MESSAGE_START", ""),
            pair("REASONING_MESSAGE_CONTENT", "plan")
        ]
    );
}

/// An interrupted thought continues where it was; growth of the text in between does not repeat it.
#[test]
fn reasoning_continues_after_an_interruption() {
    let mut projection = middle(Detail::Trace);
    let think = |delta: &str| {
        let kind = EventKind::Reasoning { message_id: id(1), delta: delta.into() };
        event(Visibility::Internal, kind)
    };
    projection.project(&think("hm"));
    projection.project(&event(Visibility::User, begun(2)));
    let thought = Growing { first: think("hm"), message_id: id(1), text: "hm, so".into() };
    let sent = told(projection.grown(&thought));
    assert_eq!(sent.last().unwrap(), &pair("REASONING_MESSAGE_CONTENT", ", so"));
    assert_eq!(told(projection.grown(&thought)), []);
    projection.project(&event(Visibility::User, piece(2, "Yes")));
    assert_eq!(told(projection.grown(&thought)), [], "it is closed, and there is nothing new");
}

/// Clients reject a text that continues under another session.
#[test]
fn text_that_ended_with_its_session_is_not_reopened() {
    let mut projection = middle(Detail::Trace);
    let (path, turn) = ("assistant/turn:1/tool:1/call:legal", "assistant/turn:1/tool:1/call:legal/turn:1");
    let started = EventKind::SessionStarted { session_id: session(), parent: None, why: None };
    projection.project(&at(path, "legal", Visibility::User, started));
    projection.project(&at(turn, "legal", Visibility::Internal, begun(1)));
    let ended = EventKind::SessionFinished { session_id: session() };
    projection.project(&at(path, "legal", Visibility::User, ended));
    let first = at(turn, "legal", Visibility::Internal, begun(1));
    let late = Growing { first, message_id: id(1), text: "Hm".into() };
    assert_eq!(told(projection.grown(&late)), []);
    let late = at(turn, "legal", Visibility::Internal, finished(1, "Hm"));
    assert_eq!(told(projection.project(&late)), []);
}

#[test]
fn preamble_sends_snapshots_and_reopens_open_texts() {
    let mut projection = Projection::new(Detail::Person);
    let started = EventKind::SessionStarted { session_id: session(), parent: None, why: Some("why".into()) };
    let numbered = |seq, event: Event| Event { seq, ..event };
    for event in [
        numbered(1, event(Visibility::User, EventKind::RunStarted { is_held: false })),
        numbered(2, event(Visibility::User, finished(1, "First."))),
        numbered(3, at("assistant/turn:2/tool:1/call:legal", "legal", Visibility::User, started)),
        numbered(3, event(Visibility::User, begun(2))),
        numbered(3, event(Visibility::User, piece(2, "Sec"))),
    ] {
        projection.replay(&event);
    }
    let preamble = projection.preamble(Vec::new());
    assert!(preamble.iter().all(|event| event.metadata.baton.seq == 3));
    let preamble = essence(preamble);
    let types: Vec<&str> = preamble.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "SUBAGENT_STARTED", "TEXT_MESSAGE_START"]
    );
    let texts: Vec<&Value> =
        preamble[1]["messages"].as_array().unwrap().iter().map(|one| &one["content"]).collect();
    assert_eq!(texts, ["First.", "Sec"]);
    assert_eq!(
        told(projection.grown(&growing(Visibility::User, 2, "Second"))),
        [pair("TEXT_MESSAGE_CONTENT", "ond")]
    );
}

#[test]
fn no_preamble_before_or_after_a_run() {
    assert_eq!(Projection::new(Detail::Person).preamble(Vec::new()), []);
    let mut projection = middle(Detail::Person);
    let (code, message) = ("model".to_owned(), "no".to_owned());
    let failed = EventKind::RunFailed { code, message, usage: Usage::default(), by_agent: Vec::new() };
    projection.project(&event(Visibility::User, failed));
    assert_eq!(projection.preamble(Vec::new()), []);
    assert_eq!(projection.grown(&growing(Visibility::User, 1, "late")), []);
}

/// Clients reject an unknown parent, and a client that joins does not know ended sub-agents.
#[test]
fn only_a_running_parent_is_named() {
    let mut projection = middle(Detail::Person);
    let below = |name: &str| session().child(&AgentName::parse(name).unwrap(), 1);
    let started = |session_id, parent| EventKind::SessionStarted { session_id, parent, why: None };
    let (path, user) = ("assistant/turn:1/tool:1/call:legal", Visibility::User);
    let mut parent_of = |kind| {
        let told = essence(projection.project(&at(path, "legal", user, kind)));
        told.first().and_then(|event| Some(event.get("parentSubagentRunId")?.clone()))
    };
    assert_eq!(parent_of(started(session(), None)), None);
    assert_eq!(parent_of(started(below("x"), Some(session()))), Some(json!(session())));
    parent_of(EventKind::SessionFinished { session_id: session() });
    assert_eq!(parent_of(started(below("y"), Some(session()))), None);
}
