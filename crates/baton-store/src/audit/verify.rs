//! Whether the chain still holds.

use baton_core::StoreError;
use baton_core::store::{AuditEntry, Verdict};

use super::chain;
use crate::tx::Tx;
use crate::value::{Row, Value, params};

/// Entries in memory at a time.
const PIECE: u64 = 500;

const ENTRIES: &str = "SELECT number, at, actor, action, thread_id, entry, hash
    FROM audit
    WHERE tenant = $1 AND number > $2 AND number <= $3
    ORDER BY number";

/// Both in one statement: between two, others may have added entries.
const COUNTS: &str = "SELECT count(*),
        coalesce((SELECT audit_entries FROM tenants WHERE tenant = $1), 0)
    FROM audit
    WHERE tenant = $1";

/// Where the walk along the chain stands.
struct Walk {
    number: u64,
    head: String,
}

/// Reads the chain from its beginning. What is added while it is read does not belong to it.
pub(super) async fn verify(tx: &Tx<'_>) -> Result<Verdict, StoreError> {
    let sql = "SELECT audit_entries, audit_head FROM tenants WHERE tenant = $1";
    let (entries, head) = match tx.first(sql, &[]).await? {
        Some(row) => (row.count(0)?, row.text(1)?.to_owned()),
        None => (0, String::new()),
    };
    let mut walk = Walk { number: 0, head: String::new() };
    while walk.number < entries {
        let end = entries.min(walk.number + PIECE);
        let rows = tx.query(ENTRIES, params![walk.number, end]).await?;
        for row in &rows {
            if let Some(verdict) = step(&mut walk, row)? {
                return Ok(verdict);
            }
        }
        if walk.number < end {
            return Ok(broken(walk.number + 1, "the entry is missing"));
        }
    }
    if walk.head != head {
        return Ok(broken(entries, "the end of the chain is not the one that was kept with the tenant"));
    }
    let counts = tx.first(COUNTS, &[]).await?.ok_or_else(|| StoreError::Failed("no answer".to_owned()))?;
    if counts.int(0)? != counts.int(1)? {
        return Ok(broken(entries + 1, "there are entries that do not belong to the chain"));
    }
    Ok(Verdict::Intact { entries, head })
}

/// One entry further, or why not.
fn step(walk: &mut Walk, row: &Row) -> Result<Option<Verdict>, StoreError> {
    let number = walk.number + 1;
    if row.count(0)? != number {
        return Ok(Some(broken(number, "the entry is missing")));
    }
    let hash = chain::link(&walk.head, number, row.time(1)?, row.text(5)?);
    if hash != row.text(6)? {
        let reason = "the entry, its time or its hash is not as it was written";
        return Ok(Some(broken(number, reason)));
    }
    let Ok(entry) = row.json::<AuditEntry>(5) else {
        return Ok(Some(broken(number, "the entry cannot be read")));
    };
    let columns = [Value::from(entry.actor), Value::from(entry.action), Value::from(entry.thread_id)];
    if row.0.get(2..5) != Some(&columns) {
        return Ok(Some(broken(number, "the actor, action or thread beside the entry is not the one in it")));
    }
    *walk = Walk { number, head: hash };
    Ok(None)
}

fn broken(number: u64, reason: &str) -> Verdict {
    Verdict::Broken { number, reason: reason.to_owned() }
}
