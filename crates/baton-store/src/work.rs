//! Which process works on a thread, and what that work writes: [`claim`] and [`append`]. [`start`] does both for a message that
//! comes in.

mod append;
mod claim;
mod start;

use std::sync::Arc;

use baton_core::ThreadId;
use baton_core::store::{
    Accepted, Append, Appended, Claim, Claimed, NewRun, Owner, Pending, RunStart, Started, Work,
};

use crate::job::About;
use crate::tenant::Tenant;

impl Work for Tenant {
    fn start(&self, run: NewRun, start: RunStart) -> Pending<'_, (Accepted, Option<Started>)> {
        self.write(About::Thread(run.thread_id), (run, start), |tx, (run, start)| {
            Box::pin(start::start(tx, run, start))
        })
    }

    fn claim(&self, thread: ThreadId, owner: &Owner) -> Pending<'_, Option<Claimed>> {
        self.write(About::Thread(thread), (thread, owner.clone()), |tx, (thread, owner)| {
            Box::pin(claim::claim(tx, *thread, owner, false))
        })
    }

    fn claim_again(&self, thread: ThreadId, owner: &Owner) -> Pending<'_, Option<Claimed>> {
        self.write(About::Thread(thread), (thread, owner.clone()), |tx, (thread, owner)| {
            Box::pin(claim::claim(tx, *thread, owner, true))
        })
    }

    fn abandon(&self, claim: &Claim) -> Pending<'_, ()> {
        self.write(About::Thread(claim.thread_id), claim.clone(), |tx, claim| {
            Box::pin(claim::abandon(tx, claim))
        })
    }

    fn append(&self, claim: &Claim, append: Arc<Append>) -> Pending<'_, Appended> {
        self.write(About::Thread(claim.thread_id), (claim.clone(), append), |tx, (claim, append)| {
            Box::pin(append::append(tx, claim, append))
        })
    }
}
