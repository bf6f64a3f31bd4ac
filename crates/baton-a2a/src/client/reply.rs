//! What the items of a peer's stream mean: events for the engine, in order.

use baton_core::ProducedFile;
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
/// Maximum bytes of the files of an answer.
const MAX_FILE_BYTES: usize = 32 * 1024 * 1024;
/// Characters of one progress message.
const MAX_PROGRESS: usize = 500;
/// Maximum artifacts of a task.
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
    /// Files of a message without a task.
    files: Vec<ProducedFile>,
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
    files: Vec<ProducedFile>,
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
        self.files = files_of(&message.parts);
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
        let mut files = std::mem::take(&mut self.files);
        files.extend(self.artifacts.iter_mut().flat_map(|artifact| std::mem::take(&mut artifact.files)));
        let names = self.artifacts.iter().filter_map(|artifact| artifact.name.clone());
        let end = RemoteEnd {
            state,
            text: std::mem::take(&mut self.text),
            message,
            artifacts: names.collect(),
            usage: self.usage,
            handoff: self.handoff.take(),
            files,
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
                self.artifacts[at].files.extend(files_of(&artifact.parts));
                self.check_files()?;
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
            files: files_of(&artifact.parts),
            name: artifact.name.map(|name| head(&name, MAX_NAME)),
            id: artifact.artifact_id,
        };
        match self.artifacts.iter_mut().find(|known| known.id == received.id) {
            Some(known) => *known = received,
            None => self.artifacts.push(received),
        }
        self.check_files()?;
        check(0, self.artifacts.len())
    }

    fn check_files(&self) -> Result<(), RemoteError> {
        let files = self.artifacts.iter().flat_map(|artifact| &artifact.files);
        if files.map(|file| file.bytes.len()).sum::<usize>() > MAX_FILE_BYTES {
            let message = "it answered with more than 32 MiB of files";
            return Err(RemoteError::new(RemoteErrorKind::Malformed, message));
        }
        Ok(())
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

/// The files that parts contain. Their types are not verified here.
fn files_of(parts: &[Part]) -> Vec<ProducedFile> {
    let files = parts.iter().filter_map(|part| match &part.content {
        Content::Bytes(bytes) => Some(ProducedFile {
            name: part.filename.clone(),
            media_type: part.media_type.clone(),
            ..ProducedFile::new(bytes.as_slice())
        }),
        _ => None,
    });
    files.collect()
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
mod tests;
