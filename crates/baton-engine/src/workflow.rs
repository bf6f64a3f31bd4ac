//! The states that a holder of a thread walks through. The engine owns them: they are kept after every change.
//!
//! - [`machine`]: where a walk stands and where it may go, without any effect. [`data`]: what is kept of it, [`value`]: what may be
//!   collected, [`refusal`]: what may not be done.
//! - [`walk`]: the same with its effects: states are kept and announced, [`entry_tool`] runs what they run on entry.
//! - [`advance`]: the tool by which a model walks; [`situation`]: what it is told. [`guide`]: the walk without a model.

use std::sync::Arc;

use baton_core::agent::{Agent, Workflow};
use baton_core::event::EventKind;
use baton_core::store::{HandoffSession, StepKind, WorkflowState};
use serde_json::{Map, Value};

use self::machine::{Machine, Waits};
use self::walk::{Optional, Walk};
use crate::failure::Failure;
use crate::patterns::handover::head;
use crate::scope::Scope;

pub(crate) mod advance;
pub(crate) mod data;
pub(crate) mod entry_tool;
pub(crate) mod guide;
pub(crate) mod machine;
pub(crate) mod refusal;
pub(crate) mod situation;
pub(crate) mod value;
pub(crate) mod walk;

/// Of a value in a summary, in characters.
const SHOWN: usize = 120;

/// Where a walk begins. What is known already, by the keys that are asked for, is not asked again.
pub(crate) fn begin(workflow: &Workflow, known: &Map<String, Value>) -> WorkflowState {
    let Some(mut machine) = Machine::read(workflow, None) else {
        return WorkflowState { state: String::new(), data: Value::Null };
    };
    // One by one: what does not fit is asked for.
    for (key, given) in known {
        if let Some(text) = value::text(given) {
            let _ = machine.take(&[(key.clone(), text)].into());
        }
    }
    machine.kept()
}

/// Whether there is nothing left to do.
pub(crate) fn is_done(agent: &Agent, state: &WorkflowState) -> bool {
    let machine = agent.workflow.as_ref().and_then(|workflow| Machine::read(workflow, Some(state)));
    machine.is_some_and(|machine| machine.waits() == Waits::Done)
}

/// How far it has come, for the person: step 2 of 5.
pub(crate) fn progress(agent: &Agent, state: &WorkflowState) -> Option<EventKind> {
    let states = &agent.workflow.as_ref()?.states;
    let at = states.iter().position(|one| one.name.0 == state.state)?;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let label = label(&state.state);
    Some(EventKind::Progress {
        state: state.state.clone(),
        label,
        step: count(at + 1),
        total: count(states.len()),
    })
}

/// `collect_details` is "Collect details" to people.
pub(crate) fn label(state: &str) -> String {
    let words = state.replace(['_', '-'], " ");
    let mut chars = words.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Whether the walk is made by rule, because there is no model that could make it.
pub(crate) fn is_guided(scope: &Scope) -> bool {
    scope.agent.workflow.is_some() && scope.run.engine.parts.models.is_stand_in(&scope.agent)
}

/// A holder whose state can go on without anybody does so before its model speaks: its tool runs, and the model knows what that brought.
pub(crate) async fn make_ready(scope: &Scope) -> Result<(), Failure> {
    let Some(lease) = &scope.lease else { return Ok(()) };
    let agent = Arc::clone(&scope.agent);
    // Once its model has spoken in this run, what there is to do is the model's.
    let turns = format!("{}/turn:", scope.path());
    if scope.run.steps.keys().any(|path| path.starts_with(&turns)) {
        return Ok(());
    }
    let place = scope.at("ready");
    let is_begun = place.interrupted::<Value>()?.is_some();
    let needs = |machine: Machine<'_>| matches!(machine.waits(), Waits::Tool(_) | Waits::Onward(_));
    if place.is_finished() || !(is_begun || situation::machine(scope, &agent).is_some_and(needs)) {
        return Ok(());
    }
    let Some(mut walk) = Walk::begin(place.clone(), lease, &agent).await? else { return Ok(()) };
    walk.onward(Optional::Left).await?;
    place.finish(StepKind::Note, &(), Vec::new(), Vec::new()).await
}

/// What was collected, in one sentence.
fn summary(machine: &Machine<'_>) -> Option<String> {
    let known = machine.keys().into_iter().filter_map(|key| {
        let text = machine.data.values.get(key)?.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(format!("{} {}", key.replace('_', " "), head(&text, SHOWN)))
    });
    let known: Vec<String> = known.collect();
    (!known.is_empty()).then(|| format!("All set: {}", known.join(", ")))
}

/// What came of a walk that is through, and what was made: the last word of its last tool, and what that calls by name.
pub(crate) fn result(agent: &Agent, handoff: &HandoffSession) -> (Option<String>, Vec<String>) {
    let workflow = agent.workflow.as_ref();
    let Some(machine) = workflow.and_then(|workflow| Machine::read(workflow, handoff.workflow.as_ref()))
    else {
        return (None, Vec::new());
    };
    let Some(ran) = machine.data.ran.get(machine.name()) else { return (summary(&machine), Vec::new()) };
    let summary = ran.text.lines().next().map(str::trim).filter(|line| !line.is_empty());
    let quoted = summary.unwrap_or_default().split('`').skip(1).step_by(2);
    let made = quoted.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    (summary.map(str::to_owned), made)
}
