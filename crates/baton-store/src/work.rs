//! Who works on a thread, and what that work writes: [`claim`] and [`append`].

mod append;
mod claim;

use std::sync::Arc;
use std::time::Duration;

use baton_core::store::{Append, Beat, Claim, Claimed, Owner, Pending, Work};
use baton_core::{StoreError, ThreadId};
use jiff::Timestamp;

use crate::job::About;
use crate::tenant::Tenant;
use crate::tx::Tx;
use crate::value::{Row, params};

impl Work for Tenant {
    fn claim(&self, thread: ThreadId, owner: &Owner, lease: Duration) -> Pending<'_, Option<Claimed>> {
        self.write(About::Thread(thread), (thread, owner.clone(), lease), |tx, (thread, owner, lease)| {
            Box::pin(claim::claim(tx, *thread, owner, *lease))
        })
    }

    fn heartbeat(&self, claim: &Claim, lease: Duration) -> Pending<'_, Beat> {
        self.write(About::Thread(claim.thread_id), (claim.clone(), lease), |tx, (claim, lease)| {
            Box::pin(heartbeat(tx, claim, *lease))
        })
    }

    fn append(&self, claim: &Claim, append: Arc<Append>) -> Pending<'_, u64> {
        self.write(About::Thread(claim.thread_id), (claim.clone(), append), |tx, (claim, append)| {
            Box::pin(append::append(tx, claim, append))
        })
    }
}

const BEAT: &str = "
    UPDATE threads SET lease_until = $6
    WHERE tenant = $1 AND thread_id = $2 AND active_run = $3 AND owner = $4 AND epoch = $5";

async fn heartbeat(tx: &Tx<'_>, claim: &Claim, lease: Duration) -> Result<Beat, StoreError> {
    let Claim { thread_id, run_id, owner, epoch } = claim;
    let params = params![*thread_id, *run_id, &*owner.0, *epoch, until(tx, lease)];
    if tx.execute(BEAT, params).await? == 0 {
        return Err(StoreError::Fenced);
    }
    let sql = "SELECT cancel FROM runs WHERE tenant = $1 AND run_id = $2";
    let row = tx.first(sql, params![*run_id]).await?.ok_or(StoreError::Fenced)?;
    Ok(Beat { cancel: row.optional(0, Row::choice)? })
}

/// When a lease that begins now is over.
fn until(tx: &Tx<'_>, lease: Duration) -> Timestamp {
    tx.now().saturating_add(lease).unwrap_or(Timestamp::MAX)
}
