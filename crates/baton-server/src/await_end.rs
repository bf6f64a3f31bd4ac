//! Waiting for the end of a run.

use std::time::Duration;

use baton_core::store::{Accepted, RunRecord, RunStatus};
use baton_core::{RunId, StoreError, TenantId, TenantStore};
use baton_engine::{Published, StreamItem, Subscription};

use crate::app::App;
use crate::problem::{Answer, Code, Problem};

/// Pauses between two looks at the record while the run is not worked on in this process.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The record of a run once it has ended, or waits for a person or a remote agent. The subscription began before the run was
/// accepted. Dropping the future changes nothing: the run goes on.
pub async fn await_end(
    app: &App,
    tenant: &TenantId,
    accepted: &Accepted,
    subscription: Subscription,
) -> Answer<RunRecord> {
    let store = app.store().tenant(tenant);
    let rests = rest(&*store, accepted, subscription);
    // The runs of a server that shuts down have so long; another process takes up what is left.
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
    accepted: &Accepted,
    mut subscription: Subscription,
) -> Answer<RunRecord> {
    let run = accepted.run_id;
    let mut pause = FIRST_PAUSE;
    // A new run has not ended.
    let mut is_news = !accepted.is_new;
    loop {
        // What was received is only a reason to look: the record counts.
        if is_news && let Some(record) = at_rest(store, run).await? {
            return Ok(record);
        }
        match tokio::time::timeout(pause, news(&mut subscription, run)).await {
            Ok(()) => (is_news, pause) = (true, FIRST_PAUSE),
            Err(_) => (is_news, pause) = (!subscription.is_published(), (pause * 2).min(LONGEST_PAUSE)),
        }
    }
}

/// Its record, if nothing more happens in it by itself.
async fn at_rest(store: &dyn TenantStore, run: RunId) -> Answer<Option<RunRecord>> {
    match store.run(run).await {
        Ok(record) => {
            let is_at_rest = record.status.is_final() || record.status == RunStatus::Waiting;
            Ok(is_at_rest.then_some(record))
        }
        // The run waits for the store too.
        Err(error) if error.is_passing() => Ok(None),
        // Its thread was deleted meanwhile.
        Err(StoreError::NotFound(_)) => Err(Problem::not_found("run")),
        Err(error) => Err(error.into()),
    }
}

/// Returns when there may be something new about the run's end.
async fn news(subscription: &mut Subscription, run: RunId) {
    loop {
        match subscription.recv().await {
            Some(StreamItem::Event(Published { event, .. }))
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
