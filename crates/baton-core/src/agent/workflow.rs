//! The states of a workflow.

use std::fmt;

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workflow {
    /// In order; the first is the initial state.
    pub states: Vec<WorkflowStep>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct StateName(pub String);

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkflowStep {
    pub name: StateName,
    /// Values to ask for, in order, until all required ones are set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<Slot>,
    /// A tool that is called on entry, with all values collected so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The state entered when that tool fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<StateName>,
    /// A question that the user must confirm before the workflow leaves the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// Possible next states; the first is the default. If the file names none, it is the following state.
    pub next: Vec<StateName>,
}

/// One value to collect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slot {
    pub key: String,
    pub ask: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    pub required: bool,
}

impl Workflow {
    pub fn state(&self, name: &StateName) -> Option<&WorkflowStep> {
        self.states.iter().find(|state| state.name == *name)
    }

    /// States that are not reachable from the first one, neither by `next` nor by `on_failure`.
    pub fn unreachable(&self) -> Vec<&StateName> {
        let index_of = |name: &StateName| self.states.iter().position(|state| state.name == *name);
        let mut seen = vec![false; self.states.len()];
        let mut open = vec![0];
        while let Some(at) = open.pop() {
            let Some(state) = self.states.get(at) else { continue };
            if !std::mem::replace(&mut seen[at], true) {
                open.extend(state.next.iter().chain(&state.on_failure).filter_map(index_of));
            }
        }
        self.states.iter().zip(seen).filter(|(_, seen)| !seen).map(|(state, _)| &state.name).collect()
    }
}
