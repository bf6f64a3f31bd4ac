//! Somebody who wants to hear of a run, and how they hear its end.

use std::sync::Arc;

use baton_core::choice::Choice as _;
use baton_core::event::{Event, EventKind, Outcome};
use baton_core::ledger::{CallOutcome, Called, by_agent};
use baton_core::message::Visibility;
use baton_core::store::RunRecord;
use baton_core::{AgentName, LedgerRow, RunId, TenantStore};
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::Key;
use crate::budget::Limit;
use crate::engine::Finished;
use crate::failure::Failure;
use crate::listener::Listener;
use crate::session::Answer;

#[derive(Debug)]
pub(crate) struct Waiting {
    pub(super) key: Key,
    pub(crate) listener: Listener,
    pub(super) end: oneshot::Sender<Finished>,
    /// Whether the store has the run. Until then nobody else can know of it.
    pub(super) is_accepted: bool,
    /// Whether whoever works on the run was told that it is to end.
    pub(super) is_cancel_asked: bool,
}

impl Waiting {
    /// Tells them how it ended, after all that was kept. Takes as long as they do.
    pub(super) async fn end(self, store: Arc<dyn TenantStore>, run: RunId, finished: Finished) {
        if self.listener.tell_rest(&*store, run).await {
            let _ = self.end.send(finished);
        } else {
            self.end_without_record(run, finished).await;
        }
    }

    /// The same when the store cannot say it: in an event that nobody numbered.
    pub(super) async fn end_without_record(self, run_id: RunId, finished: Finished) {
        let (usage, by_agent) = (finished.usage, by_agent(&finished.rows));
        let kind = match &finished.failure {
            Some(failure) => {
                let (code, message) = (failure.code().to_owned(), failure.to_string());
                EventKind::RunFailed { code, message, usage, by_agent }
            }
            None => {
                let (limit, answered_by) = (None, finished.answered_by.clone());
                let (outcome, sources) = (Outcome::Success, Vec::new());
                EventKind::RunFinished { outcome, usage, limit, answered_by, sources, by_agent }
            }
        };
        let agent = AgentName::parse("baton").expect("a valid name");
        let path = agent.as_str().into();
        let (at, visibility) = (Timestamp::now(), Visibility::User);
        let event = Event { seq: 0, thread_id: self.key.1, run_id, at, agent, path, visibility, kind };
        self.listener.tell_last(event).await;
        let _ = self.end.send(finished);
    }
}

/// The end of a run as it is kept.
pub(super) fn finished(record: &RunRecord, rows: Vec<LedgerRow>) -> Finished {
    let is_turn =
        |row: &&LedgerRow| matches!(row.call, Called::Model { .. }) && row.outcome == CallOutcome::Ok;
    let turns = u32::try_from(rows.iter().filter(is_turn).count()).unwrap_or(u32::MAX);
    let end = record.end.clone().unwrap_or_default();
    let limit = end.limit.as_deref().and_then(Limit::parse);
    let answer = end.answer.map(|text| Answer { value: end.value, limit, turns, ..Answer::words(text) });
    let failure = end.code.map(|code| Failure::Elsewhere { code, message: end.message.unwrap_or_default() });
    let answered_by = end.answered_by;
    Finished { status: record.status, answer, answered_by, failure, usage: record.usage, rows }
}
