//! Where the last successful verification of a trail ended. Signed, so that a forged checkpoint does not hide a change.

use baton_core::StoreError;
use baton_core::store::Seal;

use super::chain::{self, CHAINS, Hash};
use super::ends::{ChainEnd, SEALS};
use super::keys::Trust;
use super::seal;
use crate::tx::Tx;
use crate::value::{SqlValue, params};

/// Bytes of a chain's end: entries, time and hash.
const END_BYTES: usize = 8 + 8 + 32;

/// The ends of all chains at a seal.
#[derive(Clone)]
pub(super) struct Checkpoint {
    /// The number of the seal; 0 before the first.
    pub(super) seal: i64,
    /// The end of the chain of seals there.
    pub(super) newest: ChainEnd,
    pub(super) chains: Vec<ChainEnd>,
}

const LOAD: &str = "SELECT seal, state, key_id, mac FROM audit_checkpoints WHERE tenant = $1";

/// A slow verification does not replace the result of a later one.
const STORE: &str = "
    INSERT INTO audit_checkpoints (tenant, seal, state, key_id, mac) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant) DO UPDATE
    SET seal = excluded.seal, state = excluded.state, key_id = excluded.key_id, mac = excluded.mac
    WHERE audit_checkpoints.seal <= excluded.seal OR audit_checkpoints.key_id <> excluded.key_id";

const HASH: &str = "SELECT hash FROM audit_seals WHERE tenant = $1 AND number = $2";

const SIGNER: &str = "SELECT key_id FROM audit_seals WHERE tenant = $1 AND number = $2";

impl Checkpoint {
    /// The beginning of a trail.
    pub(super) fn start(tenant: &str) -> Self {
        let chains = (0..CHAINS).map(|chain| ChainEnd::start(tenant, chain)).collect();
        Self { seal: 0, newest: ChainEnd::start(tenant, SEALS), chains }
    }

    /// Returns the stored checkpoint, or `None` if there is none that a configured key has signed.
    pub(super) async fn load(tx: &Tx<'_>) -> Result<Option<Self>, StoreError> {
        let Some(row) = tx.first(LOAD, &[]).await? else { return Ok(None) };
        let (seal, state, mac) = (row.int(0)?, row.blob(1)?, chain::hash_at(&row, 3)?);
        let number = seal.to_be_bytes();
        let parts: [&[u8]; 3] = [&number, state, tx.tenant.as_bytes()];
        let is_trusted = tx.shared.audit_keys.check(row.text(2)?, b'c', &parts, &mac) == Trust::Trusted;
        Ok(Self::decode(seal, state).filter(|checkpoint| is_trusted && checkpoint.seal > 0))
    }

    pub(super) async fn store(&self, tx: &Tx<'_>) -> Result<(), StoreError> {
        let (state, number, keys) = (self.encode(), self.seal.to_be_bytes(), &tx.shared.audit_keys);
        let parts: [&[u8]; 3] = [&number, &state, tx.tenant.as_bytes()];
        let mac = chain::value(&keys.sign(b'c', &parts));
        tx.execute(STORE, params![self.seal, SqlValue::Blob(state), keys.signing_id(), mac]).await.map(drop)
    }

    /// Whether its seal is still in the trail.
    pub(super) async fn is_kept(&self, tx: &Tx<'_>) -> Result<bool, StoreError> {
        let row = tx.first(HASH, params![self.seal]).await?;
        row.map_or(Ok(false), |row| Ok(chain::hash_at(&row, 0)? == self.newest.head))
    }

    /// The seal, if there is one.
    pub(super) async fn shown(&self, tx: &Tx<'_>) -> Result<Option<Seal>, StoreError> {
        if self.seal == 0 {
            return Ok(None);
        }
        let row = tx.first(SIGNER, params![self.seal]).await?;
        let key_id = row.as_ref().map_or(Ok(""), |row| row.text(0))?;
        let ChainEnd { entries, head, at } = &self.newest;
        seal::shown(self.seal.unsigned_abs(), *at, *entries, head, key_id).map(Some)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity((usize::from(CHAINS) + 1) * END_BYTES);
        for ChainEnd { entries, head, at } in self.chains.iter().chain([&self.newest]) {
            bytes.extend_from_slice(&entries.to_be_bytes());
            bytes.extend_from_slice(&at.to_be_bytes());
            bytes.extend_from_slice(head);
        }
        bytes
    }

    pub(super) fn decode(seal: i64, state: &[u8]) -> Option<Self> {
        let end = |bytes: &[u8]| {
            let (entries, rest) = bytes.split_first_chunk::<8>()?;
            let (at, head) = rest.split_first_chunk::<8>()?;
            let head = Hash::try_from(head).ok()?;
            Some(ChainEnd { entries: u64::from_be_bytes(*entries), head, at: i64::from_be_bytes(*at) })
        };
        let mut chains = state.chunks(END_BYTES).map(end).collect::<Option<Vec<ChainEnd>>>()?;
        let newest = chains.pop()?;
        (seal >= 0 && chains.len() == usize::from(CHAINS)).then_some(Self { seal, newest, chains })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_read_back() {
        let mut checkpoint = Checkpoint::start("acme");
        checkpoint.chains[3].entries = 7;
        checkpoint.newest.at = -5;
        let bytes = checkpoint.encode();
        let read = Checkpoint::decode(4, &bytes).unwrap();
        assert_eq!((read.seal, read.newest, read.chains), (4, checkpoint.newest, checkpoint.chains));
        assert!(Checkpoint::decode(4, &bytes[1..]).is_none() && Checkpoint::decode(-1, &bytes).is_none());
    }
}
