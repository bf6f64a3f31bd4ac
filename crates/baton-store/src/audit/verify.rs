//! Verifies the audit trail.
//!
//! Seals are read in order. For each seal the chains are walked up to the entries it covers, so every entry is read and hashed
//! once, and the hashes of all chains at that point must produce the hash of the seal. Entries after the last seal are compared
//! with the stored ends of the chains. At most [`PIECE`] rows of each chain are in memory.

use std::collections::VecDeque;

use baton_core::StoreError;
use baton_core::store::{AuditVerdict, Seal};

use super::chain::{self, CHAINS, Hash, Sealed};
use super::ends::{ChainEnd, SEALS};
use super::{seal, stored};
use crate::tx::Tx;
use crate::value::{Row, params};

/// Rows fetched per query.
const PIECE: u32 = 500;

const ENTRIES: &str = "SELECT number, at, entries, hash
    FROM audit
    WHERE tenant = $1 AND chain = $2 AND number > $3
    ORDER BY number
    LIMIT $4";

const SEALED: &str = "SELECT number, at, counts, hash
    FROM audit_seals
    WHERE tenant = $1 AND number > $2
    ORDER BY number
    LIMIT $3";

const ENDS: &str = "SELECT chain, entries, head, at FROM audit_chains WHERE tenant = $1 ORDER BY chain";

const STRAY: &str = "SELECT chain, number FROM audit WHERE tenant = $1 AND (chain < 0 OR chain > 15) LIMIT 1";

/// Why the walk stopped.
enum Stop {
    Broken(AuditVerdict),
    Failed(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

type Walked<T> = Result<T, Stop>;

/// Reads the whole trail in one transaction, from one snapshot.
pub(super) async fn verify(tx: &Tx<'_>) -> Result<AuditVerdict, StoreError> {
    match walk(tx).await {
        Ok(verdict) | Err(Stop::Broken(verdict)) => Ok(verdict),
        Err(Stop::Failed(error)) => Err(error),
    }
}

async fn walk(tx: &Tx<'_>) -> Walked<AuditVerdict> {
    let ends = ends(tx).await?;
    let mut chains: Vec<ChainWalk> = (0..CHAINS).map(|chain| ChainWalk::new(tx, chain)).collect();
    let newest = seals(tx, &mut chains, &ends[usize::from(SEALS)]).await?;
    for (chain, end) in chains.iter_mut().zip(&ends) {
        chain.finish(tx, end).await?;
    }
    if tx.first(STRAY, &[]).await?.is_some() {
        return Err(broken(None, 0, "there are entries in a chain that does not exist"));
    }
    let entries = chains.iter().map(|chain| chain.end.entries).sum();
    let head = if entries == 0 { String::new() } else { chain::hex(&root(&chains)) };
    Ok(AuditVerdict::Intact { entries, head, seal: newest })
}

/// Returns the stored ends of all chains, the chain of seals last. A tenant without rows has an empty trail.
async fn ends(tx: &Tx<'_>) -> Walked<Vec<ChainEnd>> {
    let rows = tx.query(ENDS, &[]).await?;
    if rows.is_empty() {
        let end = |chain| ChainEnd { entries: 0, head: chain::start(tx.tenant, chain), at: 0 };
        return Ok((0..=SEALS).map(end).collect());
    }
    let mut ends = Vec::with_capacity(rows.len());
    for chain in 0..=SEALS {
        let row = rows.get(usize::from(chain)).filter(|row| row.int(0) == Ok(chain.into()));
        let end = row.and_then(|row| ChainEnd::read(row, 1).ok());
        let reason = "the end of the chain is missing or cannot be read";
        ends.push(end.ok_or_else(|| broken_end(chain, 0, reason))?);
    }
    if rows.len() > ends.len() {
        return Err(broken(None, 0, "there is the end of a chain that does not exist"));
    }
    Ok(ends)
}

/// Walks the chains from seal to seal. Returns the newest seal.
async fn seals(tx: &Tx<'_>, chains: &mut [ChainWalk], end: &ChainEnd) -> Walked<Option<Seal>> {
    let (mut last, mut newest) = (ChainWalk::new(tx, SEALS).end, None);
    let mut number = 0;
    loop {
        let after = if number == 0 { i64::MIN } else { number };
        let rows = tx.query(SEALED, params![after, PIECE]).await?;
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            number += 1;
            last = next_seal(tx, chains, &last, number, row).await?;
            let shown = seal::shown(number.unsigned_abs(), last.at, last.entries, &last.head);
            newest = Some(shown.map_err(|_| unreadable_seal(number))?);
        }
    }
    if last != *end {
        return Err(broken(None, number, "the newest seal is not the one that was kept with the chains"));
    }
    Ok(newest)
}

/// Verifies one seal, and the entries it covers beyond the previous seal.
async fn next_seal(
    tx: &Tx<'_>,
    chains: &mut [ChainWalk],
    before: &ChainEnd,
    number: i64,
    row: &Row,
) -> Walked<ChainEnd> {
    let (found, at, counts, hash) = seal::read(row).map_err(|_| unreadable_seal(number))?;
    if found != number {
        return Err(broken(None, number, "the seal is missing"));
    }
    let covered = seal::decode(counts).ok_or_else(|| unreadable_seal(number))?;
    for (chain, entries) in chains.iter_mut().zip(covered) {
        if entries < chain.end.entries {
            return Err(broken(None, number, "the seal covers less than the one before"));
        }
        chain.advance(tx, entries).await?;
    }
    let sealed = Sealed { number, at, counts, root: root(chains) };
    let head = chain::seal(&before.head, &sealed);
    if head != hash {
        return Err(broken(None, number, "the seal or what it covers is not as it was written"));
    }
    Ok(ChainEnd { entries: covered.iter().sum(), head, at })
}

fn root(chains: &[ChainWalk]) -> Hash {
    chain::root(chains.iter().map(|chain| (chain.chain, chain.end.entries, chain.end.head)))
}

/// A walk along one chain.
struct ChainWalk {
    chain: u8,
    /// Current position.
    end: ChainEnd,
    /// Prefetched rows.
    rows: VecDeque<Row>,
}

impl ChainWalk {
    fn new(tx: &Tx<'_>, chain: u8) -> Self {
        let end = ChainEnd { entries: 0, head: chain::start(tx.tenant, chain), at: 0 };
        Self { chain, end, rows: VecDeque::new() }
    }

    /// Walks until `entries` entries of the chain have been verified.
    async fn advance(&mut self, tx: &Tx<'_>, entries: u64) -> Walked<()> {
        while self.end.entries < entries {
            let row = self.next(tx).await?;
            self.step(row.as_ref())?;
        }
        Ok(())
    }

    /// Walks to the stored end, and fails if there are entries after it.
    async fn finish(&mut self, tx: &Tx<'_>, end: &ChainEnd) -> Walked<()> {
        self.advance(tx, end.entries).await?;
        if self.end != *end {
            let reason = "the last entry is not the one that was kept as the end of the chain";
            return Err(broken_end(self.chain, self.end.entries, reason));
        }
        match self.next(tx).await? {
            Some(_) => {
                let reason = "there are entries after the end of the chain";
                Err(broken_end(self.chain, self.end.entries + 1, reason))
            }
            None => Ok(()),
        }
    }

    async fn next(&mut self, tx: &Tx<'_>) -> Walked<Option<Row>> {
        if self.rows.is_empty() {
            // The first page starts at `i64::MIN`, so that entries with invalid numbers below 1 are found too.
            let after = match self.end.entries {
                0 => i64::MIN,
                entries => i64::try_from(entries).unwrap_or(i64::MAX),
            };
            let chain = u32::from(self.chain);
            self.rows = tx.query(ENTRIES, params![chain, after, PIECE]).await?.into();
        }
        Ok(self.rows.pop_front())
    }

    /// Verifies one row. What is wrong with it is reported for its first entry.
    fn step(&mut self, row: Option<&Row>) -> Walked<()> {
        let (chain, number) = (self.chain, self.end.entries + 1);
        let fault = |reason| broken_end(chain, number, reason);
        let row = row.ok_or_else(|| fault("the entry is missing"))?;
        if row.count(0).is_ok_and(|last| last < number) {
            return Err(fault("the entry is missing"));
        }
        let unreadable = |_| fault("the entry cannot be read");
        let entries = stored::entries(self.end.head, row, 0).map_err(unreadable)?;
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return Err(fault("the entry is missing"));
        };
        if first.number != number {
            return Err(fault("the entry is missing"));
        }
        if last.hash != chain::hash_at(row, 3).map_err(unreadable)? {
            let reason =
                "the entry, one that was written with it, their time or their hash is not as it was written";
            return Err(fault(reason));
        }
        self.end = ChainEnd { entries: last.number, head: last.hash, at: row.int(1).map_err(unreadable)? };
        Ok(())
    }
}

fn unreadable_seal(number: i64) -> Stop {
    broken(None, number, "the seal cannot be read")
}

/// A broken entry or chain end. `chain` is `None` for the chain of seals.
fn broken_end(chain: u8, number: u64, reason: &str) -> Stop {
    let chain = (chain != SEALS).then_some(chain);
    Stop::Broken(AuditVerdict::Broken { chain, number, reason: reason.to_owned() })
}

fn broken(chain: Option<u8>, number: i64, reason: &str) -> Stop {
    let number = u64::try_from(number).unwrap_or_default();
    Stop::Broken(AuditVerdict::Broken { chain, number, reason: reason.to_owned() })
}
