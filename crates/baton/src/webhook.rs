//! `[approvals] notify_url`: tells an endpoint of every approval and question that waits for a person.
//!
//! Which deliveries are still to be made is in the store, so a restart loses none and several servers share them. A run never waits
//! for a delivery: the task of [`Webhook::run`] is woken by the event that an approval was stored, and looks into the store by itself
//! for those of other processes.
//!
//! - [`signature`]: how a receiver knows that a request is from here.
//! - [`delivery`]: one request.

mod delivery;
mod signature;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use baton_core::event::{Event, EventKind};
use baton_core::ledger::LedgerRow;
use baton_core::store::{ApprovalStatus, NextNotification};
use baton_core::{Store, StoreError, TenantId};
use baton_engine::Observer;
use baton_tools::web::Reach;
use baton_tools::web::reach::ReachRefused;
use futures_util::{StreamExt as _, stream};
use reqwest::Url;
use tokio::sync::Notify;
use uuid::Uuid;

use self::delivery::Endpoint;
use self::signature::SigningKey;
use crate::config::ApprovalsConfig;
use crate::exit::Exit;
use crate::wiring::secret_from;

/// Names the secret that deliveries are signed with.
pub const SECRET: &str = "BATON_NOTIFY_SECRET";

/// Deliveries that are looked up at once.
const BATCH: u32 = 64;
/// Deliveries that are made at the same time.
const AT_ONCE: usize = 4;
/// How long a delivery belongs to this process. Longer than one takes.
const LEASE: Duration = Duration::from_mins(1);
/// How often the store is asked for approvals of other processes, and for retries that are due.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The same while deliveries fail.
const RETRY_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Attempts after which an approval is given up, after about two hours.
const MAX_ATTEMPTS: u32 = 16;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_mins(15);

/// The configured webhook.
#[derive(Debug)]
pub struct Webhook {
    endpoint: Endpoint,
    wake: Arc<Notify>,
}

impl Webhook {
    /// `None` if no address is configured. An address that cannot work is an error now, not when the first approval waits.
    pub fn of(config: &ApprovalsConfig) -> anyhow::Result<Option<Self>> {
        let Some(url) = &config.notify_url else { return Ok(None) };
        let endpoint =
            endpoint(url, config.notify_allow_private).map_err(|error| Exit::Invalid.because(error))?;
        Ok(Some(Self { endpoint, wake: Arc::new(Notify::new()) }))
    }

    /// Passes everything on to `inner`, and wakes [`run`](Self::run) when an approval was stored.
    pub fn observe(&self, inner: Arc<dyn Observer>) -> Arc<dyn Observer> {
        Arc::new(ApprovalObserver { inner, wake: Arc::clone(&self.wake) })
    }

    /// Delivers until it is dropped. What was not confirmed then is delivered by the next process, or again.
    pub async fn run(self, store: Arc<dyn Store>) {
        loop {
            let pause = match store.due_notifications(BATCH).await {
                Ok(due) => {
                    let is_full = due.len() == BATCH as usize;
                    let failed = self.deliver_all(&store, due).await;
                    match (failed, is_full) {
                        (0, true) => continue,
                        (0, false) => POLL_INTERVAL,
                        _ => RETRY_POLL_INTERVAL,
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "notifications of approvals cannot be read");
                    POLL_INTERVAL
                }
            };
            let _ = tokio::time::timeout(pause, self.wake.notified()).await;
        }
    }

    /// Returns how many failed.
    async fn deliver_all(&self, store: &Arc<dyn Store>, due: Vec<(TenantId, Uuid)>) -> usize {
        let deliveries = due.into_iter().map(|(tenant, approval)| self.deliver(store, tenant, approval));
        let delivered: Vec<bool> = stream::iter(deliveries).buffer_unordered(AT_ONCE).collect().await;
        delivered.iter().filter(|is_delivered| !**is_delivered).count()
    }

    async fn deliver(&self, store: &Arc<dyn Store>, tenant: TenantId, approval: Uuid) -> bool {
        let data = store.tenant(&tenant);
        let taken = match data.take_notification(approval, LEASE).await {
            Ok(Some(taken)) => taken,
            Ok(None) => return true,
            Err(error) => {
                tracing::warn!(%error, %approval, "a notification cannot be taken");
                return false;
            }
        };
        let sent = self.endpoint.send(&tenant, &taken.approval).await;
        let host = self.endpoint.host();
        let (next, is_delivered) = match &sent {
            Ok(()) => (NextNotification::Never, true),
            Err(error) if taken.attempt >= MAX_ATTEMPTS => {
                tracing::error!(%error, host, %approval, attempts = taken.attempt, "a notification is given up");
                (NextNotification::Never, false)
            }
            Err(error) => {
                tracing::warn!(%error, host, %approval, attempt = taken.attempt, "a notification was not delivered");
                (NextNotification::After(pause_after(taken.attempt)), false)
            }
        };
        // If this fails, the notification is due again when its lease ends: it may be delivered twice, but not lost.
        if let Err(error) = data.settle_notification(approval, next).await {
            tracing::warn!(%error, %approval, "the result of a notification cannot be stored");
        }
        is_delivered
    }
}

/// Twice as long after each failure.
fn pause_after(attempt: u32) -> Duration {
    let factor = 2_u32.checked_pow(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_PAUSE.saturating_mul(factor).min(MAX_PAUSE)
}

fn endpoint(url: &str, allow_private: bool) -> anyhow::Result<Endpoint> {
    const KEY: &str = "`approvals.notify_url` in baton.toml";
    let url = Url::parse(url).with_context(|| format!("{KEY} is not an address"))?;
    let reach = Reach { allow_private, allowed_hosts: Vec::new() };
    let allow = "`approvals.notify_allow_private = true` allows it";
    reach.check(&url).map_err(|refused| match refused {
        ReachRefused::Private(_) => anyhow::anyhow!("{KEY} cannot be used: {refused}; {allow}"),
        other => anyhow::anyhow!("{KEY} cannot be used: {other}"),
    })?;
    anyhow::ensure!(allow_private || url.scheme() == "https", "{KEY} has to begin with https://; {allow}");
    let secret = secret_from(SECRET)?;
    let secret = secret.with_context(|| {
        format!("{KEY} needs a secret to sign with: set {SECRET}, or {SECRET}_FILE to a file with it")
    })?;
    let key = SigningKey::new(&secret).with_context(|| format!("{SECRET} is not valid"))?;
    Endpoint::new(url, &reach, key)
}

#[derive(Debug)]
struct ApprovalObserver {
    inner: Arc<dyn Observer>,
    wake: Arc<Notify>,
}

impl Observer for ApprovalObserver {
    fn on_event(&self, tenant: &TenantId, event: &Event) {
        if let EventKind::Approval(approval) = &event.kind
            && approval.outcome.status == ApprovalStatus::Pending
        {
            self.wake.notify_one();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit() {
        let seconds = |attempt| pause_after(attempt).as_secs();
        assert_eq!([1, 2, 3, 10, 11, 16, u32::MAX].map(seconds), [1, 2, 4, 512, 900, 900, 900]);
    }

    #[test]
    fn addresses_that_cannot_be_used_are_refused_at_the_start() {
        for (url, expected) in [
            ("here", "is not an address"),
            ("ftp://example.com/x", "only http and https"),
            ("http://example.com/x", "has to begin with https://"),
            ("https://127.0.0.1/x", "not on the public internet"),
            ("https://[::1]/x", "not on the public internet"),
            ("https://169.254.169.254/x", "not on the public internet"),
            ("https://user:secret@example.com/x", "user name or password"),
        ] {
            let error = format!("{:#}", endpoint(url, false).unwrap_err());
            assert!(error.contains(expected), "{url}: {error}");
            assert!(!error.contains("secret@"), "{error}");
        }
    }
}
