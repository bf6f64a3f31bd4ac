//! Notifications of approvals. Their state is in two columns of the approval: `notify_at` is null once nothing is to be sent.

use std::time::Duration;

use baton_core::store::{NextNotification, Notifications, Pending, TakenNotification};
use baton_core::{StoreError, ThreadId};
use uuid::Uuid;

use crate::approvals;
use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::tx::Tx;
use crate::value::params;
use crate::work::park;

impl Notifications for Tenant {
    fn take_notification(&self, approval: Uuid, lease: Duration) -> Pending<'_, Option<TakenNotification>> {
        Box::pin(async move {
            let Some(thread) = self.thread_of_approval(approval).await? else { return Ok(None) };
            self.write(
                JobSubject::Thread(thread),
                (thread, approval, lease),
                |tx, (thread, approval, lease)| Box::pin(take(tx, *thread, *approval, *lease)),
            )
            .await
        })
    }

    fn settle_notification(&self, approval: Uuid, next: NextNotification) -> Pending<'_, ()> {
        Box::pin(async move {
            let Some(thread) = self.thread_of_approval(approval).await? else { return Ok(()) };
            self.write(
                JobSubject::Thread(thread),
                (thread, approval, next),
                |tx, (thread, approval, next)| Box::pin(settle(tx, *thread, *approval, *next)),
            )
            .await
        })
    }
}

const TAKE: &str = "
    UPDATE approvals SET notify_at = $4, notify_attempts = notify_attempts + 1
    WHERE tenant = $1 AND approval_id = $2 AND status = 'pending' AND expires_at > $3 AND notify_at <= $3";

const ATTEMPTS: &str = "SELECT notify_attempts FROM approvals WHERE tenant = $1 AND approval_id = $2";

/// Locks the thread, whose other jobs lock it before they change its approvals. Returns `false` if it was deleted.
async fn lock(tx: &Tx<'_>, thread: ThreadId) -> Result<bool, StoreError> {
    match park::lock(tx, thread).await {
        Err(StoreError::ThreadNotFound) => Ok(false),
        locked => locked.map(|()| true),
    }
}

async fn take(
    tx: &Tx<'_>,
    thread: ThreadId,
    id: Uuid,
    lease: Duration,
) -> Result<Option<TakenNotification>, StoreError> {
    if !lock(tx, thread).await? {
        return Ok(None);
    }
    let until = tx.now().saturating_add(lease).unwrap_or(tx.now());
    if tx.execute(TAKE, params![id, tx.now(), until]).await? == 0 {
        return Ok(None);
    }
    let attempts = tx.first(ATTEMPTS, params![id]).await?.map_or(Ok(1), |row| row.count(0))?;
    let approval = approvals::one(tx, id).await?;
    Ok(Some(TakenNotification { approval, attempt: u32::try_from(attempts).unwrap_or(u32::MAX) }))
}

const SETTLE: &str = "UPDATE approvals SET notify_at = $3 WHERE tenant = $1 AND approval_id = $2";

async fn settle(tx: &Tx<'_>, thread: ThreadId, id: Uuid, next: NextNotification) -> Result<(), StoreError> {
    lock(tx, thread).await?;
    let at = match next {
        NextNotification::After(pause) => Some(tx.now().saturating_add(pause).unwrap_or(tx.now())),
        NextNotification::Never => None,
    };
    tx.execute(SETTLE, params![id, at]).await.map(drop)
}
