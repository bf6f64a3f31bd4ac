//! Waiting for the end of a run.

use std::time::Duration;

use baton_core::store::{RunRecord, RunStatus};
use baton_core::{RunId, StoreError, TenantId, TenantStore, ThreadId};
use baton_engine::{StreamItem, Subscription};

use crate::app::App;
use crate::problem::{Answer, Code, Problem};

/// Who works on the run in this process says so; what another one does is only seen by looking.
const FIRST_LOOK: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The record of a run once it has ended, or waits for a person or a remote agent. Whoever stops waiting changes nothing: the run
/// goes on.
pub async fn await_end(app: &App, tenant: &TenantId, thread: ThreadId, run: RunId) -> Answer<RunRecord> {
    let rests = rest(app, tenant, thread, run);
    // The runs of a server that ends have so long; what is left of one then is somebody else's.
    let is_over = async {
        app.draining.cancelled().await;
        tokio::time::sleep(app.settings.drain).await;
    };
    tokio::select! {
        biased;
        record = rests => record,
        () = is_over => {
            let detail = "the server ends before the run does; the run goes on elsewhere, read it under its id";
            Err(Problem::new(Code::Draining, detail).with("run_id", run.to_string()))
        }
    }
}

async fn rest(app: &App, tenant: &TenantId, thread: ThreadId, run: RunId) -> Answer<RunRecord> {
    // Joined before the record is read, so that no end falls between the two.
    let mut subscription = app.engine.parts.live.subscribe(tenant, thread);
    let store = app.store().tenant(tenant);
    let mut pause = FIRST_LOOK;
    loop {
        if let Some(record) = at_rest(&*store, run).await? {
            return Ok(record);
        }
        // What was heard is not trusted, only a reason to look: the record is what counts.
        match tokio::time::timeout(pause, news(&mut subscription, run)).await {
            Ok(()) => pause = FIRST_LOOK,
            Err(_) => pause = (pause * 2).min(LONGEST_PAUSE),
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
            Some(StreamItem::Event(event)) if event.run_id == run && event.kind.is_end() => return,
            Some(StreamItem::Event(_)) => {}
            Some(StreamItem::Changed) => return,
            None => return subscription.rejoin(),
        }
    }
}
