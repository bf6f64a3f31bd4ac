//! What every event says about itself.

use std::sync::Arc;

use baton_core::event::Event;
use baton_core::{AgentName, RunId, SessionId, ThreadId};

use crate::wire::{AguiEvent, Body, Metadata, Origin, PROTOCOL_VERSION};

/// A point in a run: how far it has come, and whose doing it is.
#[derive(Debug, Clone)]
pub(super) struct Here {
    thread_id: ThreadId,
    pub(super) run_id: RunId,
    pub(super) seq: u64,
    timestamp: i64,
    agent: AgentName,
    path: Arc<str>,
}

impl Here {
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

    /// As far as `event`, and still whose doing it was.
    pub(super) fn advance(&mut self, event: &Event) {
        self.seq = self.seq.max(event.seq);
        self.timestamp = event.at.as_millisecond();
    }

    /// The same point, by somebody else.
    pub(super) fn at(&self, agent: &AgentName, path: &Arc<str>) -> Self {
        Self { agent: agent.clone(), path: Arc::clone(path), ..self.clone() }
    }

    pub(super) fn run_started(&self) -> Body {
        let (thread_id, run_id) = (self.thread_id, self.run_id);
        Body::RunStarted { thread_id, run_id, protocol_version: PROTOCOL_VERSION }
    }

    pub(super) fn run_finished(&self, outcome: &str) -> Body {
        let (thread_id, run_id) = (self.thread_id, self.run_id);
        Body::RunFinished { thread_id, run_id, outcome: serde_json::json!({ "type": outcome }) }
    }

    pub(super) fn tell(&self, subagent: Option<SessionId>, body: Body) -> AguiEvent {
        let origin = Origin {
            thread_id: self.thread_id,
            run_id: self.run_id,
            agent: self.agent.clone(),
            path: self.path.split('/').map(str::to_owned).collect(),
            seq: self.seq,
        };
        AguiEvent { body, subagent, timestamp: self.timestamp, metadata: Metadata { baton: origin } }
    }
}
