//! Events as AG-UI for one subscriber, each with its resume position.

use std::sync::Arc;

use baton_agui::{AgentProfiles, AguiMessage, Detail, Projection};
use baton_core::event::{Event, EventKind};
use baton_core::message::Visibility;
use baton_core::{AgentName, RunId, StoreError, ThreadId, Usage};
use baton_engine::PublishedEvent;
use bytes::Bytes;
use jiff::Timestamp;

use super::follow::Item;
use super::frames::FrameEncoder;

/// The AG-UI view of one subscriber.
#[derive(Debug)]
pub struct StreamView {
    thread: ThreadId,
    detail: Detail,
    profiles: Arc<AgentProfiles>,
    /// Of the current run.
    projection: Option<(RunId, Projection)>,
    frames: FrameEncoder,
}

impl StreamView {
    pub fn new(thread: ThreadId, detail: Detail, profiles: Arc<AgentProfiles>) -> Self {
        Self { thread, detail, profiles, projection: None, frames: FrameEncoder::default() }
    }

    pub fn detail(&self) -> Detail {
        self.detail
    }

    pub fn profiles(&self) -> &AgentProfiles {
        &self.profiles
    }

    /// Returns the frames of one item; empty if nothing is sent for it. `position` is the number of the last stored event,
    /// including this one.
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

    /// Reuses frames that another subscriber with the same view has encoded; the projection is still updated.
    fn show_event(&mut self, published: &PublishedEvent, position: u64) -> Bytes {
        let event = &*published.event;
        let is_in_step = event.kind.is_kept() || event.seq == position;
        let Some(shared) = published.encodings().filter(|_| is_in_step) else {
            return self.encode(event, position);
        };
        let form = (self.detail as usize, self.profiles.id());
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
        // A stored event may become several frames. Only the last carries its number, so that a client that misses it resumes
        // before the event.
        let before = if is_kept { last.saturating_sub(1) } else { last };
        let (projection, frames) = self.run_and_frames(event.run_id);
        if let Some(piece) = projection.piece(event) {
            return frames.encode_piece(&piece, last);
        }
        let events = projection.project(event);
        frames.encode(&events, before, last)
    }

    /// Updates the projection with an event before the client's position, without sending it.
    pub fn remember(&mut self, event: &Event) {
        self.run(event.run_id).replay(event);
    }

    /// The frames that bring a fresh client to the state after the remembered events.
    pub fn preamble(&mut self, history: Vec<AguiMessage>, position: u64) -> Bytes {
        let Some((_, projection)) = &mut self.projection else { return Bytes::new() };
        let events = projection.preamble(history);
        self.frames.encode(&events, position, position)
    }

    /// Ends the current run with an error, for example because the thread was deleted.
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

    fn run_and_frames(&mut self, run: RunId) -> (&mut Projection, &mut FrameEncoder) {
        let is_other = self.projection.as_ref().is_none_or(|(current, _)| *current != run);
        if is_other {
            let projection = Projection::new(self.detail).with_profiles(Arc::clone(&self.profiles));
            self.projection = Some((run, projection));
        }
        let (_, projection) = self.projection.as_mut().expect("just set");
        (projection, &mut self.frames)
    }

    /// Drops the projection of a finished run.
    fn forget_what_is_over(&mut self) {
        if self.projection.take_if(|(_, projection)| projection.is_over()).is_some() {
            self.frames.rest();
        }
    }
}
