//! The states a holder of a thread walks through.

use std::fmt;

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workflow {
    /// In order; the first is where it starts.
    pub states: Vec<State>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct StateName(pub String);

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct State {
    pub name: StateName,
    /// Asked one after the other until all required keys are filled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<Slot>,
    /// A tool, called on entry with everything collected so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Where to go when that tool fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<StateName>,
    /// A question the person must say yes to before the state is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// Where it may go next; the first is the default. Filled in from the order of the states when the
    /// file does not say.
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
    pub fn state(&self, name: &StateName) -> Option<&State> {
        self.states.iter().find(|state| state.name == *name)
    }

    /// States that no walk from the first one can enter, neither by going on nor by failing.
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
