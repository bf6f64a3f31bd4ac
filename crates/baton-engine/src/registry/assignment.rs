//! A claimed run, as it is passed to the worker that executes it.

use std::sync::Arc;

use baton_core::store::{Append, Appended, Claimed, ThreadMessage};

use crate::request::StoredRequest;
use crate::routing::RoutingDecision;

/// A claimed run for a worker to execute.
#[derive(Debug)]
pub(crate) struct Assignment {
    /// Boxed, because the worker and every future on the way hold it.
    pub(crate) claimed: Box<Claimed>,
    /// Set if the write that accepted the run also claimed it.
    pub(crate) accepted: Option<Box<AcceptedHere>>,
}

/// What this process knows of a run that it has just accepted, so that nothing is read again.
#[derive(Debug)]
pub(crate) struct AcceptedHere {
    pub(crate) request: StoredRequest,
    /// The most recent messages of the thread.
    pub(crate) recent: Vec<ThreadMessage>,
    /// The first append, if it was written with the claim.
    pub(crate) appended: Option<(Arc<Append>, Appended)>,
    /// The route of the run, if that append contains it.
    pub(crate) routing: Option<RoutingDecision>,
}

impl From<Box<Claimed>> for Assignment {
    fn from(claimed: Box<Claimed>) -> Self {
        Self { claimed, accepted: None }
    }
}
