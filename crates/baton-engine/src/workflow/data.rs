//! What is kept of a walk, beside the name of its state.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::RunId;
use baton_core::store::WorkflowState;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Written by any version of this program: what is new has a default, what is gone is passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is kept under a name of its own")]
pub(crate) struct Data {
    /// What was collected, by key. Never taken away, only replaced.
    pub(crate) values: BTreeMap<String, String>,
    /// Optional keys that nobody wants to fill.
    pub(crate) skipped: BTreeSet<String>,
    /// The states that were left by going on, the newest last; each at most once.
    pub(crate) trail: Vec<String>,
    /// What the tools of states brought when they were entered last.
    pub(crate) ran: BTreeMap<String, Ran>,
    /// The tool of the current state has done its work, or there is none.
    pub(crate) is_ready: bool,
    /// The person said yes to the question of the current state.
    pub(crate) is_agreed: bool,
    /// The person said yes to something, and nothing has changed since: they want what follows from it.
    pub(crate) has_consent: bool,
    /// Why the walk does not go on by itself, although nothing is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<Held>,
    /// When the question of the current state was put.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) question: Option<Question>,
    /// The key that the person was asked for last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<String>,
    pub(crate) is_greeted: bool,
    /// How often it was changed: an older version never replaces a newer one.
    pub(crate) changes: u64,
}

/// What came of a state's tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ran {
    /// The keys that it looks at.
    pub(crate) uses: BTreeSet<String>,
    pub(crate) text: String,
}

/// What somebody has to say something about before the walk goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Held {
    /// The tool of `state` failed.
    Failed { state: String, error: String },
    /// The person said no to the question of `state`.
    Declined { state: String },
    /// The person went back.
    Back,
}

/// In which run a question was put, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) run_id: RunId,
    pub(crate) at: Timestamp,
}

impl Data {
    /// As it was kept. What cannot be read at all leaves at least the values.
    pub(crate) fn read(kept: &Value) -> Self {
        serde_json::from_value(kept.clone()).unwrap_or_else(|_| {
            let values = kept.get("values").cloned().unwrap_or_default();
            Self { values: serde_json::from_value(values).unwrap_or_default(), ..Self::default() }
        })
    }

    pub(crate) fn kept(&self, state: &str) -> WorkflowState {
        let data = serde_json::to_value(self).unwrap_or_default();
        WorkflowState { state: state.to_owned(), data }
    }
}

impl Held {
    /// For whoever wants to go on all the same.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Failed { state, error } => format!("`{state}` did not work out: {error}"),
            Self::Declined { state } => format!("the person said no in `{state}`"),
            Self::Back => "the person went back".to_owned(),
        }
    }
}
