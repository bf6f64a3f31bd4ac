//! The ends of a tenant's chains: the hash and count that the next entry of each chain continues from.

use std::collections::BTreeMap;

use baton_core::StoreError;

use super::chain::{self, CHAINS, Hash};
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
    /// Reads the columns `entries, head, at`, starting at `column`.
    pub(super) fn read(row: &Row, column: usize) -> Result<Self, StoreError> {
        let head = chain::hash_at(row, column + 1)?;
        Ok(Self { entries: row.count(column)?, head, at: row.int(column + 2)? })
    }

    /// The parameters of [`MOVE`].
    pub(super) fn values(&self, chain: u8) -> Vec<SqlValue> {
        row_values![u32::from(chain), self.entries, chain::value(&self.head), self.at]
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
            "SELECT chain, entries, head, at
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

pub(super) const MOVE: &str =
    "UPDATE audit_chains SET entries = $3, head = $4, at = $5 WHERE tenant = $1 AND chain = $2";

/// Locks chains until the transaction ends, and returns their ends. Creates the chains of a new tenant.
pub(super) async fn lock(
    tx: &Tx<'_>,
    chains: impl Iterator<Item = u8>,
) -> Result<BTreeMap<u8, ChainEnd>, StoreError> {
    let wanted = chains.fold(0_u64, |bits, chain| bits | 1 << chain);
    for is_new in [false, true] {
        if is_new {
            create(tx).await?;
        }
        let rows = tx.query(LOCK.sql(tx), params![wanted]).await?;
        if rows.len() == wanted.count_ones() as usize {
            return rows.iter().map(|row| Ok((chain_at(row, 0)?, ChainEnd::read(row, 1)?))).collect();
        }
    }
    Err(StoreError::Corrupt("the end of an audit chain is missing".to_owned()))
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
