//! Audit entries of requests, with the caller's address and the trace id.
//!
//! A change is stored together with its entry: handlers write through [`audited`]. What has no effect in the store is recorded by
//! itself: refusals, failed authentications ([`failed`]) and reads of other users' conversations ([`read`]). These are aggregated
//! ([`window`]), so that repeating a request neither slows it down nor fills the disk.

mod window;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_core::store::{AuditEntry, Thread};
use baton_core::{RunId, StoreError, TenantId, TenantStore, ThreadId, UserId};
use serde_json::{Value, json};

use self::window::{Noted, Window};
use crate::app::App;
use crate::client_address::ClientAddress;
use crate::identity::Principal;
use crate::problem::ApiResult;
use crate::trace::{self, Trace};

/// The tenant whose trail has what concerns the installation: failed authentications and changes of the configuration. No credential
/// can name it.
pub const SYSTEM_TENANT: &str = "_system";
/// The actor of what the server does by itself, and of requests without a valid credential.
pub const SYSTEM: &str = "system";

/// Repeated refusals and failed authentications within this time are one entry.
const MINUTE: Duration = Duration::from_mins(1);
/// An operator who reads a conversation again within this time causes no further entry.
const HOUR: Duration = Duration::from_hours(1);
/// Addresses whose first failure within a minute is recorded at once. Failures from further addresses are counted together.
const MAX_ADDRESSES: usize = 60;
/// Refused callers and permissions within a minute, likewise.
const MAX_REFUSALS: usize = 600;
/// Pairs of operators and conversations that are remembered. Beyond that, every read has an entry.
const MAX_READS: usize = 10_000;

pub fn system_tenant() -> TenantId {
    TenantId::parse(SYSTEM_TENANT).expect("a valid name")
}

/// An action that a caller performed or attempted.
#[derive(Debug, Default)]
pub struct AuditRecord<'a> {
    /// `thread.delete`, `artifact.create`, …
    pub action: &'a str,
    pub thread_id: Option<ThreadId>,
    pub run_id: Option<RunId>,
    /// `allowed`, `denied`, or the outcome.
    pub decision: &'a str,
    pub detail: Value,
}

impl AuditRecord<'_> {
    pub fn entry(self, caller: &Principal, trace: Option<&Trace>) -> AuditEntry {
        AuditEntry {
            actor: caller.user.to_string(),
            on_behalf_of: None,
            action: self.action.to_owned(),
            thread_id: self.thread_id,
            run_id: self.run_id,
            decision: self.decision.to_owned(),
            trace_id: trace.map(|trace| trace.0.trace_id()),
            address: trace.and_then(Trace::address),
            detail: self.detail,
        }
    }
}

/// What was recorded within the current windows.
#[derive(Debug)]
pub struct Aggregates {
    failures: Mutex<Window<ClientAddress>>,
    refusals: Mutex<Window<Refusal>>,
    reads: Mutex<Window<Reading>>,
}

/// Who reads which conversation, and what of it.
type Reading = (TenantId, UserId, Option<ThreadId>, &'static str);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Refusal {
    tenant: TenantId,
    user: UserId,
    permission: String,
    route: String,
}

impl Aggregates {
    pub fn new(now: Instant) -> Self {
        Self {
            failures: Mutex::new(Window::new(MINUTE, MAX_ADDRESSES, now)),
            refusals: Mutex::new(Window::new(MINUTE, MAX_REFUSALS, now)),
            reads: Mutex::new(Window::new(HOUR, MAX_READS, now)),
        }
    }
}

fn locked<T>(window: &Mutex<T>) -> MutexGuard<'_, T> {
    window.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The data of the caller's tenant. Each write through it that succeeds stores `audit_record` too, in the same transaction.
pub fn audited(
    app: &App,
    caller: &Principal,
    trace: &Trace,
    audit_record: AuditRecord<'_>,
) -> Arc<dyn TenantStore> {
    app.data(caller).audited(audit_record.entry(caller, Some(trace)))
}

/// Records an action that changes nothing in the store, before the response is sent. If this fails, the request fails.
pub async fn record(
    app: &App,
    caller: &Principal,
    trace: Option<&Trace>,
    audit_record: AuditRecord<'_>,
) -> ApiResult<()> {
    app.data(caller).record(audit_record.entry(caller, trace)).await.map_err(Into::into)
}

/// Records a refusal: the first of its kind within a minute at once, the others with their number when the minute is over. A failure
/// to write it is only logged.
pub async fn refused(app: &App, caller: &Principal, trace: Option<&Trace>, permission: &str, route: &str) {
    let refusal = Refusal {
        tenant: caller.tenant.clone(),
        user: caller.user.clone(),
        permission: permission.to_owned(),
        route: route.to_owned(),
    };
    if locked(&app.aggregates.refusals).note(refusal, Instant::now()) != Noted::First {
        return;
    }
    let detail = json!({ "permission": permission, "route": route });
    let audit_record =
        AuditRecord { action: "permission.refuse", decision: "denied", detail, ..AuditRecord::default() };
    if let Err(problem) = record(app, caller, trace, audit_record).await {
        tracing::warn!(detail = problem.detail, "a refusal could not be recorded in the audit trail");
    }
}

/// Records a failed authentication in the trail of the installation, aggregated like refusals. Nothing is known about the caller but
/// the address.
pub async fn failed(app: &App, from: ClientAddress, trace: Option<&Trace>, reason: &str) {
    if locked(&app.aggregates.failures).note(from, Instant::now()) != Noted::First {
        return;
    }
    let entry = AuditEntry {
        trace_id: trace.map(|trace| trace.0.trace_id()),
        ..failure(Some(from), json!({ "reason": reason }))
    };
    record_system(app, entry).await;
}

fn failure(from: Option<ClientAddress>, detail: Value) -> AuditEntry {
    AuditEntry {
        actor: SYSTEM.to_owned(),
        action: "auth.fail".to_owned(),
        decision: "denied".to_owned(),
        address: from.map(|from| from.to_string()),
        detail,
        ..AuditEntry::default()
    }
}

/// Records in the trail of the installation. A failure is only logged.
async fn record_system(app: &App, entry: AuditEntry) {
    if let Err(error) = app.store().tenant(&system_tenant()).record(entry).await {
        tracing::warn!(%error, "a failed authentication could not be recorded in the audit trail");
    }
}

/// Records the repetitions of the windows that are over. Call every few seconds.
pub async fn flush(app: &App, now: Instant) {
    let failures = locked(&app.aggregates.failures).take_over(now);
    let refusals = locked(&app.aggregates.refusals).take_over(now);
    locked(&app.aggregates.reads).take_over(now);
    write_repeats(app, failures.unwrap_or_default(), refusals.unwrap_or_default()).await;
}

/// The same for the current windows, at shutdown.
pub async fn flush_all(app: &App) {
    let failures = locked(&app.aggregates.failures).take();
    let refusals = locked(&app.aggregates.refusals).take();
    write_repeats(app, failures, refusals).await;
}

type Repeats<K> = (HashMap<K, u64>, u64);

async fn write_repeats(app: &App, failures: Repeats<ClientAddress>, refusals: Repeats<Refusal>) {
    let (addresses, beyond) = failures;
    for (from, count) in addresses.into_iter().filter(|(_, count)| *count > 1) {
        record_system(app, failure(Some(from), json!({ "repeated": count - 1 }))).await;
    }
    if beyond > 0 {
        record_system(app, failure(None, json!({ "repeated": beyond, "addresses": "others" }))).await;
    }
    let (refused, beyond) = refusals;
    for (refusal, count) in refused.into_iter().filter(|(_, count)| *count > 1) {
        let Refusal { tenant, user, permission, route } = refusal;
        let entry = AuditEntry {
            actor: user.to_string(),
            action: "permission.refuse".to_owned(),
            decision: "denied".to_owned(),
            detail: json!({ "permission": permission, "route": route, "repeated": count - 1 }),
            ..AuditEntry::default()
        };
        if let Err(error) = app.store().tenant(&tenant).record(entry).await {
            tracing::warn!(%error, "refusals could not be recorded in the audit trail");
        }
    }
    if beyond > 0 {
        tracing::warn!(
            refusals = beyond,
            "refusals are not in the audit trail: too many callers were refused"
        );
    }
}

/// A thread that the caller may see. If it is another user's, the audit trail says so, once an hour.
pub async fn visible(app: &App, caller: &Principal, thread: ThreadId) -> Result<Thread, StoreError> {
    let found = app.data(caller).thread(thread, caller.scope()).await?;
    read(app, caller, thread, &found.user_id).await?;
    Ok(found)
}

/// Records that an operator reads another user's conversation, before it is shown: once an hour for each of them.
pub async fn read(app: &App, caller: &Principal, thread: ThreadId, owner: &UserId) -> Result<(), StoreError> {
    if *owner == caller.user {
        return Ok(());
    }
    record_read(app, caller, Some(thread), "thread.read", json!({ "user_id": owner })).await
}

/// Records that an operator lists what belongs to other users: once an hour for each kind of list.
pub async fn listed(
    app: &App,
    caller: &Principal,
    action: &'static str,
    mut owners: impl Iterator<Item = &UserId>,
) -> Result<(), StoreError> {
    if owners.all(|owner| *owner == caller.user) {
        return Ok(());
    }
    record_read(app, caller, None, action, Value::Null).await
}

async fn record_read(
    app: &App,
    caller: &Principal,
    thread: Option<ThreadId>,
    action: &'static str,
    detail: Value,
) -> Result<(), StoreError> {
    let key = (caller.tenant.clone(), caller.user.clone(), thread, action);
    if locked(&app.aggregates.reads).note(key.clone(), Instant::now()) == Noted::Repeated {
        return Ok(());
    }
    let audit_record = AuditRecord { action, thread_id: thread, run_id: None, decision: "allowed", detail };
    let entry = audit_record.entry(caller, trace::current_trace().as_ref());
    let recorded = app.data(caller).record(entry).await;
    if recorded.is_err() {
        // The next attempt has to be recorded again.
        locked(&app.aggregates.reads).forget(&key);
    }
    recorded
}

/// Checks a permission that only the handler knows, and records a refusal.
pub async fn demand(
    app: &App,
    caller: &Principal,
    trace: &Trace,
    permission: &str,
    route: &str,
) -> ApiResult<()> {
    let demanded = caller.demand(permission);
    if demanded.is_err() {
        refused(app, caller, Some(trace), permission, route).await;
    }
    demanded
}
