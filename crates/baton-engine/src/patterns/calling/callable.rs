//! Whom an agent may have work for it.

use std::sync::Arc;

use baton_core::agent::{Agent, RoutingMode};
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::store::{StepKind, StepState};
use baton_core::tool::ToolError;
use serde_json::json;

use crate::bounds::Edge;
use crate::failure::Failure;
use crate::journal::Record;
use crate::patterns::handover::head;
use crate::scope::{DENIED, Scope};
use crate::task::DELEGATE;

/// Of a description, in characters.
const DESCRIPTION: usize = 300;

/// Those of the file's `agents` that may be called from here, in its order.
#[derive(Debug)]
pub(crate) struct Callable {
    agents: Vec<Arc<Agent>>,
}

impl Callable {
    /// Nobody, when the scope's agent may not call at all.
    pub(crate) fn of(scope: &Scope, edge: Edge) -> Self {
        let listed = if may_delegate(scope) { scope.agent.agents.as_slice() } else { &[] };
        let known = listed.iter().filter_map(|name| scope.run.agents.get(name));
        let admitted = known.filter(|agent| scope.admits(agent, edge).is_ok());
        Self { agents: admitted.cloned().collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.agents.iter().map(|agent| agent.name.as_str()).collect()
    }

    /// One line for each, for a model that has to choose.
    pub(crate) fn list(&self) -> String {
        let lines = self.agents.iter().map(|agent| {
            let words: Vec<&str> = agent.description.split_whitespace().collect();
            format!("- {}: {}", agent.name, head(&words.join(" "), DESCRIPTION))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The agent of this name, or who there is.
    pub(crate) fn find(&self, name: &str) -> Result<&Arc<Agent>, ToolError> {
        self.agents.iter().find(|agent| agent.name.as_str() == name).ok_or_else(|| {
            ToolError::InvalidArguments(format!(
                "there is no agent `{name}` that you may call; choose from {}",
                self.names().join(", ")
            ))
        })
    }
}

/// Whether the scope's agent may have others work for it at all. Everything that forbids delegation as such belongs here: today
/// the operator's switch, what the person may do, and that a pure router has destinations, not helpers.
fn may_delegate(scope: &Scope) -> bool {
    is_offered(scope) && scope.run.rights.allow(DELEGATE)
}

/// The same for somebody who may do everything.
fn is_offered(scope: &Scope) -> bool {
    let only_routes = scope.agent.router.as_ref().is_some_and(|router| router.mode == RoutingMode::Pure);
    !only_routes && scope.run.engine.parts.policy.agent_tool.is_on(&scope.run.caller.tenant)
}

/// Puts on record that an agent does without others because the person lacks the permission. Once in a run is enough: nobody in it
/// has it.
pub(crate) async fn mind_rights(scope: &Scope) -> Result<(), Failure> {
    let would_ask = !scope.agent.agents.is_empty() && is_offered(scope);
    if !would_ask || scope.run.rights.allow(DELEGATE) || !scope.run.deny() {
        return Ok(());
    }
    let text =
        format!("`{}` asks nobody: the person does not have the permission `{DELEGATE}`", scope.name());
    let record = Record {
        steps: vec![scope.at(DENIED).step(StepKind::Note, StepState::Finished, &json!({}))?],
        events: vec![scope.event_as(Visibility::Internal, EventKind::Status { text })],
        audit: vec![scope.denied(DELEGATE)],
        ..Record::default()
    };
    scope.run.journal.keep_soon(record).await;
    Ok(())
}
