//! Tool output too long for a model's context, stored in chunks.

use baton_core::store::{OutputHandle, OutputSlice, Outputs, Pending, SpooledOutput};
use baton_core::{RunId, StoreError};

use crate::insert::{ColumnKind, Insert};
use crate::tenant::Tenant;
use crate::tx::Tx;
use crate::value::{SqlValue, params, row_values};

impl Outputs for Tenant {
    fn output_slice(
        &self,
        run: RunId,
        handle: OutputHandle,
        offset: u64,
        limit: u32,
    ) -> Pending<'_, OutputSlice> {
        self.read((run, handle, offset, limit), |tx, (run, handle, offset, limit)| {
            Box::pin(slice(tx, *run, *handle, *offset, *limit))
        })
    }

    fn spooled_bytes(&self) -> Pending<'_, u64> {
        self.read((), |tx, ()| Box::pin(total(tx)))
    }
}

const CHUNK_BYTES: u64 = SpooledOutput::CHUNK_BYTES as u64;

pub(crate) static INSERT: Insert = Insert::new(
    "tool_outputs",
    &[
        ("run_id", ColumnKind::Uuid),
        ("output_id", ColumnKind::Uuid),
        ("chunk", ColumnKind::Int),
        ("size", ColumnKind::Int),
        ("bytes", ColumnKind::Bytes),
    ],
    "",
);

/// Returns rows for [`INSERT`], one per chunk. The rows share the content of the outputs.
pub(crate) fn rows(run: RunId, outputs: &[SpooledOutput]) -> Vec<Vec<SqlValue>> {
    let chunks = outputs.iter().flat_map(|output| (0_u64..).zip(output.chunks()).map(move |at| (output, at)));
    chunks
        .map(|(output, (number, bytes))| {
            row_values![run, output.handle.as_uuid(), number, output.size(), bytes]
        })
        .collect()
}

const SLICE: &str = "SELECT size, bytes FROM tool_outputs
    WHERE tenant = $1 AND run_id = $2 AND output_id = $3 AND chunk >= $4 AND chunk <= $5
    ORDER BY chunk";

const SIZE: &str =
    "SELECT size FROM tool_outputs WHERE tenant = $1 AND run_id = $2 AND output_id = $3 AND chunk = 0";

async fn slice(
    tx: &Tx<'_>,
    run: RunId,
    handle: OutputHandle,
    offset: u64,
    limit: u32,
) -> Result<OutputSlice, StoreError> {
    let first = offset / CHUNK_BYTES;
    let last = offset.saturating_add(u64::from(limit).saturating_sub(1)) / CHUNK_BYTES;
    let rows = tx.query(SLICE, params![run, handle.as_uuid(), first, last]).await?;
    let Some(row) = rows.first() else {
        let row = tx.first(SIZE, params![run, handle.as_uuid()]).await?;
        let size = row.ok_or(StoreError::NotFound("output"))?.count(0)?;
        return Ok(OutputSlice { bytes: Vec::new(), offset: size, size });
    };
    let size = row.count(0)?;
    let mut bytes = Vec::new();
    for row in &rows {
        bytes.extend_from_slice(row.blob(1)?);
    }
    let skipped = usize::try_from(offset % CHUNK_BYTES).unwrap_or(usize::MAX).min(bytes.len());
    bytes.drain(..skipped);
    bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(OutputSlice { bytes, offset: offset.min(size), size })
}

const TOTAL: &str =
    "SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM tool_outputs WHERE tenant = $1 AND chunk = 0";

async fn total(tx: &Tx<'_>) -> Result<u64, StoreError> {
    tx.first(TOTAL, &[]).await?.map_or(Ok(0), |row| row.count(0))
}

/// Maximum number of outputs that one write deletes, so that a sweep does not block other writes for long.
pub(crate) const DELETED_AT_ONCE: u64 = 16;

const ENDED: &str = "SELECT o.run_id, o.output_id, r.thread_id, o.size FROM tool_outputs AS o
    JOIN runs AS r ON r.tenant = $1 AND r.run_id = o.run_id
    WHERE o.tenant = $1 AND o.chunk = 0 AND r.finished_at IS NOT NULL
    LIMIT $2";

const DELETE: &str = "DELETE FROM tool_outputs WHERE tenant = $1 AND run_id = $2 AND output_id = $3";

const UNCOUNT: &str = "UPDATE thread_work SET bytes = bytes - $3 WHERE tenant = $1 AND thread_id = $2";

/// Deletes up to [`DELETED_AT_ONCE`] outputs of finished runs, which are no longer read. Returns the number deleted.
pub(crate) async fn delete_ended(tx: &Tx<'_>) -> Result<u64, StoreError> {
    let ended = tx.query(ENDED, params![DELETED_AT_ONCE]).await?;
    let deleted = ended.len() as u64;
    for row in ended {
        tx.execute(DELETE, &row.0[..2]).await?;
        tx.execute(UNCOUNT, &row.0[2..]).await?;
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn no_chunk_is_read_to_find_another() {
        for sql in [SLICE, SIZE, ENDED, DELETE] {
            let plan = plan(sql);
            assert!(plan.iter().all(|line| line.starts_with("SEARCH ")), "{sql}: {plan:?}");
        }
        let plan = plan(TOTAL);
        assert!(plan[0].contains("USING COVERING INDEX tool_outputs_sizes"), "{plan:?}");
    }
}
