//! How far a workflow is: its state among all states, and the answers that it has.

use serde::{Deserialize, Serialize};

use super::{Machine, label};
use crate::agent::Agent;
use crate::store::WorkflowState;

/// Progress of a workflow for the user: "[Skill Creation Mode]" and "Defining triggers - 4/6 answers", which is step 2 of 5.
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
    /// The agent's [mode](Agent::mode). `None` if users do not see the agent, and in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The state and what is counted in one line: "Gathering requirements - 3/6 answers". Of a workflow that collects nothing, the states:
    /// "Planning - 1/5 steps". Empty in events of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl WorkflowProgress {
    /// The progress of an agent's workflow in a stored state. `None` without a workflow, or if the file no longer has the state.
    pub fn of(agent: &Agent, kept: &WorkflowState) -> Option<Self> {
        let workflow = agent.workflow.as_ref()?;
        let at = workflow.states.iter().position(|one| one.name.0 == kept.state)?;
        let (answered, questions) = Machine::read(workflow, Some(kept))?.answers();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let progress = Self {
            state: kept.state.clone(),
            label: label(&kept.state),
            step: count(at + 1),
            total: count(workflow.states.len()),
            answered: count(answered),
            questions: count(questions),
            mode: (!agent.is_hidden()).then(|| agent.mode()),
            text: String::new(),
        };
        Some(Self { text: progress.line(), ..progress })
    }

    fn line(&self) -> String {
        let counted = self.answers().unwrap_or_else(|| format!("{}/{} steps", self.step, self.total));
        format!("{} - {counted}", self.label)
    }

    /// "4/6 answers"; `None` if the workflow collects nothing.
    pub fn answers(&self) -> Option<String> {
        (self.questions > 0).then(|| format!("{}/{} answers", self.answered, self.questions))
    }
}
