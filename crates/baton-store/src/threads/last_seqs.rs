//! The last numbers of many threads, with one statement.

use baton_core::{StoreError, ThreadId};

use crate::tx::Tx;
use crate::value::params;

/// Each id has 36 characters.
const LAST_SEQS: &str = "
    SELECT thread_id, last_seq FROM threads
    WHERE tenant = $1 AND thread_id IN (
        WITH RECURSIVE listed (id, rest) AS (
            SELECT substr(CAST($2 AS TEXT), 1, 36), substr(CAST($2 AS TEXT), 37)
            UNION ALL
            SELECT substr(rest, 1, 36), substr(rest, 37) FROM listed WHERE rest <> ''
        )
        SELECT id FROM listed
    )";

pub(super) fn joined(threads: &[ThreadId]) -> String {
    threads.iter().map(ToString::to_string).collect()
}

pub(super) async fn read(tx: &Tx<'_>, threads: &str) -> Result<Vec<(ThreadId, u64)>, StoreError> {
    let rows = tx.query(LAST_SEQS, params![threads]).await?;
    rows.iter().map(|row| Ok((row.parse(0)?, row.count(1)?))).collect()
}
