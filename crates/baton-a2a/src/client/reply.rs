//! What the items of a peer's stream mean: events for the engine, in order.

use baton_core::remote::{
    HandoffReply, RemoteEnd, RemoteError, RemoteErrorKind, RemoteEvent, RemoteState, RemoteTask,
    ReturnOutcome,
};
use baton_core::text::head;
use baton_core::usage::Usage;
use serde::Deserialize as _;

use crate::extension::{HandoffOutcome, HandoffPart, URI};
use crate::model::{
    Artifact, ArtifactUpdate, Content, Message, Metadata, Part, Role, StreamItem, Task, TaskState, TaskStatus,
};

/// Maximum bytes of an answer.
const MAX_TEXT: usize = 8 * 1024 * 1024;
/// Maximum artifacts of a task.
/// Characters of one progress message.
const MAX_PROGRESS: usize = 500;
const MAX_ARTIFACTS: usize = 200;
/// Maximum characters of an id or of the name of an artifact.
const MAX_NAME: usize = 200;

/// Snapshots of a task that may be older than the message that continues it.
const MAX_STALE: u32 = 5;

/// What is known of a reply so far.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) task: RemoteTask,
    artifacts: Vec<ReceivedArtifact>,
    /// The text of all artifacts, in order.
    text: String,
    /// How much of `text` was published.
    published: usize,
    usage: Option<Usage>,
    is_accepted: bool,
    handoff: Option<HandoffReply>,
    /// Whether the message continues a task, whose first snapshot may be older than the message.
    pub(super) is_continuing: bool,
    /// Snapshots that were taken for older than the message.
    stale: u32,
}

#[derive(Debug)]
struct ReceivedArtifact {
    id: String,
    name: Option<String>,
    text: String,
}

impl Reply {
    /// Adds an item and returns what it means. After [`RemoteEvent::Ended`] nothing follows.
    pub(super) fn add(&mut self, item: StreamItem) -> Result<Vec<RemoteEvent>, RemoteError> {
        let mut events = Vec::new();
        match item {
            StreamItem::Task(task) => self.task(task, &mut events)?,
            StreamItem::Message(message) => self.message(&message, &mut events),
            StreamItem::StatusUpdate(update) => {
                self.ids(update.task_id, update.context_id, &mut events);
                self.metadata(&update.metadata);
                self.status(&update.status, &mut events);
            }
            StreamItem::ArtifactUpdate(update) => {
                self.ids(update.task_id.clone(), update.context_id.clone(), &mut events);
                self.artifact(update, &mut events)?;
            }
            StreamItem::Unknown => {}
        }
        Ok(events)
    }

    fn ids(&mut self, task: String, context: String, events: &mut Vec<RemoteEvent>) {
        let known = |id: String| Some(id).filter(|id| !id.is_empty() && id.len() <= MAX_NAME);
        let now = RemoteTask {
            task_id: known(task).or_else(|| self.task.task_id.clone()),
            context_id: known(context).or_else(|| self.task.context_id.clone()),
            seen: self.task.seen.clone(),
        };
        if now != self.task {
            self.task = now.clone();
            events.push(RemoteEvent::Accepted(now));
        }
    }

    /// A snapshot replaces everything that was received before.
    fn task(&mut self, task: Task, events: &mut Vec<RemoteEvent>) -> Result<(), RemoteError> {
        let Task { id, context_id, status, history, artifacts, metadata } = task;
        self.ids(id, context_id, events);
        self.metadata(&metadata);
        self.artifacts.clear();
        for artifact in artifacts {
            if !self.task.seen.contains(&artifact.artifact_id) {
                self.replace(artifact)?;
            }
        }
        self.rebuild()?;
        self.publish(events);
        let last_words =
            || history.iter().rev().find(|message| message.role == Role::Agent).map(Message::text);
        let has_words = !self.text.is_empty() || status.message.is_some();
        if status.state == TaskState::Completed && !has_words {
            // Some agents answer in the history alone.
            self.text = last_words().unwrap_or_default();
            self.publish(events);
        }
        if !self.is_stale(&status) {
            self.status(&status, events);
        }
        Ok(())
    }

    /// Whether a snapshot still waits for the message that was sent: it has the question of the exchange before. After
    /// [`MAX_STALE`] snapshots the peer means it.
    fn is_stale(&mut self, status: &TaskStatus) -> bool {
        let is_known = match &status.message {
            Some(message) => self.task.seen.contains(&message.message_id),
            None => true,
        };
        let is_stale =
            self.is_continuing && status.state.is_interrupted() && is_known && self.stale < MAX_STALE;
        self.stale += u32::from(is_stale);
        is_stale
    }

    /// An agent that answers without a task.
    fn message(&mut self, message: &Message, events: &mut Vec<RemoteEvent>) {
        let context = message.context_id.clone().unwrap_or_default();
        self.ids(message.task_id.clone().unwrap_or_default(), context, events);
        self.metadata(&message.metadata);
        self.handoff_parts(message, events);
        self.text = text_of(&message.parts);
        self.publish(events);
        self.close(RemoteState::Completed, String::new(), events);
    }

    fn status(&mut self, status: &TaskStatus, events: &mut Vec<RemoteEvent>) {
        let said = status.message.as_ref().map(spoken).unwrap_or_default();
        if let Some(message) = &status.message {
            self.metadata(&message.metadata);
            self.handoff_parts(message, events);
            if status.state.is_interrupted() && message.message_id.len() <= MAX_NAME {
                self.task.seen.push(message.message_id.clone());
            }
        }
        let state = match status.state {
            TaskState::Completed => RemoteState::Completed,
            TaskState::InputRequired => RemoteState::InputRequired,
            TaskState::AuthRequired => RemoteState::AuthRequired,
            TaskState::Failed => RemoteState::Failed,
            TaskState::Canceled => RemoteState::Canceled,
            TaskState::Rejected => RemoteState::Rejected,
            TaskState::Submitted | TaskState::Working | TaskState::Unknown => {
                if !said.trim().is_empty() {
                    events.push(RemoteEvent::Progress(head(&said, MAX_PROGRESS)));
                }
                return;
            }
        };
        self.close(state, head(&said, MAX_TEXT / 4), events);
    }

    /// Ends the reply. If the task goes on, its artifacts so far belong to this answer and not to the next one.
    fn close(&mut self, state: RemoteState, message: String, events: &mut Vec<RemoteEvent>) {
        if state.is_waiting() {
            let new = self.artifacts.iter().map(|artifact| artifact.id.clone());
            self.task.seen.extend(new);
            let skipped = self.task.seen.len().saturating_sub(MAX_ARTIFACTS);
            self.task.seen.drain(..skipped);
            events.push(RemoteEvent::Accepted(self.task.clone()));
        }
        let names = self.artifacts.iter().filter_map(|artifact| artifact.name.clone());
        let end = RemoteEnd {
            state,
            text: std::mem::take(&mut self.text),
            message,
            artifacts: names.collect(),
            usage: self.usage,
            handoff: self.handoff.take(),
        };
        events.push(RemoteEvent::Ended(Box::new(end)));
    }

    fn artifact(&mut self, update: ArtifactUpdate, events: &mut Vec<RemoteEvent>) -> Result<(), RemoteError> {
        let ArtifactUpdate { artifact, append, metadata, .. } = update;
        self.metadata(&metadata);
        // An artifact of an earlier answer that changes belongs to this one.
        self.task.seen.retain(|seen| *seen != artifact.artifact_id);
        let at = self.artifacts.iter().position(|known| known.id == artifact.artifact_id);
        match at {
            Some(at) if append => {
                let more = text_of(&artifact.parts);
                self.artifacts[at].text.push_str(&more);
                if at + 1 == self.artifacts.len() {
                    // The usual case: the text grows at its end.
                    self.text.push_str(&more);
                    check(self.text.len(), self.artifacts.len())?;
                } else {
                    self.rebuild()?;
                }
            }
            _ => {
                self.replace(artifact)?;
                self.rebuild()?;
            }
        }
        self.publish(events);
        Ok(())
    }

    fn replace(&mut self, artifact: Artifact) -> Result<(), RemoteError> {
        if artifact.artifact_id.len() > MAX_NAME {
            return Err(RemoteError::new(RemoteErrorKind::Malformed, "the id of an artifact is too long"));
        }
        // What an artifact of the extension has is for programs.
        let is_for_programs = artifact.extensions.iter().any(|uri| uri == URI);
        let received = ReceivedArtifact {
            text: if is_for_programs { String::new() } else { text_of(&artifact.parts) },
            name: artifact.name.map(|name| head(&name, MAX_NAME)),
            id: artifact.artifact_id,
        };
        match self.artifacts.iter_mut().find(|known| known.id == received.id) {
            Some(known) => *known = received,
            None => self.artifacts.push(received),
        }
        check(0, self.artifacts.len())
    }

    fn rebuild(&mut self) -> Result<(), RemoteError> {
        check(self.artifacts.iter().map(|artifact| artifact.text.len()).sum(), self.artifacts.len())?;
        let texts = self.artifacts.iter().map(|artifact| artifact.text.as_str());
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        let text = texts.join("\n\n");
        // What was published and is now different is withdrawn at the end: the final text differs from it.
        if !text.starts_with(&self.text[..self.published.min(self.text.len())]) {
            self.published = usize::MAX;
        }
        self.text = text;
        Ok(())
    }

    fn publish(&mut self, events: &mut Vec<RemoteEvent>) {
        if let Some(more) = self.text.get(self.published..).filter(|more| !more.is_empty()) {
            events.push(RemoteEvent::Text(more.to_owned()));
            self.published = self.text.len();
        }
    }

    /// The usage of the whole task, as an agent with the extension reports it.
    fn metadata(&mut self, metadata: &Metadata) {
        let reported = metadata.get(URI).and_then(|own| own.get("usage"));
        if let Some(usage) = reported.and_then(|usage| Usage::deserialize(usage).ok()) {
            self.usage = Some(usage);
        }
    }

    /// Only of a message that lists the extension: other data is content, which its author must not be able to end a handoff with.
    fn handoff_parts(&mut self, message: &Message, events: &mut Vec<RemoteEvent>) {
        if !message.extensions.iter().any(|uri| uri == URI) {
            return;
        }
        for part in message.parts.iter().filter_map(HandoffPart::from_part) {
            match part {
                HandoffPart::Request(_) => {}
                HandoffPart::Accept(accept) if accept.accepted => {
                    if !std::mem::replace(&mut self.is_accepted, true) {
                        events.push(RemoteEvent::HandoffAccepted);
                    }
                }
                HandoffPart::Accept(_) => {
                    self.handoff = Some(HandoffReply::Declined { reason: "it gave no reason".to_owned() });
                }
                HandoffPart::Decline(decline) => {
                    self.handoff = Some(HandoffReply::Declined { reason: decline.reason });
                }
                HandoffPart::Return(returned) => {
                    let outcome = match returned.outcome {
                        HandoffOutcome::Completed => ReturnOutcome::Completed,
                        HandoffOutcome::Cancelled => ReturnOutcome::Cancelled,
                        HandoffOutcome::Failed => ReturnOutcome::Failed,
                    };
                    let artifacts = returned.artifacts_created.into_iter().take(MAX_ARTIFACTS);
                    self.handoff = Some(HandoffReply::Returned {
                        outcome,
                        summary: returned.result_summary.unwrap_or_default(),
                        artifacts: artifacts.map(|name| head(&name, MAX_NAME)).collect(),
                    });
                }
            }
        }
    }
}

fn check(bytes: usize, artifacts: usize) -> Result<(), RemoteError> {
    let what = match (bytes > MAX_TEXT, artifacts > MAX_ARTIFACTS) {
        (true, _) => "8 MiB of text",
        (_, true) => "200 artifacts",
        _ => return Ok(()),
    };
    Err(RemoteError::new(RemoteErrorKind::Malformed, format!("it answered with more than {what}")))
}

/// The text of a status. Its data describes the same for programs.
fn spoken(message: &Message) -> String {
    let text = message.text();
    if text.trim().is_empty() { text_of(&message.parts) } else { text }
}

/// The parts as text: text as it is, data as JSON, files by name. Parts of the extension are left out.
fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match &part.content {
        Content::Text(text) => Some(text.clone()),
        Content::Data(_) if HandoffPart::from_part(part).is_some() => None,
        Content::Data(data) => Some(data.to_string()),
        Content::Uri(uri) => {
            Some(format!("[file: {} {}]", part.filename.as_deref().unwrap_or("file"), head(uri, 2_000)))
        }
        Content::Bytes(bytes) => {
            Some(format!("[file: {}, {} bytes]", part.filename.as_deref().unwrap_or("file"), bytes.len()))
        }
        Content::Unknown(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
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
}
