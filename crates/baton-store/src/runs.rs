//! Runs:
//!
//! - [`accept`]: stores a message and queues its run, if [`room`] permits it.
//! - [`cancel`]: ends a run early.
//! - [`record`]: stored runs, one or a list.
//! - [`ledger`], [`steps`], [`sessions`]: what a run did.

pub(crate) mod accept;
pub(crate) mod cancel;
pub(crate) mod ledger;
pub(crate) mod record;
pub(crate) mod room;
pub(crate) mod sessions;
pub(crate) mod steps;

pub(crate) use room::OpenRuns;

use baton_core::store::run::Idempotency;
use baton_core::store::{
    AcceptedRun, Cancel, NewRun, Page, PageRequest, Pending, RunQuery, RunRecord, RunStatus, Runs,
    SessionRecord, Step,
};
use baton_core::{Event, LedgerRow, RunId, SessionId, StoreError, ThreadId, UserId};

use crate::job::JobSubject;
use crate::page::PageCursor;
use crate::tenant::{Tenant, refused};
use crate::threads::events;
use crate::tx::Tx;
use crate::value::params;

impl Runs for Tenant {
    fn accept(&self, run: NewRun) -> Pending<'_, AcceptedRun> {
        self.write(JobSubject::Thread(run.thread_id), run, |tx, run| Box::pin(accept::accept(tx, run)))
    }

    fn accepted_before(&self, user: UserId, request: Idempotency) -> Pending<'_, Option<AcceptedRun>> {
        self.read((user, request), |tx, (user, request)| Box::pin(accept::accepted_before(tx, user, request)))
    }

    fn run(&self, run: RunId) -> Pending<'_, RunRecord> {
        self.read(run, |tx, run| Box::pin(record::one(tx, *run)))
    }

    fn runs(&self, query: RunQuery, page: PageRequest) -> Pending<'_, Page<RunRecord>> {
        match PageCursor::from_newest(&page) {
            Ok(after) => self.read((query, page, after), |tx, (query, page, after)| {
                Box::pin(record::list(tx, query, page, after))
            }),
            Err(error) => refused(error),
        }
    }

    fn cancel_run(&self, run: RunId, how: Cancel) -> Pending<'_, RunStatus> {
        Box::pin(async move {
            let found = self.read(run, |tx, run| Box::pin(cancel::find(tx, *run))).await?;
            if found.status.is_final() {
                return Ok(found.status);
            }
            let about = JobSubject::Thread(found.thread_id);
            self.write(about, (found.thread_id, run, how), |tx, (thread, run, how)| {
                Box::pin(cancel::cancel(tx, *thread, *run, *how))
            })
            .await
        })
    }

    fn run_events(&self, run: RunId, after: u64, limit: u32) -> Pending<'_, Vec<Event>> {
        self.read((run, after, limit), |tx, (run, after, limit)| {
            Box::pin(async { events::of_run(tx, *run, *after, *limit).await?.ok_or(NOT_FOUND) })
        })
    }

    fn ledger(&self, run: RunId) -> Pending<'_, Vec<LedgerRow>> {
        self.read(run, |tx, run| {
            Box::pin(async {
                must_exist(tx, *run).await?;
                ledger::of_run(tx, *run).await
            })
        })
    }

    fn steps(&self, run: RunId) -> Pending<'_, Vec<Step>> {
        self.read(run, |tx, run| {
            Box::pin(async {
                must_exist(tx, *run).await?;
                steps::of_run(tx, *run).await
            })
        })
    }

    fn sessions(&self, thread: Option<ThreadId>, page: PageRequest) -> Pending<'_, Page<SessionRecord>> {
        match PageCursor::from_newest(&page) {
            Ok(after) => self.read((thread, page, after), |tx, (thread, page, after)| {
                Box::pin(sessions::list(tx, *thread, page, after))
            }),
            Err(error) => refused(error),
        }
    }

    fn run_sessions(&self, run: RunId) -> Pending<'_, Vec<SessionRecord>> {
        self.read(run, |tx, run| {
            Box::pin(async {
                must_exist(tx, *run).await?;
                sessions::of_run(tx, *run).await
            })
        })
    }

    fn session(&self, session: &SessionId) -> Pending<'_, SessionRecord> {
        self.read(session.clone(), |tx, session| Box::pin(sessions::one(tx, session)))
    }
}

async fn must_exist(tx: &Tx<'_>, run: RunId) -> Result<(), StoreError> {
    let sql = "SELECT run_id FROM runs WHERE tenant = $1 AND run_id = $2";
    tx.first(sql, params![run]).await?.map(drop).ok_or(NOT_FOUND)
}

pub(crate) const NOT_FOUND: StoreError = StoreError::NotFound("run");
