//! Push notifications of A2A tasks. A delivery is due while `told` differs from the status of the run.

use std::time::Duration;

use baton_core::store::{
    NextNotification, Pending, PushConfig, PushConfigs, PushKey, PushTarget, RunStatus, TakenPush,
};
use baton_core::{RunId, StoreError, ThreadId};

use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params};

impl PushConfigs for Tenant {
    fn put_push_config(&self, config: PushConfig, most: u32) -> Pending<'_, ()> {
        Box::pin(async move {
            let thread = self.read(config.task, |tx, task| Box::pin(thread_of(tx, *task))).await?;
            let thread = thread.ok_or(StoreError::NotFound("run"))?;
            self.write(JobSubject::Thread(thread), (thread, config, most), |tx, (thread, config, most)| {
                Box::pin(put(tx, *thread, config, *most))
            })
            .await
        })
    }

    fn push_configs(&self, task: RunId) -> Pending<'_, Vec<PushConfig>> {
        self.read(task, |tx, task| Box::pin(list(tx, *task)))
    }

    fn delete_push_config(&self, key: PushKey) -> Pending<'_, bool> {
        self.write(JobSubject::Tenant, key, |tx, key| Box::pin(delete(tx, key)))
    }

    fn take_push(&self, key: PushKey, lease: Duration) -> Pending<'_, Option<TakenPush>> {
        self.write(JobSubject::Tenant, (key, lease), |tx, (key, lease)| Box::pin(take(tx, key, *lease)))
    }

    fn settle_push(&self, key: PushKey, status: RunStatus, next: NextNotification) -> Pending<'_, ()> {
        self.write(JobSubject::Tenant, (key, status, next), |tx, (key, status, next)| {
            Box::pin(settle(tx, key, *status, *next))
        })
    }
}

async fn thread_of(tx: &Tx<'_>, task: RunId) -> Result<Option<ThreadId>, StoreError> {
    let sql = "SELECT thread_id FROM runs WHERE tenant = $1 AND run_id = $2";
    tx.first(sql, params![task]).await?.map(|row| row.parse(0)).transpose()
}

const OTHERS: &str =
    "SELECT count(*) FROM push_configs WHERE tenant = $1 AND task_id = $2 AND config_id <> $3";

const PUT: &str = "
    INSERT INTO push_configs (tenant, task_id, config_id, thread_id, run_id, created_at, target, told, due_at, attempts)
    VALUES ($1, $2, $3, $4, $2, $5, $6, '', 0, 0)
    ON CONFLICT (tenant, task_id, config_id) DO UPDATE SET target = excluded.target, due_at = 0, attempts = 0";

/// Locks the thread, so that it is not deleted and the task's configurations do not change meanwhile.
async fn put(tx: &Tx<'_>, thread: ThreadId, config: &PushConfig, most: u32) -> Result<(), StoreError> {
    threads::hold(tx, thread, None).await?;
    let others = tx.first(OTHERS, params![config.task, config.id.as_str()]).await?;
    if others.map_or(Ok(0), |row| row.count(0))? >= u64::from(most) {
        return Err(StoreError::Conflict("the number of push notification configurations"));
    }
    let target = SqlValue::json(&config.target)?;
    let params = params![config.task, config.id.as_str(), thread, tx.now(), target];
    tx.execute(PUT, params).await.map(drop)
}

async fn list(tx: &Tx<'_>, task: RunId) -> Result<Vec<PushConfig>, StoreError> {
    let sql = "SELECT config_id, target FROM push_configs WHERE tenant = $1 AND task_id = $2 ORDER BY created_at, config_id";
    tx.query(sql, params![task]).await?.iter().map(|row| read(row, task)).collect()
}

fn read(row: &Row, task: RunId) -> Result<PushConfig, StoreError> {
    let target: PushTarget = row.json(1)?;
    Ok(PushConfig { task, id: row.text(0)?.to_owned(), target })
}

async fn delete(tx: &Tx<'_>, key: &PushKey) -> Result<bool, StoreError> {
    let sql = "DELETE FROM push_configs WHERE tenant = $1 AND task_id = $2 AND config_id = $3";
    Ok(tx.execute(sql, params![key.task, key.id.as_str()]).await? > 0)
}

const TAKE: &str = "
    UPDATE push_configs SET due_at = $5, attempts = attempts + 1
    WHERE tenant = $1 AND task_id = $2 AND config_id = $3 AND due_at <= $4
        AND told <> (SELECT r.status FROM runs AS r WHERE r.tenant = $1 AND r.run_id = push_configs.run_id)";

const TAKEN: &str = "
    SELECT p.config_id, p.target, p.run_id, p.attempts, r.user_id, r.status
    FROM push_configs AS p JOIN runs AS r ON r.tenant = p.tenant AND r.run_id = p.run_id
    WHERE p.tenant = $1 AND p.task_id = $2 AND p.config_id = $3";

async fn take(tx: &Tx<'_>, key: &PushKey, lease: Duration) -> Result<Option<TakenPush>, StoreError> {
    let until = tx.now().saturating_add(lease).unwrap_or(tx.now());
    let id = key.id.as_str();
    if tx.execute(TAKE, params![key.task, id, tx.now(), until]).await? == 0 {
        return Ok(None);
    }
    let Some(row) = tx.first(TAKEN, params![key.task, id]).await? else { return Ok(None) };
    Ok(Some(TakenPush {
        config: read(&row, key.task)?,
        run_id: row.parse(2)?,
        user_id: row.parse(4)?,
        status: row.choice(5)?,
        attempt: u32::try_from(row.count(3)?).unwrap_or(u32::MAX),
    }))
}

/// Delivered or given up: the next status is due at once, with attempts of its own. No status follows a final one.
const DONE: &str = "UPDATE push_configs SET told = $4, due_at = $5, attempts = 0
    WHERE tenant = $1 AND task_id = $2 AND config_id = $3";

const AGAIN: &str =
    "UPDATE push_configs SET due_at = $4 WHERE tenant = $1 AND task_id = $2 AND config_id = $3";

async fn settle(
    tx: &Tx<'_>,
    key: &PushKey,
    status: RunStatus,
    next: NextNotification,
) -> Result<(), StoreError> {
    let id = key.id.as_str();
    match next {
        NextNotification::Never => {
            let due_at = (!status.is_final()).then_some(0_i64);
            tx.execute(DONE, params![key.task, id, status, due_at]).await
        }
        NextNotification::After(pause) => {
            let at = tx.now().saturating_add(pause).unwrap_or(tx.now());
            tx.execute(AGAIN, params![key.task, id, at]).await
        }
    }
    .map(drop)
}
