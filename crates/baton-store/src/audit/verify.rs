//! Verifies the audit trail.
//!
//! Seals are read in order. For each seal the chains are walked up to the entries it covers, so every entry is read and hashed
//! once, and the hashes of all chains at that point must produce the hash of the seal. Entries after the last seal are compared
//! with the stored and signed ends of the chains. At most [`PIECE`] rows of each chain are in memory.
//!
//! Seals that were signed with a key that is not configured any more are accepted if a later one, which covers them, was signed with a
//! configured key.

use std::collections::VecDeque;

use baton_core::StoreError;
use baton_core::store::{AuditScope, AuditVerdict, Seal};

use super::chain::{self, CHAINS, Hash, Sealed};
use super::checkpoint::Checkpoint;
use super::ends::{ChainEnd, SEALS};
use super::keys::Trust;
use super::truncation::{NOT_SIGNED, Truncation};
use super::{people, seal, stored};
use crate::tx::Tx;
use crate::value::{Row, params};

/// Rows fetched per query.
const PIECE: u32 = 500;

const ENTRIES: &str = "SELECT number, at, entries, hash
    FROM audit
    WHERE tenant = $1 AND chain = $2 AND number > $3
    ORDER BY number
    LIMIT $4";

pub(super) const SEALED: &str = "SELECT number, at, counts, hash, key_id
    FROM audit_seals
    WHERE tenant = $1 AND number > $2
    ORDER BY number
    LIMIT $3";

const ENDS: &str =
    "SELECT chain, entries, head, at, key_id, mac FROM audit_chains WHERE tenant = $1 ORDER BY chain";

const STRAY: &str = "SELECT chain, number FROM audit WHERE tenant = $1 AND (chain < 0 OR chain > 15) LIMIT 1";

/// Why the walk stopped.
pub(super) enum Stop {
    Broken(AuditVerdict),
    Failed(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

pub(super) type Walked<T> = Result<T, Stop>;

/// Reads the trail in one transaction, from one snapshot. Returns where it ended if the trail is intact.
pub(super) async fn verify(tx: &Tx<'_>, scope: AuditScope) -> Result<Reached, StoreError> {
    let checkpoint = Checkpoint::load(tx).await?;
    outcome(walk(tx, checkpoint, scope, SignedBy::ConfiguredKeys).await)
}

/// Reads the whole trail without regard to the keys that have signed it.
pub(super) async fn verify_unsigned(tx: &Tx<'_>) -> Result<AuditVerdict, StoreError> {
    outcome(walk(tx, None, AuditScope::Full, SignedBy::Anything).await).map(|(verdict, _)| verdict)
}

type Reached = (AuditVerdict, Option<Checkpoint>);

fn outcome(walked: Walked<Reached>) -> Result<Reached, StoreError> {
    match walked {
        Ok(reached) => Ok(reached),
        Err(Stop::Broken(verdict)) => Ok((verdict, None)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Which signatures are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignedBy {
    /// The newest seals and the ends after them; older seals until the first one of a configured key may have others.
    ConfiguredKeys,
    Anything,
}

/// A full walk reads the trail from its beginning, or from where it was truncated, and compares it with the checkpoint: what was verified before must still be there.
async fn walk(
    tx: &Tx<'_>,
    checkpoint: Option<Checkpoint>,
    scope: AuditScope,
    by: SignedBy,
) -> Walked<Reached> {
    let ends = ends(tx).await?;
    let truncation = truncation(tx, by).await?;
    let start =
        truncation.as_ref().map_or_else(|| Checkpoint::start(tx.tenant), |record| record.start.clone());
    let is_incremental = scope == AuditScope::Incremental;
    let from = checkpoint.clone().filter(|from| is_incremental && from.seal > start.seal);
    let since_seal = from.as_ref().map(|from| from.seal.unsigned_abs());
    // A checkpoint was signed after everything up to it was verified.
    let is_signed = from.is_some();
    let from = from.unwrap_or_else(|| start.clone());
    let mut chains: Vec<ChainWalk> =
        (0..CHAINS).zip(&from.chains).map(|(chain, end)| ChainWalk::from(chain, end.clone())).collect();
    let Seals { newest, unsigned, reached } =
        seals(tx, &mut chains, &from, is_signed, &ends[usize::from(SEALS)], by).await?;
    if let Some(checkpoint) = checkpoint.filter(|checkpoint| checkpoint.seal > start.seal)
        && !checkpoint.is_kept(tx).await?
    {
        return Err(broken(None, checkpoint.seal, "the seal that was verified before is missing"));
    }
    let newest = match newest {
        None => from.shown(tx).await?,
        newest => newest,
    };
    for (chain, end) in chains.iter_mut().zip(&ends) {
        chain.finish(tx, end, by).await?;
    }
    if tx.first(STRAY, &[]).await?.is_some() {
        return Err(broken(None, 0, "there are entries in a chain that does not exist"));
    }
    if let Some(token) = people::find_changed(tx, by == SignedBy::ConfiguredKeys).await? {
        let reason =
            format!("the name behind {token} is not as it was written, or not signed with a configured key");
        return Err(broken(None, 0, &reason));
    }
    let entries = chains.iter().map(|chain| chain.end.entries).sum();
    let head = if entries == 0 { String::new() } else { chain::hex(&root(&chains)) };
    let reached = (reached.seal > from.seal).then_some(reached);
    let truncation = truncation.map(|record| record.shown()).transpose()?;
    let verdict = AuditVerdict::Intact {
        entries,
        head,
        seal: newest,
        since_seal,
        unsigned_seals: unsigned,
        truncation,
    };
    Ok((verdict, reached))
}

/// The record of what was removed, which must be signed, after a check that nothing of it is there.
async fn truncation(tx: &Tx<'_>, by: SignedBy) -> Walked<Option<Truncation>> {
    let Some(record) = Truncation::load(tx).await? else { return Ok(None) };
    let is_accepted = match record.trust {
        Trust::Trusted => true,
        Trust::Untrusted => by == SignedBy::Anything,
        Trust::Wrong => false,
    };
    if !is_accepted {
        return Err(broken(None, record.start.seal, NOT_SIGNED));
    }
    record.check_removed(tx).await?;
    Ok(Some(record))
}

/// The stored end of a chain, and whether its signature can be relied on.
struct StoredEnd {
    end: ChainEnd,
    trust: Trust,
}

impl StoredEnd {
    /// Fails if the chain has entries and its end is not signed: otherwise a trail could be cut off after any entry or seal. `number`
    /// is the last of them.
    #[expect(clippy::result_large_err, reason = "there is at most one error per verification")]
    fn must_be_signed(&self, chain: u8, number: u64, by: SignedBy) -> Walked<()> {
        if self.end.entries == 0 || self.trust == Trust::Trusted || by == SignedBy::Anything {
            return Ok(());
        }
        Err(broken_end(chain, number, "the end of the chain is not signed with a configured key"))
    }
}

/// Returns the stored ends of all chains, the chain of seals last. A tenant without rows has an empty trail.
async fn ends(tx: &Tx<'_>) -> Walked<Vec<StoredEnd>> {
    let rows = tx.query(ENDS, &[]).await?;
    if rows.is_empty() {
        let end = |chain| StoredEnd { end: ChainEnd::start(tx.tenant, chain), trust: Trust::Trusted };
        return Ok((0..=SEALS).map(end).collect());
    }
    let mut ends = Vec::with_capacity(rows.len());
    for chain in 0..=SEALS {
        let row = rows.get(usize::from(chain)).filter(|row| row.int(0) == Ok(chain.into()));
        let end = row.and_then(|row| {
            let end = ChainEnd::read(row, 1).ok()?;
            let trust = end.check(tx, chain, row, 4).ok()?;
            Some(StoredEnd { end, trust })
        });
        let reason = "the end of the chain is missing or cannot be read";
        ends.push(end.ok_or_else(|| broken_end(chain, 0, reason))?);
    }
    if rows.len() > ends.len() {
        return Err(broken(None, 0, "there is the end of a chain that does not exist"));
    }
    Ok(ends)
}

/// The result of walking the seals.
struct Seals {
    newest: Option<Seal>,
    /// The number of seals before the first one of a configured key.
    unsigned: u64,
    reached: Checkpoint,
}

/// Walks the chains from seal to seal. After the first seal of a configured key, all others must be signed with one: otherwise
/// entries could be appended around Baton with a made-up key.
async fn seals(
    tx: &Tx<'_>,
    chains: &mut [ChainWalk],
    from: &Checkpoint,
    mut is_signed: bool,
    stored: &StoredEnd,
    by: SignedBy,
) -> Walked<Seals> {
    let (mut last, mut newest, mut unsigned) = (from.newest.clone(), None, 0);
    let mut number = from.seal;
    loop {
        let after = if number == 0 { i64::MIN } else { number };
        let rows = tx.query(SEALED, params![after, PIECE]).await?;
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            number += 1;
            let (end, trust) = next_seal(tx, chains, &last, number, row).await?;
            let key_id = row.text(4).map_err(|_| unreadable_seal(number))?;
            if is_signed && trust != Trust::Trusted && by == SignedBy::ConfiguredKeys {
                return Err(broken(None, number, &untrusted(key_id)));
            }
            is_signed |= trust == Trust::Trusted;
            unsigned += u64::from(!is_signed);
            last = end;
            let shown = seal::shown(number.unsigned_abs(), last.at, last.entries, &last.head, key_id);
            newest = Some(shown.map_err(|_| unreadable_seal(number))?);
        }
    }
    if last != stored.end {
        return Err(broken(None, number, "the newest seal is not the one that was kept with the chains"));
    }
    if number > 0 && !is_signed && by == SignedBy::ConfiguredKeys {
        let key_id = newest.as_ref().and_then(|seal: &Seal| seal.key_id.as_deref()).unwrap_or_default();
        return Err(broken(None, number, &untrusted(key_id)));
    }
    stored.must_be_signed(SEALS, number.unsigned_abs(), by)?;
    let chains = chains.iter().map(|chain| chain.end.clone()).collect();
    Ok(Seals { newest, unsigned, reached: Checkpoint { seal: number, newest: last, chains } })
}

/// Why a signature is not accepted.
fn untrusted(key_id: &str) -> String {
    match key_id {
        "" => "the seal is not signed with a key, although one is configured".to_owned(),
        id => format!("the seal is signed with key {id}, which is not configured in BATON_AUDIT_KEY"),
    }
}

/// Verifies one seal, and the entries it covers beyond the previous seal.
async fn next_seal(
    tx: &Tx<'_>,
    chains: &mut [ChainWalk],
    before: &ChainEnd,
    number: i64,
    row: &Row,
) -> Walked<(ChainEnd, Trust)> {
    let (found, _, counts, ..) = seal::read(row).map_err(|_| unreadable_seal(number))?;
    if found != number {
        return Err(broken(None, number, "the seal is missing"));
    }
    let covered = seal::decode(counts).ok_or_else(|| unreadable_seal(number))?;
    for (chain, entries) in chains.iter_mut().zip(covered) {
        chain.advance(tx, entries).await?;
    }
    check_seal(tx, chains, before, number, row)
}

/// Checks that a seal is the next one and covers exactly the entries up to the positions of the chains.
#[expect(clippy::result_large_err, reason = "there is at most one error per verification")]
pub(super) fn check_seal(
    tx: &Tx<'_>,
    chains: &[ChainWalk],
    before: &ChainEnd,
    number: i64,
    row: &Row,
) -> Walked<(ChainEnd, Trust)> {
    let (found, at, counts, hash, key_id) = seal::read(row).map_err(|_| unreadable_seal(number))?;
    if found != number {
        return Err(broken(None, number, "the seal is missing"));
    }
    let covered = seal::decode(counts).ok_or_else(|| unreadable_seal(number))?;
    if chains.iter().zip(covered).any(|(chain, entries)| entries < chain.end.entries) {
        return Err(broken(None, number, "the seal covers less than the one before"));
    }
    let sealed = Sealed { number, at, counts, root: root(chains) };
    let trust = sealed.check(&tx.shared.audit_keys, key_id, &before.head, &hash);
    if trust == Trust::Wrong {
        return Err(broken(None, number, "the seal or what it covers is not as it was written"));
    }
    Ok((ChainEnd { entries: covered.iter().sum(), head: hash, at }, trust))
}

pub(super) fn root(chains: &[ChainWalk]) -> Hash {
    chain::root(chains.iter().map(|chain| (chain.chain, chain.end.entries, chain.end.head)))
}

/// A walk along one chain.
pub(super) struct ChainWalk {
    chain: u8,
    /// Current position.
    pub(super) end: ChainEnd,
    /// Prefetched rows.
    rows: VecDeque<Row>,
}

impl ChainWalk {
    pub(super) fn from(chain: u8, end: ChainEnd) -> Self {
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

    /// Walks from the newest seal to the stored end, which must be signed, and fails if there are entries after it.
    async fn finish(&mut self, tx: &Tx<'_>, stored: &StoredEnd, by: SignedBy) -> Walked<()> {
        let end = &stored.end;
        self.advance(tx, end.entries).await?;
        if self.end != *end {
            let reason = "the last entry is not the one that was kept as the end of the chain";
            return Err(broken_end(self.chain, self.end.entries, reason));
        }
        stored.must_be_signed(self.chain, self.end.entries, by)?;
        match self.next(tx).await? {
            Some(_) => {
                let reason = "there are entries after the end of the chain";
                Err(broken_end(self.chain, self.end.entries + 1, reason))
            }
            None => Ok(()),
        }
    }

    pub(super) async fn next(&mut self, tx: &Tx<'_>) -> Walked<Option<Row>> {
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
    #[expect(clippy::result_large_err, reason = "there is at most one error per verification")]
    pub(super) fn step(&mut self, row: Option<&Row>) -> Walked<()> {
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

pub(super) fn unreadable_seal(number: i64) -> Stop {
    broken(None, number, "the seal cannot be read")
}

/// A broken entry or chain end. `chain` is `None` for the chain of seals.
fn broken_end(chain: u8, number: u64, reason: &str) -> Stop {
    let chain = (chain != SEALS).then_some(chain);
    Stop::Broken(AuditVerdict::Broken { chain, number, reason: reason.to_owned() })
}

pub(super) fn broken(chain: Option<u8>, number: i64, reason: &str) -> Stop {
    let number = u64::try_from(number).unwrap_or_default();
    Stop::Broken(AuditVerdict::Broken { chain, number, reason: reason.to_owned() })
}
