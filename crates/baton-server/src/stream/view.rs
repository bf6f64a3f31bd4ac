//! Events as AG-UI for one listener, each with the number to come back with.

use std::sync::Arc;

use baton_agui::{AguiEvent, AguiMessage, Detail, Faces, Projection};
use baton_core::event::{Event, EventKind};
use baton_core::message::Visibility;
use baton_core::{AgentName, RunId, StoreError, ThreadId, Usage};
use jiff::Timestamp;

use super::follow::Item;

/// One event as it is sent.
#[derive(Debug)]
pub struct Frame {
    /// Whoever has this event and comes back with this number gets all that follows, and nothing twice.
    pub id: u64,
    pub event: AguiEvent,
}

/// What one listener sees.
#[derive(Debug)]
pub struct View {
    thread: ThreadId,
    detail: Detail,
    faces: Arc<Faces>,
    /// Of the run that is under way.
    projection: Option<(RunId, Projection)>,
}

impl View {
    pub fn new(thread: ThreadId, detail: Detail, faces: Arc<Faces>) -> Self {
        Self { thread, detail, faces, projection: None }
    }

    pub fn detail(&self) -> Detail {
        self.detail
    }

    pub fn faces(&self) -> &Faces {
        &self.faces
    }

    /// What one thing becomes. `position` is the number of the last kept event, this one included.
    pub fn show(&mut self, item: &Item, position: u64) -> Vec<Frame> {
        let frames = match item {
            Item::Event(event) => {
                let id = if event.kind.is_kept() { event.seq } else { position };
                let events = self.run(event.run_id).project(event);
                numbered(events, id, event.kind.is_kept())
            }
            Item::Growing(text) => numbered(self.run(text.first.run_id).grown(text), position, false),
        };
        self.forget_what_is_over();
        frames
    }

    /// What happened before a listener came: only remembered.
    pub fn remember(&mut self, event: &Event) {
        self.run(event.run_id).replay(event);
    }

    /// What a client that knows nothing needs to be where the remembered events end.
    pub fn preamble(&mut self, history: Vec<AguiMessage>) -> Vec<AguiEvent> {
        self.projection.as_mut().map(|(_, projection)| projection.preamble(history)).unwrap_or_default()
    }

    /// The last word when there is nothing to follow any more, as when the thread was deleted: a run that was begun has an end.
    pub fn break_off(&mut self, error: &StoreError, position: u64) -> Vec<Frame> {
        let Some((run_id, mut projection)) = self.projection.take() else { return Vec::new() };
        let agent = AgentName::parse("baton").expect("a valid name");
        let event = Event {
            seq: position,
            thread_id: self.thread,
            run_id,
            at: Timestamp::now(),
            path: agent.as_str().into(),
            agent,
            visibility: Visibility::User,
            kind: EventKind::RunFailed {
                code: error.code().to_owned(),
                message: error.to_string(),
                usage: Usage::default(),
                by_agent: Vec::new(),
            },
        };
        numbered(projection.project(&event), position, false)
    }

    fn run(&mut self, run: RunId) -> &mut Projection {
        let is_other = self.projection.as_ref().is_none_or(|(current, _)| *current != run);
        if is_other {
            let projection = Projection::new(self.detail).with_faces(Arc::clone(&self.faces));
            self.projection = Some((run, projection));
        }
        &mut self.projection.as_mut().expect("just set").1
    }

    /// A run that is over has nothing to remember.
    fn forget_what_is_over(&mut self) {
        self.projection.take_if(|(_, projection)| projection.is_over());
    }
}

/// One kept event may become several: whoever has not got the last of them has not got it.
fn numbered(events: Vec<AguiEvent>, id: u64, is_kept: bool) -> Vec<Frame> {
    let last = events.len().saturating_sub(1);
    let before = if is_kept { id.saturating_sub(1) } else { id };
    let number = |(index, event)| Frame { id: if index == last { id } else { before }, event };
    events.into_iter().enumerate().map(number).collect()
}
