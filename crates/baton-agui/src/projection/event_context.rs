//! Metadata of AG-UI events.

use std::sync::Arc;

use baton_core::event::Event;
use baton_core::{AgentName, RunId, SessionId, ThreadId};
use serde_json::Value;

use crate::wire::{AguiEvent, EventBody, EventOrigin, EventPath, Metadata, PROTOCOL_VERSION};

/// Origin and position of an event: thread, run, sequence number, time, agent and path.
#[derive(Debug, Clone)]
pub(super) struct EventContext {
    thread_id: ThreadId,
    pub(super) run_id: RunId,
    pub(super) seq: u64,
    timestamp: i64,
    agent: AgentName,
    path: Arc<str>,
}

impl EventContext {
    pub(super) fn of(event: &Event) -> Self {
        Self {
            thread_id: event.thread_id,
            run_id: event.run_id,
            seq: event.seq,
            timestamp: event.at.as_millisecond(),
            agent: event.agent.clone(),
            path: Arc::clone(&event.path),
        }
    }

    /// Moves to the position of `event`. Agent and path stay.
    pub(super) fn advance(&mut self, event: &Event) {
        self.seq = self.seq.max(event.seq);
        self.timestamp = event.at.as_millisecond();
    }

    /// The same position with another agent and path.
    pub(super) fn at(&self, agent: &AgentName, path: &Arc<str>) -> Self {
        Self { agent: agent.clone(), path: Arc::clone(path), ..self.clone() }
    }

    pub(super) fn run_started(&self) -> EventBody {
        let (thread_id, run_id) = (self.thread_id, self.run_id);
        EventBody::RunStarted { thread_id, run_id, protocol_version: PROTOCOL_VERSION }
    }

    pub(super) fn run_finished(&self, outcome: Value) -> EventBody {
        let (thread_id, run_id) = (self.thread_id, self.run_id);
        EventBody::RunFinished { thread_id, run_id, outcome }
    }

    pub(super) fn event(&self, subagent: Option<SessionId>, body: EventBody) -> AguiEvent {
        let origin = EventOrigin {
            thread_id: self.thread_id,
            run_id: self.run_id,
            agent: self.agent.clone(),
            path: EventPath(Arc::clone(&self.path)),
            seq: self.seq,
        };
        AguiEvent { body, subagent, timestamp: self.timestamp, metadata: Metadata { baton: origin } }
    }
}
