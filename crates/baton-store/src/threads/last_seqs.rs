//! The last event numbers of many threads, in one statement.

use baton_core::{StoreError, ThreadId};
use uuid::Uuid;

use crate::tx::Tx;
use crate::value::SqlValue;

/// SQLite has no arrays: `$2` is the concatenation of the ids, 16 bytes each.
const OF_MANY: &str = "
    SELECT thread_id, last_seq FROM thread_work
    WHERE tenant = $1 AND thread_id IN (
        WITH RECURSIVE listed (id, rest) AS (
            SELECT substr($2, 1, 16), substr($2, 17)
            UNION ALL
            SELECT substr(rest, 1, 16), substr(rest, 17) FROM listed WHERE length(rest) > 0
        )
        SELECT id FROM listed
    )";

const OF_ARRAY: &str = "
    SELECT thread_id, last_seq FROM thread_work WHERE tenant = $1 AND thread_id = ANY ($2)";

pub(super) async fn read(tx: &Tx<'_>, threads: &[Uuid]) -> Result<Vec<(ThreadId, u64)>, StoreError> {
    let sql = if tx.is_postgres() { OF_ARRAY } else { OF_MANY };
    let rows = tx.query(sql, &[SqlValue::Ids(threads.to_vec())]).await?;
    rows.iter().map(|row| Ok((row.parse(0)?, row.count(1)?))).collect()
}
