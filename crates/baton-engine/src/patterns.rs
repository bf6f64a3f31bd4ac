//! How agents work with each other. Each pattern is a small file over one `run`.
//!
//! - [`advisors`]: others look at the request before the agent does.
//! - [`calling`], [`delegation`]: others work for the agent, which keeps the baton.
//! - [`transfers`], [`router`]: the agent passes the baton on. [`chain`]: its file does. [`hops`]: every pass is remembered.
//! - [`team`]: others discuss, the agent coordinates.
//! - [`fence`], [`handover`]: what others get to see, and how it is kept apart from instructions. [`past`]: what
//!   whoever gets the baton sees of what was said and done before.
//! - [`reading`]: what was said earlier in the thread.
//! - [`summary`]: long texts made short.

use std::sync::Arc;

use crate::given::Given;
use crate::handoff::returning;
use crate::run::Input;
use crate::scope::Scope;
use crate::workflow::advance;

pub(crate) mod advisors;
pub(crate) mod calling;
pub(crate) mod chain;
pub(crate) mod delegation;
pub(crate) mod fence;
pub(crate) mod handover;
pub(crate) mod hops;
pub(crate) mod past;
pub(crate) mod reading;
pub(crate) mod router;
pub(crate) mod summary;
pub(crate) mod team;
pub(crate) mod transfers;

/// The tools that the agent's file gives it for working with others. What would be refused anyway is not offered, nor
/// what its `disallowed_tools` name. `input` is what
/// the agent was asked, without advice.
pub(crate) fn tools(scope: &Scope, input: &Input) -> Vec<Arc<dyn Given>> {
    let voice = Arc::default();
    let mut tools = calling::tools(scope, &voice);
    tools.extend(delegation::tools(scope, &voice));
    tools.extend(transfers::tools(scope, input));
    tools.extend(reading::tools(scope));
    let denied = &scope.agent.tools.deny;
    tools.retain(|tool| !denied.iter().any(|pattern| pattern.matches(&tool.spec().name)));
    // Nobody can be kept from giving back what is not theirs.
    tools.extend(returning::tools(scope));
    tools.extend(advance::tools(scope));
    tools.extend(scope.given.iter().cloned());
    tools
}
