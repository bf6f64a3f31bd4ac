//! Push notifications of A2A tasks.

use std::time::Duration;

use baton_core::store::{Pending, PushConfig, PushConfigs, PushKey, PushOutcome, PushTarget, TakenPush};
use baton_core::{RunId, StoreError, ThreadId};
use jiff::Timestamp;

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

    fn settle_push(&self, key: PushKey, until: Timestamp, outcome: PushOutcome) -> Pending<'_, ()> {
        self.write(JobSubject::Tenant, (key, until, outcome), |tx, (key, until, outcome)| {
            Box::pin(settle(tx, key, *until, outcome))
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
    INSERT INTO push_configs
        (tenant, task_id, config_id, thread_id, run_id, seen, created_at, target, delivered, due_at, recheck, attempts)
    VALUES ($1, $2, $3, $4, $2, '', $5, $6, '', 0, 1, 0)
    ON CONFLICT (tenant, task_id, config_id) DO UPDATE
    SET delivered = CASE WHEN push_configs.target = excluded.target THEN push_configs.delivered ELSE '' END,
        attempts = CASE WHEN push_configs.target = excluded.target THEN push_configs.attempts ELSE 0 END,
        target = excluded.target, due_at = 0, recheck = 1";

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
    UPDATE push_configs SET due_at = $5, recheck = 1, attempts = attempts + 1
    WHERE tenant = $1 AND task_id = $2 AND config_id = $3 AND due_at <= $4 AND (
        recheck = 1
        OR seen <> (SELECT r.status FROM runs AS r WHERE r.tenant = $1 AND r.run_id = push_configs.run_id)
    )";

const TAKEN: &str = "
    SELECT p.config_id, p.target, p.delivered, p.attempts, r.user_id
    FROM push_configs AS p JOIN runs AS r ON r.tenant = $1 AND r.run_id = p.run_id
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
        user_id: row.parse(4)?,
        delivered: row.text(2)?.to_owned(),
        attempt: u32::try_from(row.count(3)?).unwrap_or(u32::MAX),
        until,
    }))
}

const DONE: &str = "
    UPDATE push_configs
    SET run_id = $5, seen = $6, delivered = $7, due_at = $8, recheck = $9, attempts = 0
    WHERE tenant = $1 AND task_id = $2 AND config_id = $3 AND due_at = $4";

const RETRY: &str = "
    UPDATE push_configs SET due_at = $5, recheck = 1
    WHERE tenant = $1 AND task_id = $2 AND config_id = $3 AND due_at = $4";

const ENDED: &str = "
    UPDATE push_configs SET due_at = NULL
    WHERE tenant = $1 AND task_id = $2 AND config_id = $3 AND due_at = $4";

async fn settle(
    tx: &Tx<'_>,
    key: &PushKey,
    until: Timestamp,
    outcome: &PushOutcome,
) -> Result<(), StoreError> {
    let id = key.id.as_str();
    let after = |pause: Duration| tx.now().saturating_add(pause).unwrap_or(tx.now());
    match outcome {
        PushOutcome::Done { run, status, state, recheck } => {
            let due_at = recheck.map_or(SqlValue::Int(0), |pause| after(pause).into());
            let params =
                params![key.task, id, until, *run, *status, state.as_str(), due_at, recheck.is_some()];
            tx.execute(DONE, params).await
        }
        PushOutcome::Retry(pause) => tx.execute(RETRY, params![key.task, id, until, after(*pause)]).await,
        PushOutcome::Ended => tx.execute(ENDED, params![key.task, id, until]).await,
    }
    .map(drop)
}
