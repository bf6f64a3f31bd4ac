//! Work for a transaction, and the promise to say what came of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::store::Pending;
use baton_core::{StoreError, ThreadId};
use tokio::sync::oneshot;

use crate::audit::seal::Unsealed;
use crate::tx::Tx;

/// What a job is about. Jobs about different threads may be in progress at the same time within one transaction; all others
/// are done one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum About {
    Thread(ThreadId),
    Tenant,
}

/// A function over a transaction, together with its input, so that it can be done again when its transaction has to be.
pub(crate) type Run<I, T> = for<'c> fn(&'c Tx<'c>, &'c I) -> Pending<'c, T>;

/// Something to be done in a transaction, whatever it results in.
pub(crate) trait Job: Send + Sync {
    /// Does it. The result is kept until the transaction has ended.
    fn run<'c>(&'c self, tx: &'c Tx<'c>) -> Pending<'c, ()>;

    /// Answers whoever waits: with the result, or with why there is none.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct Task<I, T> {
    input: I,
    run: Run<I, T>,
    result: Mutex<Option<T>>,
    waiting: oneshot::Sender<Result<T, StoreError>>,
    /// Which trail is to be sealed once this has written something.
    trail: Option<(Arc<Unsealed>, Arc<str>)>,
    has_written: AtomicBool,
}

impl<I: Send + Sync, T: Send> Job for Task<I, T> {
    fn run<'c>(&'c self, tx: &'c Tx<'c>) -> Pending<'c, ()> {
        Box::pin(async move {
            let result = (self.run)(tx, &self.input).await?;
            self.has_written.store(tx.has_written.load(Ordering::Relaxed), Ordering::Relaxed);
            *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            Ok(())
        })
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        if let (Ok(()), true, Some((unsealed, tenant))) =
            (&outcome, self.has_written.into_inner(), &self.trail)
        {
            unsealed.add(tenant);
        }
        let result = self.result.into_inner().unwrap_or_else(PoisonError::into_inner);
        let answer = outcome.and_then(|()| {
            result.ok_or_else(|| StoreError::Failed("a job ended without a result".to_owned()))
        });
        // Whoever waited may have gone; what was written stays written.
        let _ = self.waiting.send(answer);
    }
}

/// What a caller keeps of a job.
pub(crate) type Answer<T> = oneshot::Receiver<Result<T, StoreError>>;

/// A job that leaves nothing to be sealed, and the end of it that its caller keeps.
pub(crate) fn job<I, T>(input: I, run: Run<I, T>) -> (Box<dyn Job>, Answer<T>)
where
    I: Send + Sync + 'static,
    T: Send + 'static,
{
    make(input, run, None)
}

/// A job that may add to the audit trail of a tenant, which is then noted as unsealed.
pub(crate) fn writing_job<I, T>(
    input: I,
    run: Run<I, T>,
    unsealed: &Arc<Unsealed>,
    tenant: &Arc<str>,
) -> (Box<dyn Job>, Answer<T>)
where
    I: Send + Sync + 'static,
    T: Send + 'static,
{
    make(input, run, Some((Arc::clone(unsealed), Arc::clone(tenant))))
}

fn make<I, T>(input: I, run: Run<I, T>, trail: Option<(Arc<Unsealed>, Arc<str>)>) -> (Box<dyn Job>, Answer<T>)
where
    I: Send + Sync + 'static,
    T: Send + 'static,
{
    let (waiting, answer) = oneshot::channel();
    let (result, has_written) = (Mutex::new(None), AtomicBool::new(false));
    (Box::new(Task { input, run, result, waiting, trail, has_written }), answer)
}

/// A decision about the request, rather than a fault of the database.
pub(crate) fn is_refusal(error: &StoreError) -> bool {
    !matches!(
        error,
        StoreError::Unavailable(_) | StoreError::Full(_) | StoreError::Corrupt(_) | StoreError::Failed(_)
    )
}
