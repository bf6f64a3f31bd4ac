//! Artifacts: files that users upload and agents produce.

use baton_core::store::{Artifact, Artifacts, Claim, NewArtifact, Pending};
use baton_core::{StoreError, ThreadId, UserId};
use uuid::Uuid;

use crate::insert::{ColumnKind, Insert};
use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params, row_values};
use crate::{runs, threads};

impl Artifacts for Tenant {
    fn put_artifact(&self, artifact: Artifact, user: Option<&UserId>, bytes: Vec<u8>) -> Pending<'_, ()> {
        let about = JobSubject::Thread(artifact.thread_id);
        self.write(about, (artifact, user.cloned(), bytes), |tx, (artifact, user, bytes)| {
            Box::pin(put(tx, artifact, user.as_ref(), bytes))
        })
    }

    fn artifact(&self, artifact: Uuid) -> Pending<'_, (Artifact, Vec<u8>)> {
        self.read(artifact, |tx, artifact| Box::pin(one(tx, *artifact)))
    }

    fn artifacts(&self, thread: ThreadId) -> Pending<'_, Vec<Artifact>> {
        self.read(thread, |tx, thread| Box::pin(of_thread(tx, *thread)))
    }
}

pub(crate) static INSERT: Insert = Insert::new(
    "artifacts",
    &[
        ("artifact_id", ColumnKind::Uuid),
        ("thread_id", ColumnKind::Uuid),
        ("run_id", ColumnKind::Uuid),
        ("name", ColumnKind::Text),
        ("media_type", ColumnKind::Text),
        ("size", ColumnKind::Int),
        ("created_at", ColumnKind::Int),
        ("bytes", ColumnKind::Bytes),
    ],
    "",
);

/// Returns rows for [`INSERT`]. Thread and run are those of the claim, whatever the artifacts say. The rows share the bytes.
pub(crate) fn rows(claim: &Claim, artifacts: &[NewArtifact]) -> Vec<Vec<SqlValue>> {
    let (thread, run) = (claim.thread_id, claim.run_id);
    let row = |NewArtifact { artifact, bytes }: &NewArtifact| {
        let Artifact { artifact_id, name, media_type, created_at, .. } = artifact;
        let (name, media_type, size) = (name.as_str(), media_type.as_str(), bytes.len() as u64);
        row_values![*artifact_id, thread, run, name, media_type, size, *created_at, bytes]
    };
    artifacts.iter().map(row).collect()
}

const PUT: &str = "
    INSERT INTO artifacts (tenant, artifact_id, thread_id, run_id, name, media_type, size, created_at, bytes)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (tenant, artifact_id) DO NOTHING";

const COUNT: &str = "UPDATE thread_work SET bytes = bytes + $3 WHERE tenant = $1 AND thread_id = $2";

/// Stores the length of `bytes` as the size and ignores the artifact's own `size`.
async fn put(
    tx: &Tx<'_>,
    artifact: &Artifact,
    user: Option<&UserId>,
    bytes: &[u8],
) -> Result<(), StoreError> {
    let Artifact { artifact_id, thread_id, run_id, name, media_type, created_at, .. } = artifact;
    if let Some(run) = run_id {
        threads::must_be_of(tx, *thread_id, user).await?;
        let sql = "SELECT run_id FROM runs WHERE tenant = $1 AND run_id = $2 AND thread_id = $3";
        tx.first(sql, params![*run, *thread_id]).await?.ok_or(runs::NOT_FOUND)?;
    }
    match user {
        Some(user) => threads::begin(tx, *thread_id, user, name).await?,
        None => threads::touch(tx, *thread_id).await?,
    }
    let (name, media_type, size) = (name.as_str(), media_type.as_str(), bytes.len() as u64);
    let bytes = SqlValue::Blob(bytes.to_vec());
    let params = params![*artifact_id, *thread_id, *run_id, name, media_type, size, *created_at, bytes];
    match tx.execute(PUT, params).await? {
        0 => Err(StoreError::Conflict("the artifact")),
        _ => tx.execute(COUNT, params![*thread_id, size]).await.map(drop),
    }
}

async fn one(tx: &Tx<'_>, artifact: Uuid) -> Result<(Artifact, Vec<u8>), StoreError> {
    let sql = "SELECT artifact_id, thread_id, run_id, name, media_type, size, created_at, bytes
        FROM artifacts
        WHERE tenant = $1 AND artifact_id = $2";
    let row = tx.first(sql, params![artifact]).await?.ok_or(StoreError::NotFound("artifact"))?;
    Ok((read(&row)?, row.blob(7)?.to_vec()))
}

async fn of_thread(tx: &Tx<'_>, thread: ThreadId) -> Result<Vec<Artifact>, StoreError> {
    threads::must_exist(tx, thread).await?;
    let sql = "SELECT artifact_id, thread_id, run_id, name, media_type, size, created_at
        FROM artifacts
        WHERE tenant = $1 AND thread_id = $2
        ORDER BY created_at DESC, artifact_id DESC";
    tx.query(sql, params![thread]).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Artifact, StoreError> {
    Ok(Artifact {
        artifact_id: row.parse(0)?,
        thread_id: row.parse(1)?,
        run_id: row.optional(2, Row::parse)?,
        name: row.text(3)?.to_owned(),
        media_type: row.text(4)?.to_owned(),
        size: row.count(5)?,
        created_at: row.time(6)?,
    })
}
