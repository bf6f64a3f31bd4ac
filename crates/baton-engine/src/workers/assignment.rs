//! A claimed run on its way to the worker that executes it.

use std::sync::Arc;

use baton_core::store::{Append, Appended, Claimed, ThreadMessage};

use crate::engine::Request;
use crate::handoff::way::Begun;

#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) claimed: Claimed,
    /// Set if the run was claimed in the write that accepted it.
    pub(crate) accepted: Option<Box<AcceptedHere>>,
}

/// What is known of a run that this process has just accepted, so that nothing has to be read again.
#[derive(Debug)]
pub(crate) struct AcceptedHere {
    pub(crate) request: Request,
    /// The last messages of the thread.
    pub(crate) recent: Vec<ThreadMessage>,
    /// The first append, if it was written with the claim.
    pub(crate) appended: Option<(Arc<Append>, Appended)>,
    /// How the run begins, if that append says it.
    pub(crate) begun: Option<Begun>,
}

impl From<Claimed> for Assignment {
    fn from(claimed: Claimed) -> Self {
        Self { claimed, accepted: None }
    }
}
