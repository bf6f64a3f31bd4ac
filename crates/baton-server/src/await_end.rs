//! Waits for the end of a run.

use std::time::Duration;

use baton_core::store::{AcceptedRun, RunRecord, RunStatus};
use baton_core::{RunId, StoreError, TenantId, TenantStore};
use baton_engine::{PublishedEvent, StreamItem, Subscription};

use crate::app::App;
use crate::problem::{ApiResult, Code, Problem};

/// Poll intervals for a run that another process executes.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Returns the record of a run once it has ended, or waits for a person or a remote agent. The subscription must be older than
/// the run. Dropping the future does not affect the run.
pub async fn await_end(
    app: &App,
    tenant: &TenantId,
    accepted: &AcceptedRun,
    subscription: Subscription,
) -> ApiResult<RunRecord> {
    let store = app.store().tenant(tenant);
    let rests = rest(&*store, accepted, subscription);
    // On shutdown, runs have this much time; another process resumes those that are left.
    let is_over = async {
        app.draining.cancelled().await;
        tokio::time::sleep(app.settings.drain).await;
    };
    tokio::select! {
        biased;
        record = rests => record,
        () = is_over => {
            let detail = "the server ends before the run does; the run goes on elsewhere, read it under its id";
            Err(Problem::new(Code::Draining, detail).with("run_id", accepted.run_id.to_string()))
        }
    }
}

async fn rest(
    store: &dyn TenantStore,
    accepted: &AcceptedRun,
    mut subscription: Subscription,
) -> ApiResult<RunRecord> {
    let run = accepted.run_id;
    let mut pause = FIRST_PAUSE;
    // A new run has not ended, so its record need not be read first.
    let mut is_news = !accepted.is_new;
    loop {
        // An event only triggers the check; the record decides.
        if is_news && let Some(record) = at_rest(store, run).await? {
            return Ok(record);
        }
        match tokio::time::timeout(pause, news(&mut subscription, run)).await {
            Ok(()) => (is_news, pause) = (true, FIRST_PAUSE),
            Err(_) => (is_news, pause) = (!subscription.is_published(), (pause * 2).min(LONGEST_PAUSE)),
        }
    }
}

/// Returns the record if the run has ended or waits.
async fn at_rest(store: &dyn TenantStore, run: RunId) -> ApiResult<Option<RunRecord>> {
    match store.run(run).await {
        Ok(record) => {
            let is_at_rest = record.status.is_final() || record.status == RunStatus::Waiting;
            Ok(is_at_rest.then_some(record))
        }
        // The run waits for the store as well.
        Err(error) if error.is_transient() => Ok(None),
        // The thread was deleted in the meantime.
        Err(StoreError::NotFound(_)) => Err(Problem::not_found("run")),
        Err(error) => Err(error.into()),
    }
}

/// Returns when the run may have ended.
async fn news(subscription: &mut Subscription, run: RunId) {
    loop {
        match subscription.recv().await {
            Some(StreamItem::Event(PublishedEvent { event, .. }))
                if event.run_id == run && event.kind.is_end() =>
            {
                return;
            }
            Some(StreamItem::Event(_)) => {}
            Some(StreamItem::Changed) => return,
            None => return subscription.rejoin(),
        }
    }
}
