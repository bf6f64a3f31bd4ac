//! Work of a process on a thread: [`claim`] acquires it, [`append`] writes its results. [`start`] does both for a new message.
//! [`park`] puts a run aside until a decision.

mod append;
mod claim;
pub(crate) mod park;
mod start;

pub(crate) use append::{Numbers, records};

use std::sync::Arc;

use baton_core::ThreadId;
use baton_core::store::{
    AcceptedRun, Append, Appended, Claim, Claimed, NewRun, Owner, Pending, RunStart, StartedRun, Work,
};

use crate::job::JobSubject;
use crate::tenant::Tenant;

impl Work for Tenant {
    fn start(&self, run: NewRun, start: RunStart) -> Pending<'_, (AcceptedRun, Option<StartedRun>)> {
        self.write(JobSubject::Thread(run.thread_id), (run, start), |tx, (run, start)| {
            Box::pin(start::start(tx, run, start))
        })
    }

    fn claim(&self, thread: ThreadId, owner: &Owner) -> Pending<'_, Option<Claimed>> {
        self.write(JobSubject::Thread(thread), (thread, owner.clone()), |tx, (thread, owner)| {
            Box::pin(claim::claim(tx, *thread, owner, false))
        })
    }

    fn claim_again(&self, thread: ThreadId, owner: &Owner) -> Pending<'_, Option<Claimed>> {
        self.write(JobSubject::Thread(thread), (thread, owner.clone()), |tx, (thread, owner)| {
            Box::pin(claim::claim(tx, *thread, owner, true))
        })
    }

    fn abandon(&self, claim: &Claim) -> Pending<'_, ()> {
        self.write(JobSubject::Thread(claim.thread_id), claim.clone(), |tx, claim| {
            Box::pin(claim::abandon(tx, claim))
        })
    }

    fn append(&self, claim: &Claim, append: Arc<Append>) -> Pending<'_, Appended> {
        self.write(JobSubject::Thread(claim.thread_id), (claim.clone(), append), |tx, (claim, append)| {
            Box::pin(append::append(tx, claim, append))
        })
    }
}
