//! Something to try a store with.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use baton_core::ledger::{CallOutcome, Called};
use baton_core::store::run::Idempotency;
use baton_core::store::work::{RunEnd, SessionChange};
use baton_core::store::{
    Append, Cancel, Claimed, NewEvent, NewRun, Owner, PageRequest, RunEndData, RunStatus, Step, StepKind,
    StepState,
};
use baton_core::usage::Cost;
use baton_core::{
    AgentName, EventKind, LedgerRow, Message, MessageId, Part, Role, RunId, SessionId, Store, TenantId,
    TenantStore, ThreadId, Tokens, Usd, UserId, Visibility,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use uuid::Uuid;

pub(super) const LEASE: Duration = Duration::from_mins(10);
/// Over before anybody can look.
pub(super) const NO_LEASE: Duration = Duration::ZERO;

/// A tenant, and the store that it is in.
#[derive(Clone)]
pub(super) struct Home<'s> {
    pub(super) store: &'s dyn Store,
    tenant: Arc<dyn TenantStore>,
}

impl<'s> Home<'s> {
    pub(super) fn new(store: &'s dyn Store, tenant: &TenantId) -> Self {
        Self { store, tenant: store.tenant(tenant) }
    }
}

impl Deref for Home<'_> {
    type Target = dyn TenantStore;

    fn deref(&self) -> &Self::Target {
        &*self.tenant
    }
}

/// One that nobody else has.
pub(super) fn tenant(store: &dyn Store) -> Home<'_> {
    Home::new(store, &TenantId::parse(&format!("tenant-{}", Uuid::new_v4())).unwrap())
}

pub(super) fn user(name: &str) -> UserId {
    UserId::parse(name).unwrap()
}

pub(super) fn agent(name: &str) -> AgentName {
    AgentName::parse(name).unwrap()
}

pub(super) fn owner(name: &str) -> Owner {
    Owner(name.into())
}

pub(super) fn run_id() -> RunId {
    RunId::from_uuid(Uuid::now_v7())
}

/// As exact as stores are.
pub(super) fn now() -> Timestamp {
    Timestamp::from_microsecond(Timestamp::now().as_microsecond()).unwrap()
}

pub(super) fn in_seconds(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

/// Long enough for every clock to have moved on.
pub(super) async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

pub(super) fn page(limit: u32) -> PageRequest {
    PageRequest::first(limit)
}

pub(super) fn said(run: RunId, text: &str) -> Message {
    Message {
        id: MessageId::from_uuid(Uuid::now_v7()),
        run_id: run,
        role: Role::User,
        agent: None,
        visibility: Visibility::User,
        parts: vec![Part::text(text)],
        created_at: now(),
    }
}

pub(super) fn answered(run: RunId, by: &str, text: &str) -> Message {
    Message { role: Role::Assistant, agent: Some(agent(by)), ..said(run, text) }
}

/// What Ada says to the assistant.
pub(super) fn new_run(thread: ThreadId, text: &str) -> NewRun {
    let run = NewRun::new(thread, user("ada"), agent("assistant"), said(run_id(), text));
    NewRun { request: json!({"text": text}), ..run }
}

pub(super) fn once(key: &str, fingerprint: &str) -> Idempotency {
    let (key, fingerprint) = (key.to_owned(), fingerprint.to_owned());
    Idempotency { key, fingerprint, expires_at: in_seconds(3600) }
}

pub(super) fn happened(text: &str) -> NewEvent {
    NewEvent {
        at: now(),
        agent: agent("assistant"),
        path: "assistant".into(),
        visibility: Visibility::User,
        kind: EventKind::Status { text: text.to_owned() },
    }
}

pub(super) fn step(run: RunId, path: &str, state: StepState) -> Step {
    let (path, kind) = (path.to_owned(), StepKind::Turn);
    let data = json!({"state": state.word(), "path": path}).into();
    Step { path, session_id: SessionId::root(run), kind, state, data, at: now() }
}

/// A model call of 10 tokens in and 5 out that cost 7 billionths of a dollar.
pub(super) fn call(run: RunId, path: &str) -> LedgerRow {
    LedgerRow {
        run_id: run,
        session_id: SessionId::root(run),
        agent: agent("assistant"),
        path: path.to_owned(),
        call: Called::Model { provider: "offline".to_owned(), model: "offline-1".to_owned() },
        tokens: Tokens {
            input_tokens: 10,
            output_tokens: 5,
            cached_tokens: 2,
            cache_write_tokens: 3,
            reasoning_tokens: 1,
        },
        estimated: false,
        cost: Cost::Known(Usd::from_nanos(7)),
        started_at: now(),
        latency_ms: 12,
        outcome: CallOutcome::Ok,
        error: None,
    }
}

pub(super) fn session(session: &SessionId, status: RunStatus) -> SessionChange {
    let path = format!("assistant/{}", session.level());
    SessionChange { session_id: session.clone(), agent: agent("assistant"), path, status, at: now() }
}

pub(super) fn ended(status: RunStatus) -> RunEnd {
    let end = RunEndData { answer: Some("done".to_owned()), ..RunEndData::default() };
    RunEnd { status, end }
}

/// A process that works on a run.
pub(super) struct TestWorker<'s> {
    pub(super) tenant: Home<'s>,
    pub(super) thread: ThreadId,
    pub(super) run: RunId,
    pub(super) claimed: Claimed,
    appends: u64,
}

impl<'s> TestWorker<'s> {
    /// In a tenant and a thread of its own.
    pub(super) async fn start(store: &'s dyn Store) -> Self {
        Self::in_tenant(&tenant(store)).await
    }

    pub(super) async fn in_tenant(tenant: &Home<'s>) -> Self {
        let thread = ThreadId::random();
        tenant.accept(new_run(thread, "Hello")).await.unwrap();
        Self::claim(tenant, thread, LEASE).await
    }

    /// Each has a lease of its own.
    pub(super) async fn claim(tenant: &Home<'s>, thread: ThreadId, lease: Duration) -> Self {
        let owner = owner(&format!("worker-{}", Uuid::new_v4()));
        tenant.store.beat(&owner, lease).await.unwrap();
        let claimed = tenant.claim(thread, &owner).await.unwrap();
        let claimed = claimed.expect("there is something to claim");
        let run = claimed.run.run_id;
        Self { tenant: tenant.clone(), thread, run, claimed, appends: 0 }
    }

    /// Dies without a word; the lease is over.
    pub(super) async fn die(&self) {
        self.beat(NO_LEASE).await;
        a_moment().await;
    }

    /// Renews its lease. Returns whether its run is to end.
    pub(super) async fn beat(&self, lease: Duration) -> Option<Cancel> {
        let cancelled = self.tenant.store.beat(&self.claimed.claim.owner, lease).await.unwrap().cancelled;
        let own = |(tenant, run, _): &&(TenantId, RunId, Cancel)| {
            tenant == self.tenant.tenant() && *run == self.run
        };
        cancelled.iter().find(own).map(|(_, _, cancel)| *cancel)
    }

    pub(super) async fn append(&mut self, append: Append) -> u64 {
        self.appends += 1;
        let append = Arc::new(Append { number: self.appends, ..append });
        self.tenant.append(&self.claimed.claim, append).await.unwrap().first_seq
    }

    pub(super) async fn tell(&mut self, events: &[&str]) -> u64 {
        let events = events.iter().map(|text| happened(text)).collect();
        self.append(Append { events, ..Append::default() }).await
    }

    pub(super) async fn end(&mut self, status: RunStatus) -> u64 {
        self.append(Append { end: Some(ended(status)), ..Append::default() }).await
    }
}
