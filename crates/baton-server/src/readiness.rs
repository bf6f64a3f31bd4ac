//! Whether the store answers, asked at most once a second however many probes there are.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baton_core::{Store, StoreError};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::time::Instant;

/// How long a result is used again.
const FRESH: Duration = Duration::from_secs(1);
/// How long the store has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

type Check = Shared<BoxFuture<'static, Result<(), StoreError>>>;

#[derive(Default)]
pub struct Readiness(Mutex<Option<(Instant, Check)>>);

impl Readiness {
    /// Probes that arrive together wait for the same query.
    pub async fn check(&self, store: &Arc<dyn Store>) -> Result<(), StoreError> {
        let check = {
            let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match &*last {
                Some((_, check)) if check.peek().is_none() => check.clone(),
                Some((since, check)) if since.elapsed() < FRESH => check.clone(),
                _ => last.insert((Instant::now(), query(Arc::clone(store)))).1.clone(),
            }
        };
        check.await
    }
}

fn query(store: Arc<dyn Store>) -> Check {
    let query = async move {
        let late = || StoreError::Unavailable("it does not answer".to_owned());
        tokio::time::timeout(PATIENCE, store.ping()).await.unwrap_or_else(|_| Err(late()))
    };
    query.boxed().shared()
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Readiness")
    }
}
