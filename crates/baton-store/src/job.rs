//! Work for a transaction, and the promise to say what came of it.

use std::sync::{Mutex, PoisonError};

use baton_core::store::Pending;
use baton_core::{StoreError, ThreadId};
use tokio::sync::oneshot;

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
}

impl<I: Send + Sync, T: Send> Job for Task<I, T> {
    fn run<'c>(&'c self, tx: &'c Tx<'c>) -> Pending<'c, ()> {
        Box::pin(async move {
            let result = (self.run)(tx, &self.input).await?;
            *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            Ok(())
        })
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let result = self.result.into_inner().unwrap_or_else(PoisonError::into_inner);
        let answer = outcome.and_then(|()| {
            result.ok_or_else(|| StoreError::Failed("a job ended without a result".to_owned()))
        });
        // Whoever waited may have gone; what was written stays written.
        let _ = self.waiting.send(answer);
    }
}

/// A job and the end of it that its caller keeps.
pub(crate) fn job<I, T>(input: I, run: Run<I, T>) -> (Box<dyn Job>, oneshot::Receiver<Result<T, StoreError>>)
where
    I: Send + Sync + 'static,
    T: Send + 'static,
{
    let (waiting, answer) = oneshot::channel();
    (Box::new(Task { input, run, result: Mutex::new(None), waiting }), answer)
}

/// A decision about the request, rather than a fault of the database.
pub(crate) fn is_refusal(error: &StoreError) -> bool {
    !matches!(
        error,
        StoreError::Unavailable(_) | StoreError::Full(_) | StoreError::Corrupt(_) | StoreError::Failed(_)
    )
}
