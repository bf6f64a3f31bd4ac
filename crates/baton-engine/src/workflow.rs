//! Workflows: the states that the holder of a thread goes through. The engine stores them after every change.
//!
//! - [`walk`]: the state machine of [`baton_core::workflow`] with its effects: stores and publishes states. [`entry_tool`]: the
//!   tools that states run on entry.
//! - [`advance`]: the tool by which a model advances. [`view`]: what the model sees. [`guided`]: advances by rules.
//! - [`question`]: the question that a workflow waits with, as a request like an approval.
//! - [`extraction`]: records values for a model that does not use the tool. [`evidence`]: whether a message contains a value.
//!   [`reply`]: what the engine then says.

use std::sync::Arc;

use baton_core::agent::{Agent, Workflow};
use baton_core::store::{HandoffSession, StepKind, WorkflowState};
use baton_core::text::head;
use baton_core::workflow::{Machine, Waits, WorkflowGuide, value};
use serde_json::{Map, Value};

use self::walk::{OptionalSlots, WorkflowWalk};
use crate::failure::Failure;
use crate::scope::Scope;

pub(crate) mod advance;
pub(crate) mod entry_tool;
mod evidence;
pub(crate) mod extraction;
pub(crate) mod guided;
pub(crate) mod question;
mod reply;
pub(crate) mod view;
pub(crate) mod walk;

/// Characters of a value in a summary.
const MAX_SHOWN_CHARS: usize = 120;

/// The initial state of a workflow. Values that are already known are not asked for again.
pub(crate) fn begin(workflow: &Workflow, known: &Map<String, Value>) -> WorkflowState {
    let Some(mut machine) = Machine::read(workflow, None) else {
        return WorkflowState { state: String::new(), data: Value::Null };
    };
    // One by one: a value that is rejected is asked for.
    for (key, value) in known {
        if let Some(text) = value::text(value) {
            let _ = machine.take(&[(key.clone(), text)].into());
        }
    }
    machine.kept()
}

/// Whether the workflow is finished.
pub(crate) fn is_done(agent: &Agent, state: &WorkflowState) -> bool {
    let machine = agent.workflow.as_ref().and_then(|workflow| Machine::read(workflow, Some(state)));
    machine.is_some_and(|machine| machine.waits() == Waits::Done)
}

/// The rules that lead the user through the agent's workflow, if its model's provider has such rules.
pub(crate) fn guide(scope: &Scope) -> Option<Arc<dyn WorkflowGuide>> {
    scope.agent().workflow.as_ref()?;
    scope.models().guide(scope.agent())
}

/// Advances a holder's workflow as far as it can without input, before the model's first turn. The model then sees the results of
/// the tools that ran.
pub(crate) async fn run_automatic_steps(scope: &Scope) -> Result<(), Failure> {
    let Some(lease) = &scope.session.lease else { return Ok(()) };
    let agent = Arc::clone(scope.agent());
    // Once its model has taken a turn in this run, the model advances the workflow.
    let turns = format!("{}/turn:", scope.path());
    if scope.run.recorder.steps.keys().any(|path| path.starts_with(&turns)) {
        return Ok(());
    }
    let place = scope.at("ready");
    let is_begun = place.step().interrupted::<Value>()?.is_some();
    let needs = |machine: Machine<'_>| matches!(machine.waits(), Waits::Tool(_) | Waits::Onward(_));
    if place.step().is_finished() || !(is_begun || view::machine(scope, &agent).is_some_and(needs)) {
        return Ok(());
    }
    let Some(mut walk) = WorkflowWalk::begin(place.clone(), lease, &agent).await? else { return Ok(()) };
    walk.onward(OptionalSlots::Left).await?;
    place.step().finish(StepKind::Note, &(), Vec::new(), Vec::new()).await
}

/// The collected values in one sentence.
fn summary(machine: &Machine<'_>) -> Option<String> {
    let known = machine.keys().into_iter().filter_map(|key| {
        let text = machine.data.values.get(key)?.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(format!("{} {}", key.replace('_', " "), head(&text, MAX_SHOWN_CHARS)))
    });
    let known: Vec<String> = known.collect();
    (!known.is_empty()).then(|| format!("All set: {}", known.join(", ")))
}

/// The result of a finished workflow: the first line of its last tool's output or, without a tool, the collected values; and the
/// artifacts that the tool reported.
pub(crate) fn result(agent: &Agent, handoff: &HandoffSession) -> (Option<String>, Vec<String>) {
    let workflow = agent.workflow.as_ref();
    let Some(machine) = workflow.and_then(|workflow| Machine::read(workflow, handoff.workflow.as_ref()))
    else {
        return (None, Vec::new());
    };
    let Some(ran) = machine.data.ran.get(machine.name()) else { return (summary(&machine), Vec::new()) };
    let summary = ran.text.lines().next().map(str::trim).filter(|line| !line.is_empty());
    (summary.map(str::to_owned), ran.artifacts.clone())
}
