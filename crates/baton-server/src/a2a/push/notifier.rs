//! Delivers notifications that are due. Which are is in the store, so a restart loses none and several servers share them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use baton_a2a::WireForm;
use baton_a2a::model::{StreamItem, Task};
use baton_core::permission::Permission;
use baton_core::store::{PushKey, PushOutcome, TakenPush};
use baton_core::{Rights, TenantId};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::super::chain;
use super::super::failure::A2aFailure;
use super::super::tasks::{self, Wanted};
use super::config;
use super::sender::{PushRequest, PushService};
use crate::app::App;
use crate::identity::roles::THREAD_READ;
use crate::identity::{Principal, Valid};
use crate::problem::Problem;

/// Configurations that are looked up at once.
const BATCH: u32 = 64;
/// Deliveries that are made at the same time.
const AT_ONCE: usize = 32;
/// How long a delivery belongs to this process. Longer than one takes.
const LEASE: Duration = Duration::from_mins(1);
/// How often the store is asked for runs of other processes, and for retries that are due.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The same while deliveries fail.
const RETRY_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often a task that waits for its client is looked at: its answer is another run, and its handoff may end without one.
const RECHECK: Duration = Duration::from_secs(30);
/// Attempts after which a state is given up, after about half an hour.
const MAX_ATTEMPTS: u32 = 12;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_mins(10);

/// Deliveries of one tenant that are made at the same time, so that slow receivers of one do not delay those of others.
const AT_ONCE_PER_TENANT: usize = 8;

/// Delivers until it is dropped. What was not confirmed then is delivered by the next process, or again.
pub async fn run(app: App) {
    let Some(service) = super::service(&app).cloned() else { return };
    let mut running = FuturesUnordered::new();
    let mut of_tenant: HashMap<TenantId, usize> = HashMap::new();
    let mut last = LookResult::Done;
    loop {
        if running.len() < AT_ONCE {
            match app.store().due_push(BATCH).await {
                Ok(due) => {
                    for (tenant, key) in due {
                        let count = of_tenant.entry(tenant.clone()).or_default();
                        if *count < AT_ONCE_PER_TENANT && running.len() < AT_ONCE {
                            *count += 1;
                            let looking = look(&app, &service, tenant.clone(), key);
                            running.push(async { (tenant, looking.await) });
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "push notifications cannot be read"),
            }
        }
        let pause = if last == LookResult::Done { POLL_INTERVAL } else { RETRY_POLL_INTERVAL };
        let wait = tokio::time::sleep(pause);
        tokio::pin!(wait);
        loop {
            tokio::select! {
                Some((tenant, result)) = running.next() => {
                    if let Entry::Occupied(mut count) = of_tenant.entry(tenant) {
                        *count.get_mut() -= 1;
                        if *count.get() == 0 {
                            count.remove();
                        }
                    }
                    last = result;
                    // What another process has is looked up again after the pause, not at once.
                    if result != LookResult::Skipped {
                        break;
                    }
                }
                () = service.wake.notified() => break,
                () = wait.as_mut() => break,
            }
        }
    }
}

/// What a look at a configuration came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookResult {
    Done,
    Failed,
    /// It is not due any more, or another process has it.
    Skipped,
}

/// Looks at one configuration, and delivers the state of its task if it is new.
async fn look(app: &App, service: &PushService, tenant: TenantId, key: PushKey) -> LookResult {
    let data = app.store().tenant(&tenant);
    let taken = match data.take_push(key.clone(), LEASE).await {
        Ok(Some(taken)) => taken,
        Ok(None) => return LookResult::Skipped,
        Err(error) => {
            tracing::warn!(%error, task = %key.task, "a push notification cannot be taken");
            return LookResult::Skipped;
        }
    };
    let (outcome, is_done) = deliver(app, service, tenant, &taken).await;
    // If this fails, the notification is due again when its lease ends: it may be delivered twice, but not lost.
    if let Err(error) = data.settle_push(key.clone(), taken.until, outcome).await {
        tracing::warn!(%error, task = %key.task, "the result of a push notification cannot be stored");
    }
    if is_done { LookResult::Done } else { LookResult::Failed }
}

async fn deliver(
    app: &App,
    service: &PushService,
    tenant: TenantId,
    taken: &TakenPush,
) -> (PushOutcome, bool) {
    let task_id = taken.config.task.to_string();
    let owner = owner(tenant, taken);
    let chain = match chain::find(app, &owner, &task_id).await {
        Ok(chain) => chain,
        // The thread was deleted.
        Err(A2aFailure::Protocol(_)) => return (PushOutcome::Ended, true),
        Err(A2aFailure::Http(problem)) => return (again(taken, &problem), false),
    };
    let (state, last) = (tasks::state(&chain), chain.last());
    let word = WireForm::V03.encode_state(state);
    let thread = last.thread_id;
    service.wake.watch(thread);
    let settled = || {
        if state.is_terminal() {
            return PushOutcome::Ended;
        }
        let recheck = state.is_interrupted().then_some(RECHECK);
        PushOutcome::Done { run: last.run_id, status: last.status, state: word.to_owned(), recheck }
    };
    if taken.delivered == word {
        return (settled(), true);
    }
    let base = app.settings.a2a.as_ref().and_then(|settings| settings.public_url.as_deref());
    let wanted = Wanted { history: None, artifacts: true, base };
    let task = match tasks::task(&*app.data(&owner), &chain, wanted).await {
        Ok(task) => task,
        Err(failure) => {
            let problem = match failure {
                A2aFailure::Http(problem) => problem,
                A2aFailure::Protocol(_) => return (PushOutcome::Ended, true),
            };
            return (again(taken, &problem), false);
        }
    };
    match service.sender.send(request(taken, task)).await {
        Ok(()) => (settled(), true),
        Err(error) if taken.attempt >= MAX_ATTEMPTS => {
            tracing::error!(error, task = task_id, state = word, "a push notification is given up");
            (settled(), false)
        }
        Err(error) => {
            tracing::warn!(
                error,
                task = task_id,
                attempt = taken.attempt,
                "a push notification was not delivered"
            );
            (PushOutcome::Retry(pause_after(taken.attempt)), false)
        }
    }
}

/// The owner of the task, who asked for the notification.
fn owner(tenant: TenantId, taken: &TakenPush) -> Principal {
    Principal {
        tenant,
        user: taken.user_id.clone(),
        roles: Vec::new(),
        rights: Permission::parse(THREAD_READ).into_iter().collect::<Rights>(),
        valid: Valid::Always,
        is_operator: false,
        key: None,
    }
}

fn again(taken: &TakenPush, problem: &Problem) -> PushOutcome {
    tracing::warn!(problem = problem.detail, task = %taken.config.task, "the task of a push notification cannot be read");
    PushOutcome::Retry(pause_after(taken.attempt))
}

/// The body is a task in 0.3 and an item of a stream in 1.0.
fn request(taken: &TakenPush, task: Task) -> PushRequest {
    let target = &taken.config.target;
    let form = config::form(target);
    let (body, content_type) = match form {
        WireForm::V10 => (form.encode_stream_item(&StreamItem::Task(task)), "application/a2a+json"),
        _ => (form.encode_task(&task), "application/json"),
    };
    PushRequest {
        url: target.url.clone(),
        content_type,
        token: target.token.clone(),
        authorization: config::authorization(target),
        body: body.to_string().into_bytes(),
    }
}

/// Twice as long after each failure.
fn pause_after(attempt: u32) -> Duration {
    let factor = 2_u32.checked_pow(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_PAUSE.saturating_mul(factor).min(MAX_PAUSE)
}
