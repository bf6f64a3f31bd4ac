//! Agents at work behind the scenes.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::event::is_within;
use baton_core::{AgentName, SessionId};

use crate::wire::Begun;

/// Who was announced, and who of them is at work.
#[derive(Debug, Default)]
pub(super) struct Subagents {
    /// In the order in which they began.
    open: Vec<Subagent>,
    /// A client hears of each once.
    known: BTreeSet<SessionId>,
}

/// One at work, as it was announced.
#[derive(Debug)]
pub(super) struct Subagent {
    pub(super) begun: Begun,
    pub(super) agent: AgentName,
    pub(super) path: Arc<str>,
}

impl Subagent {
    fn session(&self) -> &SessionId {
        &self.begun.subagent_run_id
    }
}

impl Subagents {
    /// False for one that was announced before.
    pub(super) fn begin(&mut self, subagent: Subagent) -> bool {
        let is_new = self.known.insert(subagent.session().clone());
        if is_new {
            self.open.push(subagent);
        }
        is_new
    }

    /// In the order in which they began: nobody begins before whom they work for.
    pub(super) fn open(&self) -> impl Iterator<Item = &Subagent> {
        self.open.iter()
    }

    pub(super) fn is_open(&self, session: &SessionId) -> bool {
        self.open.iter().any(|open| open.session() == session)
    }

    /// Whose work something at this place is: the nearest one above it.
    pub(super) fn owner(&self, path: &str) -> Option<SessionId> {
        let above = self.open.iter().filter(|open| is_within(path, &open.path));
        above.max_by_key(|open| open.path.len()).map(|open| open.session().clone())
    }

    /// Ends one with all below it, which are the first to go.
    pub(super) fn end(&mut self, session: &SessionId) -> Vec<SessionId> {
        let Some(at) = self.open.iter().position(|open| open.session() == session) else { return Vec::new() };
        let place = Arc::clone(&self.open[at].path);
        let ended = self.open.extract_if(.., |open| is_within(&open.path, &place));
        let ended: Vec<SessionId> = ended.map(|one| one.begun.subagent_run_id).collect();
        ended.into_iter().rev().collect()
    }

    pub(super) fn end_all(&mut self) -> Vec<SessionId> {
        std::mem::take(&mut self.open).into_iter().rev().map(|one| one.begun.subagent_run_id).collect()
    }
}

/// Whether the one at work here was involved without getting the baton, or works for somebody who was.
pub(super) fn is_behind_the_scenes(path: &str) -> bool {
    let words = ["call:", "delegate:", "advisor:", "member:"];
    path.split('/').any(|segment| words.iter().any(|word| segment.starts_with(word)))
}
