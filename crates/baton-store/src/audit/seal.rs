//! Seals: about once a second, one hash over the ends of all chains of a tenant, chained to the previous seal.
//!
//! No request waits for a seal: writers lock only the chains they append to, and a seal reads those without locking.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baton_core::StoreError;
use baton_core::store::Seal;
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;

use super::chain::{self, CHAINS, Hash, Sealed};
use super::ends::{ChainEnd, Locking, MOVE, SEALS, refuse_weaker};
use super::keys::Trust;
use super::{people, truncation};
use crate::job::job;
use crate::open::Database;
use crate::tenant::{Driver, closed};
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params};

/// Tenants sealed concurrently.
const AT_ONCE: usize = 4;

/// Tenants this process has written for since their last seal.
#[derive(Debug, Default)]
pub(crate) struct Unsealed {
    tenants: Mutex<BTreeSet<Arc<str>>>,
    /// Whether the tenants that an earlier process left unsealed were loaded.
    has_looked: AtomicBool,
}

impl Unsealed {
    /// Call after the commit: a seal sees only committed entries.
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

/// Seals the tenants this process has written for. The first call also seals those that another process left unsealed. Returns
/// the number of seals written.
pub(crate) async fn seal_all(database: &Database) -> Result<u64, StoreError> {
    let unsealed = &database.unsealed;
    if !unsealed.has_looked.load(Ordering::Relaxed) {
        for tenant in database.driver.unsealed(&database.signing_id).await? {
            unsealed.add(&tenant.as_str().into());
        }
        unsealed.has_looked.store(true, Ordering::Relaxed);
    }
    seal_written(database).await
}

/// Seals the tenants this process has written for. A tenant whose seal fails is retried by the next call.
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
                // Another attempt would only find the same damage.
                if error.is_transient() {
                    database.unsealed.add(&tenant);
                }
                failed = Some(error);
            }
        }
    }
    failed.map_or(Ok(written), Err)
}

/// Limit for sealing when the store closes. Entries that stay unsealed are sealed at the next start.
const AT_CLOSE: Duration = Duration::from_secs(5);

/// Seals before the store closes, so that a short-lived command leaves no unsealed entries. Failures are logged only.
pub(crate) async fn before_close(database: &Database) {
    match tokio::time::timeout(AT_CLOSE, seal_written(database)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot seal the audit trail"),
        Err(_) => tracing::warn!("cannot seal the audit trail: the store is unavailable"),
    }
}

/// PostgreSQL seals in a separate transaction beside the lanes; SQLite seals in the current write batch.
async fn seal_tenant(driver: &Driver, tenant: &Arc<str>) -> Result<Option<Seal>, StoreError> {
    seal_with(driver, tenant, false).await
}

/// Seals with the current key whatever key the trail was signed with before.
pub(super) async fn sign(driver: &Driver, tenant: &Arc<str>) -> Result<Option<Seal>, StoreError> {
    seal_with(driver, tenant, true).await
}

async fn seal_with(driver: &Driver, tenant: &Arc<str>, adopts: bool) -> Result<Option<Seal>, StoreError> {
    let (job, answer) = job(adopts, |tx, adopts| Box::pin(seal(tx, *adopts)));
    match driver {
        Driver::Sqlite(sqlite) => sqlite.write(Arc::clone(tenant), job).await?,
        Driver::Postgres(postgres) => postgres.write_apart(tenant, job).await?,
    }
    answer.await.map_err(|_| closed())?
}

/// Locked, so that the second of two servers sees the first one's seal.
macro_rules! newest {
    ($lock:literal) => {
        concat!(
            "SELECT entries, head, at, key_id, mac FROM audit_chains WHERE tenant = $1 AND chain = 16",
            $lock
        )
    };
}

pub(super) const NEWEST: Locking = Locking { sqlite: newest!(""), postgres: newest!(" FOR NO KEY UPDATE") };

/// One statement, so that all ends come from one snapshot.
macro_rules! ends {
    ($lock:literal) => {
        concat!(
            "SELECT chain, entries, head, at, key_id, mac FROM audit_chains WHERE tenant = $1 AND chain < 16 ORDER BY chain",
            $lock
        )
    };
}

const ENDS: &str = ends!("");

/// Locked, so that the ends can be signed anew. Writers lock no row after these, so they do not deadlock.
const LOCKED_ENDS: Locking = Locking { sqlite: ends!(""), postgres: ends!(" FOR NO KEY UPDATE") };

const LAST: &str = "SELECT coalesce(max(number), 0) FROM audit_seals WHERE tenant = $1";

const INSERT: &str =
    "INSERT INTO audit_seals (tenant, number, at, counts, hash, key_id) VALUES ($1, $2, $3, $4, $5, $6)";

/// Writes a seal if there are entries after the last one, or if it was signed with another key than this process has. Otherwise
/// returns `None`.
///
/// Fails unless configured keys have signed the last seal and the ends of the chains: a seal must not cover what was written around
/// Baton. `adopts` skips this check, and always writes a seal if there are entries.
///
/// Ends that another key has signed are signed anew, so that the other key can be removed.
async fn seal(tx: &Tx<'_>, adopts: bool) -> Result<Option<Seal>, StoreError> {
    let Some(row) = tx.first(NEWEST.sql(tx), &[]).await? else { return Ok(None) };
    let (newest, key_id) = (ChainEnd::read(&row, 0)?, row.text(3)?);
    refuse_weaker(tx, key_id)?;
    let keys = &tx.shared.audit_keys;
    let mut rows = tx.query(ENDS, &[]).await?;
    let is_of_other_key = |row: &Row| Ok(row.count(1)? > 0 && row.text(4)? != keys.signing_id());
    let of_other_keys = rows.iter().map(is_of_other_key).collect::<Result<Vec<bool>, StoreError>>()?;
    let renews = adopts || of_other_keys.contains(&true);
    if renews {
        rows = tx.query(LOCKED_ENDS.sql(tx), &[]).await?;
    }
    let ends = rows.iter().map(|row| ChainEnd::read(row, 1)).collect::<Result<Vec<ChainEnd>, _>>()?;
    let entries = ends.iter().map(|end| end.entries).sum();
    if entries == newest.entries && (entries == 0 || (!renews && key_id == keys.signing_id())) {
        return Ok(None);
    }
    if !adopts {
        check_ends(tx, [(SEALS, &newest, &row, 3)].into_iter())?;
        check_ends(tx, (0..).zip(&ends).zip(&rows).map(|((chain, end), row)| (chain, end, row, 4)))?;
    }
    if renews {
        for (chain, end) in (0..).zip(&ends).filter(|(_, end)| end.entries > 0) {
            tx.execute(MOVE, &end.values(tx, chain)).await?;
        }
    }
    // Entries that were written since a rotation have signed the ends already, so the seal tells whether there was one.
    if renews || key_id != keys.signing_id() {
        truncation::renew(tx, adopts).await?;
        people::renew(tx, adopts).await?;
    }
    let last = tx.first(LAST, &[]).await?;
    let number = last.map_or(Ok(0), |row| row.count(0))? + 1;
    let at = tx.now().as_microsecond().max(newest.at);
    let counts = encode(ends.iter().map(|end| end.entries));
    let root = chain::root((0..).zip(&ends).map(|(chain, end)| (chain, end.entries, end.head)));
    let sealed = Sealed { number: i64::try_from(number).unwrap_or(i64::MAX), at, counts: &counts, root };
    let head = sealed.sign(keys, &newest.head);
    let signer = keys.signing_id();
    tx.execute(INSERT, params![number, at, SqlValue::Blob(counts), chain::value(&head), signer]).await?;
    tx.execute(MOVE, &ChainEnd { entries, head, at }.values(tx, SEALS)).await?;
    shown(number, at, entries, &head, signer).map(Some)
}

/// Fails if the end of a chain that has entries is not signed with a configured key. The columns `key_id, mac` begin at the last number.
fn check_ends<'r>(
    tx: &Tx<'_>,
    ends: impl Iterator<Item = (u8, &'r ChainEnd, &'r Row, usize)>,
) -> Result<(), StoreError> {
    for (chain, end, row, column) in ends.filter(|(_, end, ..)| end.entries > 0) {
        let tenant = tx.tenant;
        match end.check(tx, chain, row, column)? {
            Trust::Trusted => {}
            Trust::Untrusted => {
                return Err(StoreError::Failed(format!(
                    "the audit trail of tenant `{tenant}` was not signed with a configured key and is not sealed: add the key it \
                     was signed with, or accept it with `baton audit sign --tenant {tenant}`"
                )));
            }
            Trust::Wrong => {
                return Err(StoreError::Corrupt(format!(
                    "the audit trail of tenant `{tenant}` was changed outside of Baton and is not sealed: run \
                     `baton audit verify --full --tenant {tenant}`"
                )));
            }
        }
    }
    Ok(())
}

/// Converts to the public type, with the hash in hex.
pub(super) fn shown(
    number: u64,
    at: i64,
    entries: u64,
    hash: &Hash,
    key_id: &str,
) -> Result<Seal, StoreError> {
    let wrong = |_| StoreError::Corrupt("the time of a seal is out of range".to_owned());
    let at = Timestamp::from_microsecond(at).map_err(wrong)?;
    let key_id = (!key_id.is_empty()).then(|| key_id.to_owned());
    Ok(Seal { number, at, entries, hash: chain::hex(hash), key_id })
}

/// Encodes as LEB128: seven bits per byte, lowest first; the upper bit is set on all bytes of a number except its last.
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

/// Decodes the number of entries of each chain that a seal covers. Returns `None` unless there is one number per chain.
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

/// Reads the columns `number, at, counts, hash, key_id`.
pub(super) fn read(row: &Row) -> Result<(i64, i64, &[u8], Hash, &str), StoreError> {
    Ok((row.int(0)?, row.int(1)?, row.blob(2)?, chain::hash_at(row, 3)?, row.text(4)?))
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
