//! Events as AG-UI for one listener, each with the number to come back with.

use std::sync::Arc;

use baton_agui::{AguiMessage, Detail, Faces, Projection};
use baton_core::event::{Event, EventKind};
use baton_core::message::Visibility;
use baton_core::{AgentName, RunId, StoreError, ThreadId, Usage};
use baton_engine::Published;
use bytes::Bytes;
use jiff::Timestamp;

use super::follow::Item;
use super::frames::Frames;

/// What one listener sees.
#[derive(Debug)]
pub struct View {
    thread: ThreadId,
    detail: Detail,
    faces: Arc<Faces>,
    /// Of the run that is under way.
    projection: Option<(RunId, Projection)>,
    frames: Frames,
}

impl View {
    pub fn new(thread: ThreadId, detail: Detail, faces: Arc<Faces>) -> Self {
        Self { thread, detail, faces, projection: None, frames: Frames::default() }
    }

    pub fn detail(&self) -> Detail {
        self.detail
    }

    pub fn faces(&self) -> &Faces {
        &self.faces
    }

    /// The frames of one item; empty if nothing is sent for it. `position` is the number of the last kept event, this one included.
    pub fn show(&mut self, item: &Item, position: u64) -> Bytes {
        let frames = match item {
            Item::Event(published) => self.show_event(published, position),
            Item::Growing(text) => {
                let events = self.run(text.first.run_id).grown(text);
                self.frames.encode(&events, position, position)
            }
        };
        self.forget_what_is_over();
        frames
    }

    /// Frames that another subscriber of the same kind has made are used again; the projection only has to keep up.
    fn show_event(&mut self, published: &Published, position: u64) -> Bytes {
        let event = &*published.event;
        let is_in_step = event.kind.is_kept() || event.seq == position;
        let Some(shared) = published.encodings().filter(|_| is_in_step) else {
            return self.encode(event, position);
        };
        let form = (self.detail as usize, self.faces.id());
        if let Some(frames) = shared.get(form) {
            let projection = self.run(event.run_id);
            if projection.piece(event).is_none() {
                projection.project(event);
            }
            return frames;
        }
        let frames = self.encode(event, position);
        shared.set(form, &frames);
        frames
    }

    fn encode(&mut self, event: &Event, position: u64) -> Bytes {
        let is_kept = event.kind.is_kept();
        let last = if is_kept { event.seq } else { position };
        // One kept event may become several frames: a client that has not got the last of them has not got it.
        let before = if is_kept { last.saturating_sub(1) } else { last };
        let (projection, frames) = self.run_and_frames(event.run_id);
        if let Some(piece) = projection.piece(event) {
            return frames.encode_piece(&piece, last);
        }
        let events = projection.project(event);
        frames.encode(&events, before, last)
    }

    /// What happened before a listener came: only remembered.
    pub fn remember(&mut self, event: &Event) {
        self.run(event.run_id).replay(event);
    }

    /// What a client that knows nothing needs to be where the remembered events end.
    pub fn preamble(&mut self, history: Vec<AguiMessage>, position: u64) -> Bytes {
        let Some((_, projection)) = &mut self.projection else { return Bytes::new() };
        let events = projection.preamble(history);
        self.frames.encode(&events, position, position)
    }

    /// The last word when there is nothing to follow any more, as when the thread was deleted: a run that was begun has an end.
    pub fn break_off(&mut self, error: &StoreError, position: u64) -> Bytes {
        let Some((run_id, mut projection)) = self.projection.take() else { return Bytes::new() };
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
        self.frames.encode(&projection.project(&event), position, position)
    }

    fn run(&mut self, run: RunId) -> &mut Projection {
        self.run_and_frames(run).0
    }

    fn run_and_frames(&mut self, run: RunId) -> (&mut Projection, &mut Frames) {
        let is_other = self.projection.as_ref().is_none_or(|(current, _)| *current != run);
        if is_other {
            let projection = Projection::new(self.detail).with_faces(Arc::clone(&self.faces));
            self.projection = Some((run, projection));
        }
        let (_, projection) = self.projection.as_mut().expect("just set");
        (projection, &mut self.frames)
    }

    /// A run that is over has nothing to remember.
    fn forget_what_is_over(&mut self) {
        if self.projection.take_if(|(_, projection)| projection.is_over()).is_some() {
            self.frames.rest();
        }
    }
}
