//! Agents on other servers. [`session`] takes the place of [`crate::session`] for them, so that they work in every pattern.
//!
//! - [`session`]: messages to a remote agent and its replies, until there is an answer.
//! - [`exchange`]: one message and its reply. The id of the remote task is stored before its result is awaited: after a crash the
//!   same task is followed, and not requested again. A message whose outcome is unknown is sent again with the same id.
//! - [`publish`]: the text of a reply as listeners see it. [`billing`]: its row in the ledger.
//! - [`message`]: what is sent. [`context`]: which conversation of the remote agent continues a thread.
//! - [`handoff`]: a remote agent is offered a thread, holds it and returns it.

pub(crate) mod billing;
pub(crate) mod context;
pub(crate) mod exchange;
pub(crate) mod handoff;
mod message;
mod publish;
pub(crate) mod session;

use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::remote::RemoteAgent;

use crate::extensions::Extensions;
use crate::failure::Failure;

/// The connection to a remote agent.
pub(crate) fn connect(extensions: &Extensions, agent: &Agent) -> Result<Arc<dyn RemoteAgent>, Failure> {
    let Some(remotes) = &extensions.remotes else { return Err(Failure::Unavailable(agent.name.clone())) };
    remotes.connect(agent).map_err(|error| Failure::Remote { agent: agent.name.clone(), error })
}
