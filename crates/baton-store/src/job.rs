//! Jobs: work to run in a transaction, with a channel for the result.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::store::{AuditEntry, Pending};
use baton_core::{StoreError, ThreadId};
use tokio::sync::oneshot;

use crate::audit::seal::Unsealed;
use crate::tx::Tx;

/// What a job affects. Within a transaction, jobs of different threads run concurrently, then the others one after the other.
/// The variants are in the order in which a transaction takes their locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum JobSubject {
    Thread(ThreadId),
    Tenant,
    /// The accounts of the tenant's budgets.
    Budgets,
}

/// A function over a transaction and its input. The input is borrowed, so that the job can run again if its transaction is
/// retried.
pub(crate) type JobFn<I, T> = for<'c> fn(&'c Tx<'c>, &'c I) -> Pending<'c, T>;

/// A job with its result type erased.
pub(crate) trait Job: Send + Sync {
    /// Runs the job. The result is kept until the transaction ends; running again replaces it.
    fn run<'c>(&'c self, tx: &'c Tx<'c>) -> Pending<'c, ()>;

    /// Sends the caller the result, or the error of the transaction.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct JobTask<I, T> {
    input: I,
    run: JobFn<I, T>,
    result: Mutex<Option<T>>,
    waiting: oneshot::Sender<Result<T, StoreError>>,
    /// The audit trail to mark as unsealed if this job writes.
    trail: Option<(Arc<Unsealed>, Arc<str>)>,
    /// Recorded if this job writes.
    audit: Option<Arc<AuditEntry>>,
    has_written: AtomicBool,
}

impl<I: Send + Sync, T: Send> Job for JobTask<I, T> {
    fn run<'c>(&'c self, tx: &'c Tx<'c>) -> Pending<'c, ()> {
        Box::pin(async move {
            // The request comes before what it caused.
            let at = self.audit.as_ref().map(|_| tx.audited());
            let result = (self.run)(tx, &self.input).await?;
            let has_written = tx.has_written.load(Ordering::Relaxed);
            if let (Some(entry), Some(at), true) = (&self.audit, at, has_written) {
                tx.audit_at(at, entry)?;
            }
            self.has_written.store(has_written, Ordering::Relaxed);
            *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            Ok(())
        })
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        if let (Ok(()), true, Some((unsealed, tenant))) =
            (&outcome, self.has_written.load(Ordering::Relaxed), &self.trail)
        {
            unsealed.add(tenant);
        }
        let Self { input, result, waiting, .. } = *self;
        // Before the reply: the caller may take the input back, which is free if nothing else refers to it.
        drop(input);
        let result = result.into_inner().unwrap_or_else(PoisonError::into_inner);
        let answer = outcome.and_then(|()| {
            result.ok_or_else(|| StoreError::Failed("a job ended without a result".to_owned()))
        });
        // The caller may have been cancelled; the write is committed regardless.
        let _ = waiting.send(answer);
    }
}

/// The caller's end of a job.
pub(crate) type JobReply<T> = oneshot::Receiver<Result<T, StoreError>>;

/// Creates a job that writes no audit entries, and its reply channel.
pub(crate) fn job<I, T>(input: I, run: JobFn<I, T>) -> (Box<dyn Job>, JobReply<T>)
where
    I: Send + Sync + 'static,
    T: Send + 'static,
{
    make(input, run, None, None)
}

/// Creates a job that may write audit entries, among them `audit`. If it writes, the tenant is marked as unsealed after the commit.
pub(crate) fn writing_job<I, T>(
    input: I,
    run: JobFn<I, T>,
    unsealed: &Arc<Unsealed>,
    tenant: &Arc<str>,
    audit: Option<Arc<AuditEntry>>,
) -> (Box<dyn Job>, JobReply<T>)
where
    I: Send + Sync + 'static,
    T: Send + 'static,
{
    make(input, run, Some((Arc::clone(unsealed), Arc::clone(tenant))), audit)
}

fn make<I, T>(
    input: I,
    run: JobFn<I, T>,
    trail: Option<(Arc<Unsealed>, Arc<str>)>,
    audit: Option<Arc<AuditEntry>>,
) -> (Box<dyn Job>, JobReply<T>)
where
    I: Send + Sync + 'static,
    T: Send + 'static,
{
    let (waiting, answer) = oneshot::channel();
    let (result, has_written) = (Mutex::new(None), AtomicBool::new(false));
    (Box::new(JobTask { input, run, result, waiting, trail, audit, has_written }), answer)
}

/// Whether the error is a decision about the request, as opposed to a fault of the database.
pub(crate) fn is_refusal(error: &StoreError) -> bool {
    !matches!(
        error,
        StoreError::Unavailable(_)
            | StoreError::OutcomeUnknown(_)
            | StoreError::Full(_)
            | StoreError::Corrupt(_)
            | StoreError::Unreadable(_)
            | StoreError::Failed(_)
    )
}
