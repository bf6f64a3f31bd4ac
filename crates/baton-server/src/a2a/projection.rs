//! Events of a run as updates of its task.

use std::collections::HashMap;

use baton_a2a::model::{
    Artifact, ArtifactUpdate, Message, Metadata, Part, Role, StatusUpdate, StreamItem, TaskState, TaskStatus,
};
use baton_core::event::{Event, EventKind, RunOutcome};
use baton_core::message::Visibility;
use baton_core::usage::Usage;
use baton_core::{AgentName, MessageId};
use jiff::Timestamp;
use serde_json::json;

use super::tasks::ANSWER;
use crate::stream::follow::Item;

/// The view of one subscriber of a task. The end of a run is not projected: the task that is read then says how it is.
#[derive(Debug)]
pub struct TaskProjection {
    task_id: String,
    context_id: String,
    /// Bytes sent of each text that has not ended.
    sent: HashMap<MessageId, usize>,
    end: PlainEnd,
    ends: TextEnd,
}

/// How a text ends that was sent in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEnd {
    /// With an empty piece.
    Empty,
    /// With the whole text, which replaces the pieces: the official JavaScript client loses `append` on REST of 0.3.
    Whole,
}

/// Whether the run does nothing but answer, as far as its events tell.
#[derive(Debug)]
enum PlainEnd {
    Open,
    Ended(RunEnded),
    No,
}

/// How a run ended that did nothing but answer.
#[derive(Debug)]
pub struct RunEnded {
    pub agent: AgentName,
    pub usage: Usage,
    pub at: Timestamp,
}

impl PlainEnd {
    fn add(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunStarted { is_held: false }
            | EventKind::SessionStarted { .. }
            | EventKind::SessionFinished { .. }
            | EventKind::TextStarted { .. }
            | EventKind::TextDelta { .. }
            | EventKind::TextFinished { .. }
            | EventKind::Reasoning { .. } => {}
            EventKind::RunFinished {
                outcome: RunOutcome::Success, usage, limit: None, answered_by, ..
            } if matches!(self, Self::Open) => {
                let agent = answered_by.as_ref().unwrap_or(&event.agent).clone();
                *self = Self::Ended(RunEnded { agent, usage: *usage, at: event.at });
            }
            _ => *self = Self::No,
        }
    }
}

impl TaskProjection {
    /// `sees_all`: whether the subscriber sees the run from its beginning, and the run is the whole task.
    pub fn new(task_id: String, context_id: String, ends: TextEnd, sees_all: bool) -> Self {
        let end = if sees_all { PlainEnd::Open } else { PlainEnd::No };
        Self { task_id, context_id, sent: HashMap::new(), end, ends }
    }

    /// The beginning of an item that continues a text of which something was sent, which is most of a stream: the text's id and what is
    /// added. [`project`](Self::project) would return the same as an update.
    pub fn appended<'i>(&mut self, item: &'i Item) -> Option<(MessageId, &'i str)> {
        let Item::Event(published) = item else { return None };
        let EventKind::TextDelta { message_id, delta } = &published.event.kind else { return None };
        if published.event.visibility != Visibility::User || delta.is_empty() {
            return None;
        }
        let sent = self.sent.get_mut(message_id).filter(|sent| **sent > 0)?;
        *sent += delta.len();
        Some((*message_id, delta))
    }

    /// An update that appends `text`.
    pub fn append(&self, id: MessageId, text: &str) -> StreamItem {
        self.chunk(id, text, true, false)
    }

    /// The end of a run that did nothing but answer, so that nothing has to be read to describe it.
    pub fn plain_end(&self) -> Option<&RunEnded> {
        match &self.end {
            PlainEnd::Ended(ended) => Some(ended),
            PlainEnd::Open | PlainEnd::No => None,
        }
    }

    /// The updates for one item; none if the client is not to see it.
    pub fn project(&mut self, item: &Item) -> Option<StreamItem> {
        match item {
            Item::Event(published) => self.event(&published.event),
            Item::Growing(growing) => {
                let EventKind::TextStarted { message_id, .. } = &growing.first.kind else { return None };
                let is_shown = growing.first.visibility == Visibility::User && !growing.text.is_empty();
                is_shown.then(|| self.replace(*message_id, &growing.text, false))
            }
        }
    }

    fn event(&mut self, event: &Event) -> Option<StreamItem> {
        self.end.add(event);
        if event.visibility != Visibility::User {
            return None;
        }
        match &event.kind {
            EventKind::RunStarted { .. } | EventKind::RunResumed { .. } => Some(self.working(event, None)),
            EventKind::TextDelta { message_id, delta } if !delta.is_empty() => {
                Some(self.delta(*message_id, delta))
            }
            EventKind::TextFinished { message_id, text, .. } => Some(self.finished(*message_id, text)),
            EventKind::TurnRestarted { message_id } => {
                self.sent.remove(message_id).map(|_| self.chunk(*message_id, "", false, false))
            }
            EventKind::Status { text } => Some(self.working(event, Some((text.clone(), Metadata::new())))),
            EventKind::Progress(progress) => {
                let metadata = Metadata::from_iter([("progress".to_owned(), json!(progress))]);
                let text = format!("Step {} of {}: {}", progress.step, progress.total, progress.label);
                Some(self.working(event, Some((text, metadata))))
            }
            EventKind::Handoff(handoff) => {
                let phase = json!({ "phase": handoff.phase, "from": handoff.from, "to": handoff.to });
                let metadata = Metadata::from_iter([("handoff".to_owned(), phase)]);
                Some(self.working(event, Some((handoff.message.clone(), metadata))))
            }
            _ => None,
        }
    }

    /// The last update of the task.
    pub fn last(&self, status: TaskStatus, metadata: Metadata) -> StreamItem {
        StreamItem::StatusUpdate(StatusUpdate {
            task_id: self.task_id.clone(),
            context_id: self.context_id.clone(),
            status,
            is_final: true,
            metadata,
        })
    }

    fn working(&self, event: &Event, said: Option<(String, Metadata)>) -> StreamItem {
        let (text, metadata) = said.unzip();
        let message = text.map(|text| Message {
            context_id: Some(self.context_id.clone()),
            task_id: Some(self.task_id.clone()),
            ..Message::new(format!("{}-{}", event.run_id, event.seq), Role::Agent, vec![Part::text(text)])
        });
        StreamItem::StatusUpdate(StatusUpdate {
            task_id: self.task_id.clone(),
            context_id: self.context_id.clone(),
            status: TaskStatus { state: TaskState::Working, message, timestamp: Some(event.at) },
            is_final: false,
            metadata: metadata.unwrap_or_default(),
        })
    }

    fn delta(&mut self, id: MessageId, delta: &str) -> StreamItem {
        let sent = self.sent.entry(id).or_default();
        let is_first = *sent == 0;
        *sent += delta.len();
        self.chunk(id, delta, !is_first, false)
    }

    /// Ends a text. If all of it was sent, an empty chunk does; otherwise the whole text replaces what was sent.
    fn finished(&mut self, id: MessageId, text: &str) -> StreamItem {
        match self.sent.remove(&id) {
            Some(sent) if sent == text.len() && self.ends == TextEnd::Empty => self.chunk(id, "", true, true),
            _ => self.replace(id, text, true),
        }
    }

    fn replace(&mut self, id: MessageId, text: &str, is_last: bool) -> StreamItem {
        if !is_last {
            self.sent.insert(id, text.len());
        }
        self.chunk(id, text, false, is_last)
    }

    fn chunk(&self, id: MessageId, text: &str, append: bool, last_chunk: bool) -> StreamItem {
        StreamItem::ArtifactUpdate(ArtifactUpdate {
            task_id: self.task_id.clone(),
            context_id: self.context_id.clone(),
            artifact: Artifact {
                name: Some(ANSWER.to_owned()),
                ..Artifact::new(id.to_string(), vec![Part::text(text)])
            },
            append,
            last_chunk,
            metadata: Metadata::new(),
        })
    }
}
