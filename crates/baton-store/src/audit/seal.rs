//! Seals: about once a second, one hash over the ends of all chains of a tenant, bound to the seal before.
//!
//! No request waits for a seal. Writers lock only the chains that they add to, and a seal only reads those.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baton_core::StoreError;
use baton_core::store::Seal;
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;

use super::chain::{self, CHAINS, Hash, Sealed};
use super::ends::{End, Locking, MOVE, SEALS};
use crate::job::job;
use crate::open::Database;
use crate::tenant::{Driver, closed};
use crate::tx::Tx;
use crate::value::{Row, Value, params};

/// Tenants that are sealed at the same time.
const AT_ONCE: usize = 4;

/// Tenants that this process has written for since their last seal.
#[derive(Debug, Default)]
pub(crate) struct Unsealed {
    tenants: Mutex<BTreeSet<Arc<str>>>,
    /// Whether those were added that a process left unsealed when it died.
    has_looked: AtomicBool,
}

impl Unsealed {
    /// To be called after the commit: a seal sees only what is committed.
    pub(crate) fn add(&self, tenant: &Arc<str>) {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if !tenants.contains(tenant) {
            tenants.insert(Arc::clone(tenant));
        }
    }

    fn take(&self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut *self.tenants.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Seals what this process has written and, in the first call, what another has left. Returns how many seals were written.
pub(crate) async fn seal_all(database: &Database) -> Result<u64, StoreError> {
    let unsealed = &database.unsealed;
    if !unsealed.has_looked.load(Ordering::Relaxed) {
        for tenant in database.driver.unsealed().await? {
            unsealed.add(&tenant.as_str().into());
        }
        unsealed.has_looked.store(true, Ordering::Relaxed);
    }
    seal_written(database).await
}

/// Seals what this process has written. A tenant whose seal fails is tried again in the next call.
pub(crate) async fn seal_written(database: &Database) -> Result<u64, StoreError> {
    let tenants = database.unsealed.take();
    let seal = async |tenant: Arc<str>| (seal_tenant(&database.driver, &tenant).await, tenant);
    let mut outcomes = stream::iter(tenants).map(seal).buffer_unordered(AT_ONCE);
    let (mut written, mut failed) = (0, None);
    while let Some((outcome, tenant)) = outcomes.next().await {
        match outcome {
            Ok(Some(Seal { number, entries, hash, .. })) => {
                tracing::debug!(%tenant, number, entries, hash, "audit trail sealed");
                written += 1;
            }
            Ok(None) => {}
            Err(error) => {
                database.unsealed.add(&tenant);
                failed = Some(error);
            }
        }
    }
    failed.map_or(Ok(written), Err)
}

/// How long closing waits for a database that does not answer. What stays unsealed is sealed at the next start.
const AT_CLOSE: Duration = Duration::from_secs(5);

/// So that a command leaves nothing unsealed.
pub(crate) async fn before_close(database: &Database) {
    match tokio::time::timeout(AT_CLOSE, seal_written(database)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot seal the audit trail"),
        Err(_) => tracing::warn!("cannot seal the audit trail: the store does not answer"),
    }
}

/// On PostgreSQL in a transaction beside the lanes, on SQLite together with whatever is written at the same time.
async fn seal_tenant(driver: &Driver, tenant: &Arc<str>) -> Result<Option<Seal>, StoreError> {
    let (job, answer) = job((), |tx, ()| Box::pin(seal(tx)));
    match driver {
        Driver::Sqlite(sqlite) => sqlite.write(Arc::clone(tenant), job).await?,
        Driver::Postgres(postgres) => postgres.write_apart(tenant, job).await?,
    }
    answer.await.map_err(|_| closed())?
}

/// Locked, so that of two servers the second sees the seal of the first.
macro_rules! newest {
    ($lock:literal) => {
        concat!("SELECT entries, head, at FROM audit_chains WHERE tenant = $1 AND chain = 16", $lock)
    };
}

const NEWEST: Locking = Locking { sqlite: newest!(""), postgres: newest!(" FOR NO KEY UPDATE") };

/// One statement, so that all ends are of the same moment.
const ENDS: &str =
    "SELECT chain, entries, head, at FROM audit_chains WHERE tenant = $1 AND chain < 16 ORDER BY chain";

const LAST: &str = "SELECT coalesce(max(number), 0) FROM audit_seals WHERE tenant = $1";

const INSERT: &str = "INSERT INTO audit_seals (tenant, number, at, counts, hash) VALUES ($1, $2, $3, $4, $5)";

/// Writes a seal if there are entries after the last one.
async fn seal(tx: &Tx<'_>) -> Result<Option<Seal>, StoreError> {
    let Some(newest) = tx.first(NEWEST.sql(tx), &[]).await? else { return Ok(None) };
    let newest = End::read(&newest, 0)?;
    let ends = tx.query(ENDS, &[]).await?;
    let ends = ends.iter().map(|row| End::read(row, 1)).collect::<Result<Vec<End>, _>>()?;
    let entries = ends.iter().map(|end| end.entries).sum();
    if entries == newest.entries {
        return Ok(None);
    }
    let last = tx.first(LAST, &[]).await?;
    let number = last.map_or(Ok(0), |row| row.count(0))? + 1;
    let at = tx.now().as_microsecond().max(newest.at);
    let counts = encode(ends.iter().map(|end| end.entries));
    let root = chain::root((0..).zip(&ends).map(|(chain, end)| (chain, end.entries, end.head)));
    let sealed = Sealed { number: i64::try_from(number).unwrap_or(i64::MAX), at, counts: &counts, root };
    let head = chain::seal(&newest.head, &sealed);
    tx.execute(INSERT, params![number, at, Value::Blob(counts), chain::value(&head)]).await?;
    tx.execute(MOVE, &End { entries, head, at }.values(SEALS)).await?;
    shown(number, at, entries, &head).map(Some)
}

/// A seal for people and programs.
pub(super) fn shown(number: u64, at: i64, entries: u64, hash: &Hash) -> Result<Seal, StoreError> {
    let wrong = |_| StoreError::Corrupt("the time of a seal is out of range".to_owned());
    let at = Timestamp::from_microsecond(at).map_err(wrong)?;
    Ok(Seal { number, at, entries, hash: chain::hex(hash) })
}

/// Numbers in LEB128: seven bits a byte, the lowest first; all bytes of a number but its last have the upper bit set.
fn encode(counts: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for mut count in counts {
        while count >= 0x80 {
            bytes.push((count & 0x7f) as u8 | 0x80);
            count >>= 7;
        }
        bytes.push((count & 0x7f) as u8);
    }
    bytes
}

/// How many entries of each chain a seal covers. `None` if these are not the numbers of all chains.
pub(super) fn decode(bytes: &[u8]) -> Option<[u64; CHAINS as usize]> {
    let mut counts = Vec::with_capacity(CHAINS.into());
    let (mut count, mut shift) = (0_u64, 0);
    for byte in bytes {
        count |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            counts.push(std::mem::take(&mut count));
            shift = 0;
        }
    }
    if shift > 0 { None } else { counts.try_into().ok() }
}

/// From the columns `number, at, counts, hash`.
pub(super) fn read(row: &Row) -> Result<(i64, i64, &[u8], Hash), StoreError> {
    Ok((row.int(0)?, row.int(1)?, row.blob(2)?, chain::hash_at(row, 3)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_any_size_are_read_back() {
        let counts = [0, 1, 127, 128, 300, 16_383, 16_384, u64::MAX, 5, 6, 7, 8, 9, 10, 11, u64::MAX >> 1];
        let bytes = encode(counts.into_iter());
        assert_eq!(decode(&bytes), Some(counts));
        assert_eq!(decode(&bytes[1..]), None);
        assert_eq!(decode(&[0x80; 16]), None);
        assert_eq!(decode(&[0xff; 400]), None);
        assert_eq!(encode([3; 16].into_iter()).len(), 16, "a byte for each small number");
    }
}
