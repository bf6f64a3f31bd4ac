//! Retention of the trail: its oldest entries are removed, up to a seal.
//!
//! A signed record says where the trail begins: the ends of all chains and the number and hash of the last seal that was removed.
//! Verification continues from it, so that everything after it is still bound to what was removed, and any other removal is found.
//! Entries are removed in batches. Each verifies what it removes, moves the record and adds an entry to the trail, in one transaction.

use std::collections::BTreeSet;

use baton_core::store::{AuditEntry, AuditTruncation, micros};
use baton_core::{StoreError, ThreadId};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::chain::{self, CHAINS};
use super::checkpoint::Checkpoint;
use super::ends::Locking;
use super::keys::Trust;
use super::seal::{self, NEWEST};
use super::verify::{ChainWalk, SEALED, Stop, Walked, broken, check_seal, root, unreadable_seal};
use super::{entry, find};
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params};

/// Entries and seals that one transaction removes; a row may exceed it.
const BATCH: u32 = 1000;

/// The record of what was removed.
pub(super) struct Truncation {
    /// Where the trail begins. Between two batches, the chains may be ahead of the seal.
    pub(super) start: Checkpoint,
    at: i64,
    pub(super) trust: Trust,
    key_id: String,
}

const LOAD: &str = "SELECT seal, at, state, key_id, mac FROM audit_truncations WHERE tenant = $1";

const STORE: &str = "
    INSERT INTO audit_truncations (tenant, seal, at, state, key_id, mac) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (tenant) DO UPDATE
    SET seal = excluded.seal, at = excluded.at, state = excluded.state, key_id = excluded.key_id, mac = excluded.mac";

impl Truncation {
    /// Returns the record, or `None` if nothing was removed. One that cannot be read is not trusted.
    pub(super) async fn load(tx: &Tx<'_>) -> Result<Option<Self>, StoreError> {
        let Some(row) = tx.first(LOAD, &[]).await? else { return Ok(None) };
        let (seal, at, state, key_id) = (row.int(0)?, row.int(1)?, row.blob(2)?, row.text(3)?);
        let read = Checkpoint::decode(seal, state).zip(chain::hash_at(&row, 4).ok());
        let Some((start, mac)) = read else {
            let start = Checkpoint::start(tx.tenant);
            return Ok(Some(Self { start, at, trust: Trust::Wrong, key_id: String::new() }));
        };
        let trust =
            signed(tx.tenant, &start, at, |parts| tx.shared.audit_keys.check(key_id, b't', parts, &mac));
        Ok(Some(Self { start, at, trust, key_id: key_id.to_owned() }))
    }

    /// The beginning of a trail of which configured keys say that it was truncated, or its first entry.
    pub(super) async fn start(tx: &Tx<'_>) -> Result<Checkpoint, StoreError> {
        let trusted = Self::load(tx).await?.filter(|record| record.trust == Trust::Trusted);
        Ok(trusted.map_or_else(|| Checkpoint::start(tx.tenant), |record| record.start))
    }

    pub(super) fn shown(&self) -> Result<AuditTruncation, StoreError> {
        let wrong = |_| StoreError::Corrupt("the time of a truncation is out of range".to_owned());
        let at = Timestamp::from_microsecond(self.at).map_err(wrong)?;
        let entries = self.start.chains.iter().map(|end| end.entries).sum();
        Ok(AuditTruncation { seal: self.start.seal.unsigned_abs(), entries, at })
    }

    /// Fails if there are entries or seals that the record says were removed: they are not part of the trail.
    pub(super) async fn check_removed(&self, tx: &Tx<'_>) -> Walked<()> {
        for (chain, end) in (0..CHAINS).zip(&self.start.chains) {
            let last = i64::try_from(end.entries).unwrap_or(i64::MAX);
            let row = tx.first(ENTRY_BELOW, params![u32::from(chain), last]).await?;
            if let Some(row) = row.filter(|_| end.entries > 0) {
                let number = row.int(0).unwrap_or_default();
                return Err(broken(Some(chain), number, "the entry was removed before and is there again"));
            }
        }
        match tx.first(SEAL_BELOW, params![self.start.seal]).await? {
            Some(row) => {
                let number = row.int(0).unwrap_or_default();
                Err(broken(None, number, "the seal was removed before and is there again"))
            }
            None => Ok(()),
        }
    }
}

const ENTRY_BELOW: &str =
    "SELECT number FROM audit WHERE tenant = $1 AND chain = $2 AND number <= $3 ORDER BY number LIMIT 1";

const SEAL_BELOW: &str =
    "SELECT number FROM audit_seals WHERE tenant = $1 AND number <= $2 ORDER BY number LIMIT 1";

fn signed<T>(tenant: &str, start: &Checkpoint, at: i64, sign: impl FnOnce(&[&[u8]]) -> T) -> T {
    let state = start.encode();
    sign(&[&start.seal.to_be_bytes(), &at.to_be_bytes(), &state, tenant.as_bytes()])
}

async fn store(tx: &Tx<'_>, start: &Checkpoint, at: i64) -> Result<(), StoreError> {
    let keys = &tx.shared.audit_keys;
    let mac = signed(tx.tenant, start, at, |parts| keys.sign(b't', parts));
    let (state, mac) = (SqlValue::Blob(start.encode()), chain::value(&mac));
    tx.execute(STORE, params![start.seal, at, state, keys.signing_id(), mac]).await.map(drop)
}

/// Signs the record with the current key, so that the one before can be removed. `adopts` accepts a record that no configured key has
/// signed.
pub(super) async fn renew(tx: &Tx<'_>, adopts: bool) -> Result<(), StoreError> {
    let Some(record) = Truncation::load(tx).await? else { return Ok(()) };
    let is_accepted = match record.trust {
        Trust::Trusted => true,
        Trust::Untrusted => adopts,
        Trust::Wrong => false,
    };
    if is_accepted && record.key_id != tx.shared.audit_keys.signing_id() {
        store(tx, &record.start, record.at).await?;
    }
    Ok(())
}

const NEWEST_SEAL: &str = "SELECT coalesce(max(number), 0) FROM audit_seals WHERE tenant = $1";

/// Verifies the entries that seals before a time cover, and returns the last of those seals. `None` if there is nothing to remove. The
/// newest seal stays, whatever its time.
pub(crate) async fn expired(tx: &Tx<'_>, before: Timestamp) -> Result<Option<u64>, StoreError> {
    refused(tx, find_expired(tx, before).await)
}

async fn find_expired(tx: &Tx<'_>, before: Timestamp) -> Walked<Option<u64>> {
    let start = trusted_start(tx).await?;
    let newest = newest_seal(tx).await?;
    let mut walk = TruncationWalk::from(&start);
    let (mut expired, mut is_signed) = (None, false);
    // Seals of keys that are not configured any more are vouched for by a later one, so the walk ends at a trusted one.
    while let Some(row) = walk.next_seal(tx).await? {
        let is_expired = walk.number + 1 < newest && row.int(1).is_ok_and(|at| at < micros(before));
        if !is_expired && (expired.is_none() || is_signed) {
            return Ok(expired);
        }
        let mut unlimited = u32::MAX;
        is_signed = walk.pass(tx, &row, &mut unlimited).await? == Some(Trust::Trusted);
        if is_expired {
            expired = Some(walk.number.unsigned_abs());
        }
    }
    match expired {
        Some(number) if !is_signed => {
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            Err(broken(None, number, "no configured key has signed the seals"))
        }
        expired => Ok(expired),
    }
}

/// Removes a batch of entries and seals, up to this seal at most. Returns whether there are more.
pub(crate) async fn remove_batch(tx: &Tx<'_>, before: Timestamp, last: u64) -> Result<bool, StoreError> {
    // Locked, so that the second of two processes sees what the first one has removed.
    tx.first(NEWEST.sql(tx), &[]).await?;
    let old = refused(tx, trusted_start(tx).await)?;
    let last = i64::try_from(last).unwrap_or(i64::MAX).min(refused(tx, newest_seal(tx).await)? - 1);
    let mut walk = TruncationWalk { found: Some(Names::default()), ..TruncationWalk::from(&old) };
    let mut budget = BATCH;
    while walk.number < last && budget > 0 {
        let Some(row) = refused(tx, walk.next_seal(tx).await)? else { break };
        refused(tx, walk.pass(tx, &row, &mut budget).await)?;
        budget = budget.saturating_sub(1);
    }
    let is_more = walk.number < last;
    let TruncationWalk { chains, number, newest, found, latest, .. } = walk;
    let root = chain::hex(&root(&chains));
    let start =
        Checkpoint { seal: number, newest, chains: chains.into_iter().map(|walk| walk.end).collect() };
    let removed: u64 = start.chains.iter().zip(&old.chains).map(|(new, old)| new.entries - old.entries).sum();
    if removed == 0 && start.seal == old.seal {
        return Ok(false);
    }
    for (chain, (new, old)) in (0_u32..).zip(start.chains.iter().zip(&old.chains)) {
        if new.entries > old.entries {
            tx.first(REMOVE.sql(tx), params![chain, new.entries]).await?;
        }
    }
    if start.seal > old.seal {
        tx.first(REMOVE_SEALS.sql(tx), params![start.seal]).await?;
    }
    found.unwrap_or_default().remove(tx, latest).await?;
    store(tx, &start, micros(tx.now())).await?;
    let total: u64 = start.chains.iter().map(|end| end.entries).sum();
    let detail = json!({
        "before": before, "entries": removed, "entries_in_total": total, "root": root, "seal": start.seal,
        "seal_hash": chain::hex(&start.newest.head)
    });
    tx.audit(&AuditEntry { detail, ..entry("system", "audit.truncate", "removed") })?;
    Ok(is_more)
}

/// The role of the server may not delete rows of these tables in PostgreSQL; these functions remove what the record allows.
const REMOVE: Locking = Locking {
    sqlite: "DELETE FROM audit WHERE tenant = $1 AND chain = $2 AND number <= $3",
    postgres: "SELECT audit_remove($1, $2, $3)",
};

const REMOVE_SEALS: Locking = Locking {
    sqlite: "DELETE FROM audit_seals WHERE tenant = $1 AND number <= $2",
    postgres: "SELECT audit_remove_seals($1, $2)",
};

/// What has no entry any more. Rows of other chains with the same name may be newer.
const REMOVE_NAME: Locking = Locking {
    sqlite: "DELETE FROM audit_names WHERE tenant = $1 AND name = $2 AND at <= $3
        AND NOT EXISTS (
            SELECT 1 FROM audit AS a
            WHERE a.tenant = $1 AND a.chain = audit_names.chain AND a.number = audit_names.number)",
    postgres: "SELECT audit_remove_name($1, $2, $3)",
};

const REMOVE_THREAD: &str = "DELETE FROM audit_threads WHERE tenant = $1 AND thread_number = $2 AND at <= $3
    AND NOT EXISTS (
        SELECT 1 FROM audit AS a
        WHERE a.tenant = $1 AND a.chain = audit_threads.chain AND a.number = audit_threads.number)";

async fn newest_seal(tx: &Tx<'_>) -> Walked<i64> {
    let row = tx.first(NEWEST_SEAL, &[]).await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))?)
}

async fn trusted_start(tx: &Tx<'_>) -> Walked<Checkpoint> {
    match Truncation::load(tx).await? {
        None => Ok(Checkpoint::start(tx.tenant)),
        Some(record) if record.trust == Trust::Trusted => Ok(record.start),
        Some(record) => Err(broken(None, record.start.seal, NOT_SIGNED)),
    }
}

/// Why a record is not accepted.
pub(super) const NOT_SIGNED: &str = "the record of removed entries is not signed with a configured key";

/// What was changed is kept as evidence.
fn refused<T>(tx: &Tx<'_>, walked: Walked<T>) -> Result<T, StoreError> {
    let tenant = tx.tenant;
    walked.map_err(|stop| match stop {
        Stop::Failed(error) => error,
        Stop::Broken(verdict) => StoreError::Corrupt(format!(
            "the audit trail of tenant `{tenant}` was changed outside of Baton, or is not signed, and nothing of it is removed: run \
             `baton audit verify --full --tenant {tenant}` ({verdict:?})"
        )),
    })
}

/// A walk from the beginning of a trail, seal by seal.
struct TruncationWalk {
    chains: Vec<ChainWalk>,
    /// The last seal that was passed.
    number: i64,
    newest: super::ends::ChainEnd,
    seals: std::collections::VecDeque<Row>,
    /// Collected for a removal.
    found: Option<Names>,
    /// The newest time of the rows that were passed.
    latest: i64,
}

impl TruncationWalk {
    fn from(start: &Checkpoint) -> Self {
        let chains = (0..CHAINS).zip(&start.chains).map(|(chain, end)| ChainWalk::from(chain, end.clone()));
        Self {
            chains: chains.collect(),
            number: start.seal,
            newest: start.newest.clone(),
            seals: std::collections::VecDeque::new(),
            found: None,
            latest: i64::MIN,
        }
    }

    /// The next seal, which stays the next one until it is passed.
    async fn next_seal(&mut self, tx: &Tx<'_>) -> Walked<Option<Row>> {
        if self.seals.is_empty() {
            let after = if self.number == 0 { i64::MIN } else { self.number };
            self.seals = tx.query(SEALED, params![after, BATCH]).await?.into();
        }
        Ok(self.seals.front().cloned())
    }

    /// Walks the entries of a seal, until `budget` is used up. Returns the trust in the seal if it was passed.
    async fn pass(&mut self, tx: &Tx<'_>, row: &Row, budget: &mut u32) -> Walked<Option<Trust>> {
        let number = self.number + 1;
        let counts = row.blob(2).map_err(|_| unreadable_seal(number))?;
        let covered = seal::decode(counts).ok_or_else(|| unreadable_seal(number))?;
        for (chain, entries) in self.chains.iter_mut().zip(covered) {
            while chain.end.entries < entries {
                if *budget == 0 {
                    return Ok(None);
                }
                let before = chain.end.entries;
                let row = chain.next(tx).await?;
                chain.step(row.as_ref())?;
                let walked = u32::try_from(chain.end.entries - before).unwrap_or(u32::MAX);
                *budget = budget.saturating_sub(walked);
                self.latest = self.latest.max(chain.end.at);
                if let Some((found, row)) = self.found.as_mut().zip(row) {
                    found.add(row.text(2)?);
                }
            }
        }
        let (end, trust) = check_seal(tx, &self.chains, &self.newest, number, row)?;
        (self.number, self.newest) = (number, end);
        self.seals.pop_front();
        Ok(Some(trust))
    }
}

/// By what removed entries are found.
#[derive(Default)]
struct Names {
    names: BTreeSet<String>,
    threads: BTreeSet<ThreadId>,
}

#[derive(Deserialize)]
struct NamesOfLine {
    actor: String,
    action: String,
    thread_id: Option<ThreadId>,
}

impl Names {
    fn add(&mut self, lines: &str) {
        // What cannot be read has no rows under its names.
        for line in lines.lines().filter_map(|line| serde_json::from_str::<NamesOfLine>(line).ok()) {
            self.names.insert(find::actor(&line.actor));
            self.names.extend(find::action(&line.action));
            self.names.extend(line.thread_id.map(find::thread));
            self.threads.extend(line.thread_id);
        }
    }

    /// Removes the rows by which the entries were found.
    async fn remove(self, tx: &Tx<'_>, latest: i64) -> Result<(), StoreError> {
        for name in self.names {
            tx.first(REMOVE_NAME.sql(tx), params![name, latest]).await?;
        }
        for thread in self.threads {
            if let Some(number) = find::number_of(tx, thread).await? {
                tx.execute(REMOVE_THREAD, params![number, latest]).await?;
            }
        }
        Ok(())
    }
}
