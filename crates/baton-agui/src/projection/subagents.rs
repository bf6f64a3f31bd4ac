//! Agents at work behind the scenes.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::SessionId;

/// Who was announced, and who of them is at work.
#[derive(Debug, Default)]
pub(super) struct Subagents {
    /// In the order in which they began.
    open: Vec<(SessionId, Arc<str>)>,
    /// A client hears of each once.
    known: BTreeSet<SessionId>,
}

impl Subagents {
    /// False for one that was announced before.
    pub(super) fn begin(&mut self, session: &SessionId, path: &Arc<str>) -> bool {
        let is_new = self.known.insert(session.clone());
        if is_new {
            self.open.push((session.clone(), Arc::clone(path)));
        }
        is_new
    }

    pub(super) fn knows(&self, session: &SessionId) -> bool {
        self.known.contains(session)
    }

    pub(super) fn is_open(&self, session: &SessionId) -> bool {
        self.open.iter().any(|(open, _)| open == session)
    }

    /// Whose work something at this place is: the nearest one above it.
    pub(super) fn owner(&self, path: &str) -> Option<SessionId> {
        let above = self.open.iter().filter(|(_, place)| is_within(path, place));
        above.max_by_key(|(_, place)| place.len()).map(|(session, _)| session.clone())
    }

    /// Ends one with all below it, which are the first to go.
    pub(super) fn end(&mut self, session: &SessionId) -> Vec<SessionId> {
        let Some(at) = self.open.iter().position(|(open, _)| open == session) else { return Vec::new() };
        let place = Arc::clone(&self.open[at].1);
        let ended: Vec<SessionId> =
            self.open.extract_if(.., |(_, path)| is_within(path, &place)).map(|(one, _)| one).collect();
        ended.into_iter().rev().collect()
    }

    pub(super) fn end_all(&mut self) -> Vec<SessionId> {
        std::mem::take(&mut self.open).into_iter().rev().map(|(session, _)| session).collect()
    }
}

/// Whether `path` is `place` or below it.
pub(super) fn is_within(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether the one at work here was involved without getting the baton, or works for somebody who was.
pub(super) fn is_behind_the_scenes(path: &str) -> bool {
    let words = ["call:", "delegate:", "advisor:", "member:"];
    path.split('/').any(|segment| words.iter().any(|word| segment.starts_with(word)))
}
