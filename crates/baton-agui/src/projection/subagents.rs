//! Sub-agents of a run.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::event::is_within;
use baton_core::{AgentName, SessionId};

use crate::wire::SubagentStart;

/// The announced sub-agents, open and ended.
#[derive(Debug, Default)]
pub(super) struct Subagents {
    /// In the order of their start.
    open: Vec<Subagent>,
    /// Sessions that were announced and have not ended. A client gets the start of one that waited only once; one that ended and
    /// continues starts again.
    known: BTreeSet<SessionId>,
}

/// An open sub-agent, as it was announced.
#[derive(Debug)]
pub(super) struct Subagent {
    pub(super) start: SubagentStart,
    pub(super) agent: AgentName,
    pub(super) path: Arc<str>,
}

impl Subagent {
    fn session(&self) -> &SessionId {
        &self.start.subagent_run_id
    }
}

impl Subagents {
    /// Returns `false` if the sub-agent was announced before.
    pub(super) fn begin(&mut self, subagent: Subagent) -> bool {
        let is_new = self.known.insert(subagent.session().clone());
        if is_new {
            self.open.push(subagent);
        }
        is_new
    }

    /// Open sub-agents in the order of their start, which puts a parent before its children.
    pub(super) fn open(&self) -> impl Iterator<Item = &Subagent> {
        self.open.iter()
    }

    pub(super) fn is_open(&self, session: &SessionId) -> bool {
        self.open.iter().any(|open| open.session() == session)
    }

    /// The innermost open sub-agent that contains `path`.
    pub(super) fn owner(&self, path: &str) -> Option<SessionId> {
        let above = self.open.iter().filter(|open| is_within(path, &open.path));
        above.max_by_key(|open| open.path.len()).map(|open| open.session().clone())
    }

    /// Ends a sub-agent and all below it. Returns the sessions with the innermost first.
    pub(super) fn end(&mut self, session: &SessionId) -> Vec<SessionId> {
        let Some(at) = self.open.iter().position(|open| open.session() == session) else { return Vec::new() };
        let place = Arc::clone(&self.open[at].path);
        let ended = self.open.extract_if(.., |open| is_within(&open.path, &place));
        let ended: Vec<SessionId> = ended.map(|one| one.start.subagent_run_id).collect();
        self.known.retain(|session| !ended.contains(session));
        ended.into_iter().rev().collect()
    }

    /// Ends all, the innermost first.
    pub(super) fn end_all(&mut self) -> Vec<Subagent> {
        std::mem::take(&mut self.open).into_iter().rev().collect()
    }
}

/// Whether the path is within a sub-agent: an agent that was invoked without getting the baton, or one below it.
pub(super) fn is_behind_the_scenes(path: &str) -> bool {
    let words = ["call:", "delegate:", "advisor:", "member:"];
    path.split('/').any(|segment| words.iter().any(|word| segment.starts_with(word)))
}
