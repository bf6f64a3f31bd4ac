//! The patterns by which agents work together. Each is a small file over [`crate::run`](mod@crate::run).
//!
//! - [`advisors`]: other agents look at the request before the agent does.
//! - [`calling`], [`delegation`]: other agents work for the agent, which keeps the baton.
//! - [`transfers`], [`router`]: the agent passes the baton on. [`chain`]: its file does.
//! - [`team`]: other agents discuss, and the agent coordinates.
//! - [`shared_history`]: what the receiver of the baton sees of earlier messages and work.
//! - [`read_thread`]: earlier messages of the thread.
//! - [`summary`]: shortens long texts.

use std::sync::Arc;

use crate::engine_tool::EngineTool;
use crate::handoff::finish;
use crate::input::Input;
use crate::scope::Scope;
use crate::trial;
use crate::workflow::advance;

pub(crate) mod advisors;
pub(crate) mod arguments;
pub(crate) mod calling;
pub(crate) mod chain;
pub(crate) mod delegation;
pub(crate) mod read_thread;
pub(crate) mod router;
pub(crate) mod shared_history;
pub(crate) mod summary;
pub(crate) mod team;
pub(crate) mod transfers;

/// The tools by which the agent invokes others, as its file defines them. Leaves out tools whose calls would be refused and those
/// that `disallowed_tools` names. `input` is the request without advice.
pub(crate) fn tools(scope: &Scope, input: &Input) -> Vec<Arc<dyn EngineTool>> {
    let notifier = Arc::default();
    let mut tools = calling::tools(scope, &notifier);
    tools.extend(delegation::tools(scope, &notifier));
    tools.extend(transfers::tools(scope, input));
    tools.extend(read_thread::tools(scope));
    tools.extend(trial::tools(scope));
    let denied = &scope.agent().tools.deny;
    tools.retain(|tool| !denied.iter().any(|pattern| pattern.matches(&tool.spec().name)));
    // `disallowed_tools` does not apply to these: a holder must be able to return the thread.
    tools.extend(finish::return_tools(scope));
    tools.extend(advance::tools(scope, input));
    tools.extend(input.engine_tools.iter().cloned());
    tools
}
