//! How far a workflow is: its state among all states, and the answers that it has.

use serde::{Deserialize, Serialize};

use super::{Machine, label};
use crate::agent::Workflow;
use crate::store::WorkflowState;

/// Progress of a workflow for the user: "Step 2 of 5 · Defining triggers · 4/6 answers".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowProgress {
    /// The state as the agent's file names it.
    pub state: String,
    /// Display name of the state.
    pub label: String,
    /// Number of the state, from 1.
    pub step: u32,
    /// Number of states.
    pub total: u32,
    /// Values that the workflow has so far: see [`Machine::answers`]. 0 in events of earlier versions.
    #[serde(default)]
    pub answered: u32,
    /// Values that it collects on its way to the end. 0 in events of earlier versions, and if it collects none.
    #[serde(default)]
    pub questions: u32,
}

impl WorkflowProgress {
    /// The progress of a workflow in a stored state. `None` if the file no longer has the state.
    pub fn of(workflow: &Workflow, kept: &WorkflowState) -> Option<Self> {
        let at = workflow.states.iter().position(|one| one.name.0 == kept.state)?;
        let (answered, questions) = Machine::read(workflow, Some(kept))?.answers();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Some(Self {
            state: kept.state.clone(),
            label: label(&kept.state),
            step: count(at + 1),
            total: count(workflow.states.len()),
            answered: count(answered),
            questions: count(questions),
        })
    }

    /// "4/6 answers"; `None` if the workflow collects nothing.
    pub fn answers(&self) -> Option<String> {
        (self.questions > 0).then(|| format!("{}/{} answers", self.answered, self.questions))
    }
}
