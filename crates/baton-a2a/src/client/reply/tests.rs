use serde_json::json;

use super::*;
use crate::model::StatusUpdate;

fn chunk(id: &str, text: &str, append: bool) -> StreamItem {
    StreamItem::ArtifactUpdate(ArtifactUpdate {
        task_id: "t".into(),
        context_id: "c".into(),
        artifact: Artifact::new(id, vec![Part::text(text)]),
        append,
        last_chunk: false,
        metadata: Metadata::new(),
    })
}

fn status(state: TaskState, parts: Vec<Part>) -> StreamItem {
    let message = (!parts.is_empty()).then(|| Message::new("m", Role::Agent, parts));
    StreamItem::StatusUpdate(StatusUpdate {
        task_id: "t".into(),
        context_id: "c".into(),
        status: TaskStatus { state, message, timestamp: None },
        is_final: state.closes_stream(),
        metadata: Metadata::new(),
    })
}

fn read(items: Vec<StreamItem>) -> Vec<RemoteEvent> {
    let mut reply = Reply::default();
    items.into_iter().flat_map(|item| reply.add(item).unwrap()).collect()
}

fn end(events: &[RemoteEvent]) -> &RemoteEnd {
    match events.last() {
        Some(RemoteEvent::Ended(end)) => end,
        other => panic!("{other:?}"),
    }
}

#[test]
fn chunks_of_an_artifact_become_text() {
    let events = read(vec![
        status(TaskState::Working, vec![Part::text("Thinking")]),
        chunk("a", "Hel", false),
        chunk("a", "lo", true),
        status(TaskState::Completed, vec![]),
    ]);
    let text = |text: &str| RemoteEvent::Text(text.to_owned());
    assert!(matches!(&events[0], RemoteEvent::Accepted(task) if task.task_id.as_deref() == Some("t")));
    assert_eq!(events[1..4], [RemoteEvent::Progress("Thinking".into()), text("Hel"), text("lo")]);
    assert_eq!((end(&events).state, end(&events).text.as_str()), (RemoteState::Completed, "Hello"));
}

#[test]
fn replaced_artifact_has_its_final_text() {
    let events = read(vec![
        chunk("a", "Draft", false),
        chunk("a", "Final", false),
        status(TaskState::Completed, vec![]),
    ]);
    assert_eq!(end(&events).text, "Final");
    let texts = events.iter().filter(|event| matches!(event, RemoteEvent::Text(_))).count();
    assert_eq!(texts, 1, "the second text is not a continuation");
}

/// The same, with a message that lists the extension.
fn extended(mut item: StreamItem) -> StreamItem {
    if let StreamItem::StatusUpdate(update) = &mut item
        && let Some(message) = &mut update.status.message
    {
        message.extensions.push(URI.to_owned());
    }
    item
}

#[test]
fn parts_of_the_extension_are_read_and_not_shown() {
    let part = |value| Part::data(value);
    let accepted = json!({ "type": "handoff_accept", "accepted": true });
    let events = read(vec![extended(status(
        TaskState::InputRequired,
        vec![part(accepted), Part::text("Which name?")],
    ))]);
    assert_eq!(events[1], RemoteEvent::HandoffAccepted);
    assert_eq!(end(&events).message, "Which name?");
    let returned = json!({
        "type": "handoff_return", "outcome": "completed", "result_summary": "Made it.", "artifacts_created": ["x"]
    });
    let events = read(vec![status(TaskState::Completed, vec![part(returned.clone())])]);
    assert_eq!(end(&events).handoff, None, "data of an answer is content");
    let events = read(vec![extended(status(TaskState::Completed, vec![part(returned)]))]);
    let (summary, artifacts) = ("Made it.".to_owned(), vec!["x".to_owned()]);
    let expected = HandoffReply::Returned { outcome: ReturnOutcome::Completed, summary, artifacts };
    assert_eq!(end(&events).handoff, Some(expected));
    let declined = json!({ "type": "handoff_decline", "reason": "no time" });
    let events = read(vec![extended(status(TaskState::Rejected, vec![part(declined)]))]);
    assert_eq!(end(&events).handoff, Some(HandoffReply::Declined { reason: "no time".into() }));
}

#[test]
fn answer_has_only_what_is_new_in_its_task() {
    let mut reply = Reply::default();
    let mut events = reply.add(chunk("a", "First?", false)).unwrap();
    events.extend(reply.add(status(TaskState::InputRequired, vec![Part::text("First?")])).unwrap());
    assert_eq!(end(&events).answer(), "First?");
    let seen = reply.task.clone();
    assert_eq!(seen.seen, ["m", "a"]);
    let mut reply = Reply { task: seen, ..Reply::default() };
    let task = Task {
        id: "t".into(),
        context_id: "c".into(),
        status: TaskStatus::new(TaskState::Completed),
        history: vec![],
        artifacts: vec![
            Artifact::new("a", vec![Part::text("First?")]),
            Artifact::new("b", vec![Part::text("Done.")]),
        ],
        metadata: Metadata::new(),
    };
    assert_eq!(end(&reply.add(StreamItem::Task(task)).unwrap()).text, "Done.");
}

#[test]
fn snapshot_with_the_old_question_is_not_the_answer() {
    let asks = |id: &str| Task {
        id: "t".into(),
        context_id: "c".into(),
        status: TaskStatus {
            state: TaskState::InputRequired,
            message: Some(Message::new(id, Role::Agent, vec![Part::text("Which?")])),
            timestamp: None,
        },
        history: vec![],
        artifacts: vec![],
        metadata: Metadata::new(),
    };
    let mut reply = Reply::default();
    assert_eq!(end(&reply.add(StreamItem::Task(asks("m1"))).unwrap()).message, "Which?");
    let seen = reply.task.clone();
    let continuing = || Reply { task: seen.clone(), is_continuing: true, ..Reply::default() };
    let is_end = |events: &[RemoteEvent]| matches!(events.last(), Some(RemoteEvent::Ended(_)));
    let mut reply = continuing();
    for _ in 0..MAX_STALE {
        assert!(!is_end(&reply.add(StreamItem::Task(asks("m1"))).unwrap()));
    }
    assert!(is_end(&reply.add(StreamItem::Task(asks("m1"))).unwrap()), "it really asks again");
    assert!(is_end(&continuing().add(StreamItem::Task(asks("m2"))).unwrap()), "another question");
    let update = status(TaskState::InputRequired, vec![Part::text("Which?")]);
    assert!(is_end(&continuing().add(update).unwrap()), "an update is never old");
}

#[test]
fn text_is_bounded() {
    let mut reply = Reply::default();
    reply.add(chunk("a", "x", false)).unwrap();
    let long = "x".repeat(MAX_TEXT);
    assert!(reply.add(chunk("a", &long, true)).is_err());
    let mut reply = Reply::default();
    let many = (0..=MAX_ARTIFACTS).map(|n| reply.add(chunk(&n.to_string(), "x", false)));
    assert!(many.collect::<Vec<_>>().last().unwrap().is_err());
}

#[test]
fn usage_of_the_task_is_read() {
    let mut metadata = Metadata::new();
    let usage = json!({
        "input_tokens": 3, "output_tokens": 4, "cached_tokens": 0, "reasoning_tokens": 0,
        "cost": { "price": "known", "usd": 0.5 }
    });
    metadata.insert(URI.to_owned(), json!({ "usage": usage }));
    let task = Task {
        id: "t".into(),
        context_id: "c".into(),
        status: TaskStatus::new(TaskState::Completed),
        history: vec![Message::new("m", Role::Agent, vec![Part::text("Only in the history.")])],
        artifacts: vec![],
        metadata,
    };
    let events = read(vec![StreamItem::Task(task)]);
    assert_eq!(end(&events).usage.unwrap().tokens.total(), 7);
    assert_eq!(end(&events).text, "Only in the history.");
}

/// D8: files that an agent sends are kept with their name and claimed type; those that it links to are named.
#[test]
fn d8_files_of_a_remote_agent_are_received() {
    let file = |name: &str, content| Part {
        filename: Some(name.to_owned()),
        media_type: Some("image/png".to_owned()),
        ..Part::new(content)
    };
    let parts = vec![
        Part::text("A chart."),
        file("chart.png", Content::Bytes(vec![1, 2, 3])),
        file("far.png", Content::Uri("https://far.example/far.png".to_owned())),
    ];
    let update = |parts: Vec<Part>| {
        StreamItem::ArtifactUpdate(ArtifactUpdate {
            task_id: "t".into(),
            context_id: "c".into(),
            artifact: Artifact::new("a", parts),
            append: false,
            last_chunk: true,
            metadata: Metadata::new(),
        })
    };
    let message = StreamItem::Message(Message::new("m", Role::Agent, parts.clone()));
    for items in [vec![update(parts), status(TaskState::Completed, vec![])], vec![message]] {
        let events = read(items);
        let files: Vec<_> =
            end(&events).files.iter().map(|file| (file.name.as_deref(), file.bytes.len())).collect();
        assert_eq!(files, [(Some("chart.png"), 3)]);
        assert!(end(&events).text.contains("[file: far.png https://far.example/far.png]"));
    }
    let large = file("large.bin", Content::Bytes(vec![0; MAX_FILE_BYTES + 1]));
    assert!(Reply::default().add(update(vec![large])).is_err());
}
