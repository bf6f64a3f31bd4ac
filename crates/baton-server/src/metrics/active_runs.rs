//! Runs that have begun here and not ended: as much of them as is needed to say how long things took.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_core::{AgentName, Event, RunId, SessionId};
use jiff::Timestamp;

/// Runs are kept in so many drawers, so that those who look rarely meet.
const DRAWERS: usize = 32;
/// In one drawer, 50 000 in all. A run that went on elsewhere never ends here; the one that was silent for longest makes room.
const MOST: usize = 50_000 / DRAWERS;

#[derive(Debug, Default)]
pub(super) struct ActiveRuns {
    drawers: [Mutex<HashMap<RunId, ActiveRun>>; DRAWERS],
}

#[derive(Debug)]
pub(super) struct ActiveRun {
    pub(super) since: Timestamp,
    heard: Timestamp,
    has_spoken: bool,
    /// Active runs and their start.
    pub(super) sessions: HashMap<SessionId, (AgentName, Timestamp)>,
}

impl ActiveRuns {
    pub(super) fn begin(&self, event: &Event) {
        let mut runs = self.drawer(event.run_id);
        if runs.len() >= MOST
            && let Some(silent) = runs.iter().min_by_key(|(_, run)| run.heard).map(|(id, _)| *id)
        {
            runs.remove(&silent);
        }
        let (since, heard) = (event.at, event.at);
        runs.insert(event.run_id, ActiveRun { since, heard, has_spoken: false, sessions: HashMap::new() });
    }

    pub(super) fn end(&self, run: RunId) -> Option<ActiveRun> {
        self.drawer(run).remove(&run)
    }

    pub(super) fn session_begins(&self, event: &Event, session: &SessionId) {
        if let Some(run) = self.drawer(event.run_id).get_mut(&event.run_id) {
            run.heard = event.at;
            run.sessions.insert(session.clone(), (event.agent.clone(), event.at));
        }
    }

    /// When it started, if that is known.
    pub(super) fn session_ends(&self, run: RunId, session: &SessionId) -> Option<Timestamp> {
        self.drawer(run).get_mut(&run)?.sessions.remove(session).map(|(_, since)| since)
    }

    /// Since when the person has waited, the first time that something is said to them.
    pub(super) fn speaks(&self, run: RunId) -> Option<Timestamp> {
        let mut runs = self.drawer(run);
        let run = runs.get_mut(&run)?;
        let was_silent = !std::mem::replace(&mut run.has_spoken, true);
        was_silent.then_some(run.since)
    }

    fn drawer(&self, run: RunId) -> MutexGuard<'_, HashMap<RunId, ActiveRun>> {
        // The end of an id is the part of it that is chance.
        let at = usize::from(run.as_uuid().as_bytes()[15]) % DRAWERS;
        self.drawers[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use baton_core::event::EventKind;
    use baton_core::message::Visibility;
    use baton_core::{AgentName, ThreadId};
    use uuid::Uuid;

    use super::*;

    fn begun(nth: usize) -> Event {
        Event {
            seq: 1,
            thread_id: ThreadId::random(),
            // All in one drawer.
            run_id: RunId::from_uuid(Uuid::from_u128((nth as u128) << 64)),
            at: Timestamp::from_second(i64::try_from(nth).unwrap()).unwrap(),
            agent: AgentName::parse("a").unwrap(),
            path: "a".into(),
            visibility: Visibility::User,
            kind: EventKind::RunStarted { is_held: false },
        }
    }

    #[test]
    fn runs_that_never_end_here_make_room() {
        let under_way = ActiveRuns::default();
        for nth in 1..=MOST + 10 {
            under_way.begin(&begun(nth));
        }
        assert_eq!(under_way.drawers[0].lock().unwrap().len(), MOST);
        assert!(under_way.end(begun(10).run_id).is_none(), "the oldest have gone");
        assert!(
            under_way.end(begun(11).run_id).is_some() && under_way.end(begun(MOST + 10).run_id).is_some()
        );
    }
}
