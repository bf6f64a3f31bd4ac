//! Assigns entries to chains, and computes the hashes of entries and seals.
//!
//! Every hash is SHA-256, and every signature HMAC-SHA-256 ([`super::keys`]), over a tag byte followed by parts that are of fixed
//! length or length-prefixed, so different inputs never serialize to the same bytes.

use baton_core::hash::fnv1a_64;
use baton_core::{StoreError, ThreadId};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use super::keys::{AuditKeys, Trust};
use crate::value::{Row, SqlValue};

/// Number of chains of a tenant.
pub(crate) const CHAINS: u8 = 16;

pub(super) type Hash = [u8; 32];

/// Returns the chain of a thread's entries: FNV-1a over the id, multiplied so that every byte affects the upper four bits. The
/// function must never change.
pub(crate) fn chain_of(thread: Option<ThreadId>) -> u8 {
    let Some(thread) = thread else { return 0 };
    let hash = fnv1a_64(thread.as_uuid().as_bytes());
    (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as u8
}

/// A seal as it is stored, with the Merkle root that it covers.
pub(super) struct Sealed<'a> {
    pub(super) number: i64,
    pub(super) at: i64,
    pub(super) counts: &'a [u8],
    pub(super) root: Hash,
}

/// Initial hash of a chain. It covers the tenant and the chain number, so a chain cannot be moved to another tenant or
/// position.
pub(super) fn start(tenant: &str, chain: u8) -> Hash {
    digest(b's', &[&[chain], tenant.as_bytes()])
}

/// Hash of an entry, which is a line of JSON, chained to the hash of the previous one.
pub(super) fn link(before: &Hash, number: u64, at: i64, line: &str) -> Hash {
    digest(b'e', &[before, &number.to_be_bytes(), &at.to_be_bytes(), line.as_bytes()])
}

/// Merkle root over the ends of all chains, in chain order.
pub(super) fn root(ends: impl Iterator<Item = (u8, u64, Hash)>) -> Hash {
    let leaf = |(chain, entries, head): (u8, u64, Hash)| {
        let parts: [&[u8]; 3] = [&[chain], &entries.to_be_bytes(), &head];
        digest(b'l', &parts)
    };
    let mut level: Vec<Hash> = ends.map(leaf).collect();
    while level.len() > 1 {
        level = level.chunks(2).map(|pair| digest(b'n', &[&pair.concat()])).collect();
    }
    level.first().copied().unwrap_or_default()
}

impl Sealed<'_> {
    /// Signs a seal, chained to the previous one.
    pub(super) fn sign(&self, keys: &AuditKeys, before: &Hash) -> Hash {
        let (number, at) = (self.number.to_be_bytes(), self.at.to_be_bytes());
        keys.sign(b'r', &[before, &number, &at, &self.root, self.counts])
    }

    pub(super) fn check(&self, keys: &AuditKeys, key_id: &str, before: &Hash, hash: &Hash) -> Trust {
        let (number, at) = (self.number.to_be_bytes(), self.at.to_be_bytes());
        keys.check(key_id, b'r', &[before, &number, &at, &self.root, self.counts], hash)
    }
}

fn digest(kind: u8, parts: &[&[u8]]) -> Hash {
    let mut hash = Sha256::new_with_prefix([kind]);
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

pub(super) fn hex(hash: &[u8]) -> String {
    HEXLOWER.encode(hash)
}

/// Reads a 32-byte hash from a column.
pub(super) fn hash_at(row: &Row, at: usize) -> Result<Hash, StoreError> {
    let wrong = |_| StoreError::Corrupt("a hash of the audit trail does not have 32 bytes".to_owned());
    Hash::try_from(row.blob(at)?).map_err(wrong)
}

pub(super) fn value(hash: &Hash) -> SqlValue {
    SqlValue::Blob(hash.to_vec())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn thread(bytes: u128) -> ThreadId {
        let id = uuid::Builder::from_random_bytes(bytes.to_be_bytes()).into_uuid();
        ThreadId::parse(&id.to_string()).unwrap()
    }

    #[test]
    fn threads_are_spread_over_all_chains() {
        let random = |number: u128| thread(number.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834));
        for id in [thread, random] {
            let mut counts = [0; CHAINS as usize];
            for number in 0..16_000 {
                counts[usize::from(chain_of(Some(id(number))))] += 1;
            }
            assert!(counts.iter().all(|count| (700..1300).contains(count)), "{counts:?}");
        }
    }

    /// A different function would move the entries of stored threads to other chains.
    #[test]
    fn the_chain_of_a_thread_never_changes() {
        let chain = |id| chain_of(Some(ThreadId::parse(id).unwrap()));
        assert_eq!(chain("550e8400-e29b-41d4-a716-446655440000"), 10);
        assert_eq!(chain("550e8400-e29b-41d4-a716-446655440001"), 12);
        assert_eq!(chain_of(None), 0);
    }

    #[test]
    fn every_part_of_an_entry_changes_its_hash() {
        let hashes = [
            link(&start("acme", 1), 1, 1, "{}"),
            link(&start("acme", 1), 2, 1, "{}"),
            link(&start("acme", 1), 1, 2, "{}"),
            link(&start("acme", 1), 1, 1, "[]"),
            link(&start("acme", 2), 1, 1, "{}"),
            link(&start("rival", 1), 1, 1, "{}"),
        ];
        assert_eq!(hashes.iter().collect::<BTreeSet<_>>().len(), hashes.len());
    }

    #[test]
    fn every_chain_changes_the_root() {
        let ends = |changed: u8| {
            let end = |chain| (chain, 7 + u64::from(chain == changed), start("acme", chain));
            root((0..CHAINS).map(end))
        };
        let roots: BTreeSet<Hash> = (0..=CHAINS).map(ends).collect();
        assert_eq!(roots.len(), usize::from(CHAINS) + 1);
    }
}
