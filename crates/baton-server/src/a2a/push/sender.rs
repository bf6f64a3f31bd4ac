//! The request of a notification. The program provides it, because it decides which addresses may be reached.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::event::Event;
use baton_core::ledger::LedgerRow;
use baton_core::{StoreError, TenantId, ThreadId};
use baton_engine::Observer;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

/// A notification to send.
#[derive(Debug)]
pub struct PushRequest {
    pub url: String,
    pub content_type: &'static str,
    /// For `X-A2A-Notification-Token`.
    pub token: Option<String>,
    pub authorization: Option<String>,
    pub body: Vec<u8>,
}

/// Sends notifications. The errors of both methods never contain more of the address than its host.
pub trait PushSender: Send + Sync + fmt::Debug {
    /// Refuses an address that is known not to be reachable from here.
    fn check(&self, url: &str) -> Result<(), String>;

    /// Succeeds if the receiver answers with a status of 2xx.
    fn send(&self, request: PushRequest) -> BoxFuture<'_, Result<(), String>>;
}

/// What delivers notifications.
#[derive(Debug, Clone)]
pub struct PushService {
    pub sender: Arc<dyn PushSender>,
    pub wake: Arc<PushWake>,
}

impl PushService {
    pub fn new(sender: Arc<dyn PushSender>) -> Self {
        Self { sender, wake: Arc::default() }
    }
}

/// Wakes the notifier when a run of a watched thread begins, waits or ends. Runs of other processes are found by looking.
#[derive(Debug, Default)]
pub struct PushWake {
    notify: Notify,
    threads: Mutex<HashSet<ThreadId>>,
}

/// Threads that are watched. When there are more, the set begins anew, and the others are found by looking.
const MAX_WATCHED: usize = 10_000;

impl PushWake {
    pub(super) fn watch(&self, thread: ThreadId) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.len() >= MAX_WATCHED {
            threads.clear();
        }
        threads.insert(thread);
    }

    pub(super) fn notify(&self) {
        self.notify.notify_one();
    }

    pub(super) async fn notified(&self) {
        self.notify.notified().await;
    }

    /// Passes everything on to `inner`, and wakes the notifier.
    pub fn observe(self: &Arc<Self>, inner: Arc<dyn Observer>) -> Arc<dyn Observer> {
        Arc::new(PushObserver { inner, wake: Arc::clone(self) })
    }
}

#[derive(Debug)]
struct PushObserver {
    inner: Arc<dyn Observer>,
    wake: Arc<PushWake>,
}

impl Observer for PushObserver {
    fn on_event(&self, tenant: &TenantId, event: &Event) {
        let is_watched = || {
            let threads = self.wake.threads.lock().unwrap_or_else(PoisonError::into_inner);
            threads.contains(&event.thread_id)
        };
        if (event.kind.is_start() || event.kind.is_end()) && is_watched() {
            self.wake.notify();
        }
        self.inner.on_event(tenant, event);
    }

    fn on_ledger_rows(&self, tenant: &TenantId, rows: &[LedgerRow]) {
        self.inner.on_ledger_rows(tenant, rows);
    }

    fn on_store_error(&self, error: &StoreError) {
        self.inner.on_store_error(error);
    }
}
