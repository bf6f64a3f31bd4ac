//! A caller that waits for a run, and how it receives the end.

use std::sync::Arc;

use baton_core::choice::Choice as _;
use baton_core::event::{Event, EventKind, RunOutcome};
use baton_core::ledger::{CallOutcome, Called, by_agent};
use baton_core::message::Visibility;
use baton_core::store::RunRecord;
use baton_core::{AgentName, LedgerRow, RunId, TenantStore};
use jiff::Timestamp;
use tokio::sync::oneshot;

use crate::bounds::LimitKind;
use crate::failure::Failure;
use crate::listener::Listener;
use crate::live::ThreadKey;
use crate::outcome::Answer;
use crate::outcome::RunResult;

/// A caller of this process that waits for a run.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) key: ThreadKey,
    pub(crate) listener: Listener,
    pub(crate) end: oneshot::Sender<RunResult>,
    /// Whether the store has the run. Until then no other process can execute it.
    pub(crate) is_accepted: bool,
    /// Whether the store has been asked to cancel the run.
    pub(crate) is_cancel_asked: bool,
}

impl Waiter {
    /// Delivers the remaining stored events and then the result. Takes as long as the listener does.
    pub(crate) async fn end(self, store: Arc<dyn TenantStore>, run: RunId, finished: RunResult) {
        if self.listener.send_rest(&*store, run).await {
            let _ = self.end.send(finished);
        } else {
            self.end_without_record(run, finished).await;
        }
    }

    /// Delivers the result with an unnumbered final event, if the store cannot be read.
    pub(crate) async fn end_without_record(self, run_id: RunId, finished: RunResult) {
        let (usage, by_agent) = (finished.usage, by_agent(&finished.rows));
        let kind = match &finished.failure {
            Some(failure) => {
                let (code, message) = (failure.code().to_owned(), failure.to_string());
                EventKind::RunFailed { code, message, usage, by_agent }
            }
            None => {
                let (limit, answered_by) = (None, finished.answered_by.clone());
                let (outcome, sources) = (RunOutcome::Success, Vec::new());
                EventKind::RunFinished { outcome, usage, limit, answered_by, sources, by_agent }
            }
        };
        let agent = AgentName::parse("baton").expect("a valid name");
        let path = agent.as_str().into();
        let (at, visibility) = (Timestamp::now(), Visibility::User);
        let event = Event { seq: 0, thread_id: self.key.1, run_id, at, agent, path, visibility, kind };
        self.listener.send_last(event).await;
        let _ = self.end.send(finished);
    }
}

/// The result of a run from its stored record.
pub(crate) fn finished(record: &RunRecord, rows: Vec<LedgerRow>) -> RunResult {
    let is_turn =
        |row: &&LedgerRow| matches!(row.call, Called::Model { .. }) && row.outcome == CallOutcome::Ok;
    let turns = u32::try_from(rows.iter().filter(is_turn).count()).unwrap_or(u32::MAX);
    let end = record.end.clone().unwrap_or_default();
    let limit = end.limit.as_deref().and_then(LimitKind::parse);
    let answer = end.answer.map(|text| Answer {
        value: end.value,
        limit,
        turns,
        files: end.files,
        ..Answer::without_turn(text)
    });
    let failure =
        end.code.map(|code| Failure::EndedElsewhere { code, message: end.message.unwrap_or_default() });
    let answered_by = end.answered_by;
    let (status, usage, waits_for) = (record.status, record.usage, Vec::new());
    RunResult { status, answer, answered_by, failure, waits_for, usage, rows }
}
