//! The ends of a tenant's chains: the hash and count that the next entry of each chain continues from.

use std::collections::BTreeMap;

use baton_core::StoreError;

use super::chain::{self, CHAINS, Hash};
use super::keys::Trust;
use crate::tx::{Tx, TxConnection};
use crate::value::{Row, SqlValue, params, row_values};

/// The row of `audit_chains` that holds the end of the chain of seals.
pub(super) const SEALS: u8 = CHAINS;

/// The last position of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChainEnd {
    pub(super) entries: u64,
    pub(super) head: Hash,
    pub(super) at: i64,
}

impl ChainEnd {
    /// The end of an empty chain.
    pub(super) fn start(tenant: &str, chain: u8) -> Self {
        Self { entries: 0, head: chain::start(tenant, chain), at: 0 }
    }

    /// Reads the columns `entries, head, at`, starting at `column`.
    pub(super) fn read(row: &Row, column: usize) -> Result<Self, StoreError> {
        let head = chain::hash_at(row, column + 1)?;
        Ok(Self { entries: row.count(column)?, head, at: row.int(column + 2)? })
    }

    /// The parameters of [`MOVE`]: the end and its signature.
    pub(super) fn values(&self, tx: &Tx<'_>, chain: u8) -> Vec<SqlValue> {
        let keys = &tx.shared.audit_keys;
        let mac = self.signed(tx.tenant, chain, |parts| keys.sign(b'm', parts));
        let (head, mac) = (chain::value(&self.head), chain::value(&mac));
        row_values![u32::from(chain), self.entries, head, self.at, keys.signing_id(), mac]
    }

    /// Checks the columns `key_id, mac`, starting at `column`. Ends of stores that are older than signatures have none.
    pub(super) fn check(
        &self,
        tx: &Tx<'_>,
        chain: u8,
        row: &Row,
        column: usize,
    ) -> Result<Trust, StoreError> {
        let key_id = row.text(column)?;
        let Some(mac) = row.optional(column + 1, chain::hash_at)? else {
            let is_enough = tx.shared.audit_keys.is_empty() && key_id.is_empty();
            return Ok(if is_enough { Trust::Trusted } else { Trust::Untrusted });
        };
        let keys = &tx.shared.audit_keys;
        Ok(self.signed(tx.tenant, chain, |parts| keys.check(key_id, b'm', parts, &mac)))
    }

    fn signed<T>(&self, tenant: &str, chain: u8, sign: impl FnOnce(&[&[u8]]) -> T) -> T {
        let (entries, at) = (self.entries.to_be_bytes(), self.at.to_be_bytes());
        sign(&[&[chain], &entries, &at, &self.head, tenant.as_bytes()])
    }
}

/// The end of a chain that is locked for appending.
pub(super) struct LockedEnd {
    pub(super) end: ChainEnd,
    /// The columns `key_id, mac` that the end keeps if its signature cannot be relied on.
    kept: Option<(String, SqlValue)>,
}

impl LockedEnd {
    /// Reads the columns `chain, entries, head, at, key_id, mac`.
    ///
    /// Entries are appended also after an end that configured keys have not signed: refusing them would end all runs of the tenant.
    /// The new end is not signed then, because its signature would vouch for what was written around Baton. So the sealer, which
    /// checks all ends, logs within a second why it does not seal the trail, and verification reports it until it is accepted with
    /// `baton audit sign`.
    fn read(tx: &Tx<'_>, chain: u8, row: &Row) -> Result<Self, StoreError> {
        let end = ChainEnd::read(row, 1)?;
        let trust = if end.entries == 0 { Trust::Trusted } else { end.check(tx, chain, row, 4)? };
        let mac = match trust {
            Trust::Trusted => return Ok(Self { end, kept: None }),
            Trust::Untrusted => SqlValue::Null,
            // It is not the signature of the new end either.
            Trust::Wrong => row.optional(5, chain::hash_at)?.map_or(SqlValue::Null, |mac| chain::value(&mac)),
        };
        let key_id = row.text(4)?.to_owned();
        Ok(Self { end, kept: Some((key_id, mac)) })
    }

    /// The parameters of [`MOVE`].
    pub(super) fn values(&self, tx: &Tx<'_>, chain: u8) -> Vec<SqlValue> {
        let mut values = self.end.values(tx, chain);
        if let Some((key_id, mac)) = &self.kept {
            values.truncate(4);
            values.extend([SqlValue::from(key_id.as_str()), mac.clone()]);
        }
        values
    }
}

/// A statement that locks the rows it reads. SQLite has a single writer and needs no lock.
pub(super) struct Locking {
    pub(super) sqlite: &'static str,
    pub(super) postgres: &'static str,
}

impl Locking {
    pub(super) fn sql(&self, tx: &Tx<'_>) -> &'static str {
        match tx.link {
            TxConnection::Sqlite(_) => self.sqlite,
            TxConnection::Postgres(_) => self.postgres,
        }
    }
}

/// Selects the chains whose bits are set in `$2`. PostgreSQL locks after sorting, so all transactions lock in the same order.
macro_rules! of_chains {
    ($lock:literal) => {
        concat!(
            "SELECT chain, entries, head, at, key_id, mac
            FROM audit_chains
            WHERE tenant = $1 AND (CAST($2 AS BIGINT) >> CAST(chain AS INTEGER)) % 2 = 1
            ORDER BY chain",
            $lock
        )
    };
}

const LOCK: Locking = Locking { sqlite: of_chains!(""), postgres: of_chains!(" FOR NO KEY UPDATE") };

/// Inserts all rows in one statement, so that a tenant has either none or all of them.
const CREATE: &str = "
    INSERT INTO audit_chains (tenant, chain, entries, head, at)
    VALUES ($1, 0, 0, $2, 0), ($1, 1, 0, $3, 0), ($1, 2, 0, $4, 0), ($1, 3, 0, $5, 0), ($1, 4, 0, $6, 0),
        ($1, 5, 0, $7, 0), ($1, 6, 0, $8, 0), ($1, 7, 0, $9, 0), ($1, 8, 0, $10, 0), ($1, 9, 0, $11, 0),
        ($1, 10, 0, $12, 0), ($1, 11, 0, $13, 0), ($1, 12, 0, $14, 0), ($1, 13, 0, $15, 0), ($1, 14, 0, $16, 0),
        ($1, 15, 0, $17, 0), ($1, 16, 0, $18, 0)
    ON CONFLICT (tenant, chain) DO NOTHING";

pub(super) const MOVE: &str = "UPDATE audit_chains SET entries = $3, head = $4, at = $5, key_id = $6, mac = $7 WHERE tenant = $1 AND chain = $2";

/// Locks chains until the transaction ends, and returns their ends. Creates the chains of a new tenant.
pub(super) async fn lock(
    tx: &Tx<'_>,
    chains: impl Iterator<Item = u8>,
) -> Result<BTreeMap<u8, LockedEnd>, StoreError> {
    let wanted = chains.fold(0_u64, |bits, chain| bits | 1 << chain);
    for is_new in [false, true] {
        if is_new {
            create(tx).await?;
        }
        let rows = tx.query(LOCK.sql(tx), params![wanted]).await?;
        if rows.len() == wanted.count_ones() as usize {
            rows.iter().try_for_each(|row| refuse_weaker(tx, row.text(4)?))?;
            let read = |row: &Row| {
                let chain = chain_at(row, 0)?;
                Ok((chain, LockedEnd::read(tx, chain, row)?))
            };
            return rows.iter().map(read).collect();
        }
    }
    Err(StoreError::Corrupt("the end of an audit chain is missing".to_owned()))
}

/// A process without a key must not continue a signed trail: the trail could not be verified any more.
pub(super) fn refuse_weaker(tx: &Tx<'_>, key_id: &str) -> Result<(), StoreError> {
    if key_id.is_empty() || !tx.shared.audit_keys.is_empty() {
        return Ok(());
    }
    Err(StoreError::Failed(format!(
        "the audit trail of tenant `{}` is signed with key {key_id}: set BATON_AUDIT_KEY or BATON_AUDIT_KEY_FILE",
        tx.tenant
    )))
}

async fn create(tx: &Tx<'_>) -> Result<(), StoreError> {
    crate::closing::know_tenant(tx).await?;
    let starts: Vec<SqlValue> =
        (0..=SEALS).map(|chain| chain::value(&chain::start(tx.tenant, chain))).collect();
    tx.execute(CREATE, &starts).await.map(drop)
}

pub(super) fn chain_at(row: &Row, at: usize) -> Result<u8, StoreError> {
    let wrong = |_| StoreError::Corrupt("there is no audit chain of this number".to_owned());
    u8::try_from(row.int(at)?).map_err(wrong)
}
