//! The stored data of a workflow, besides the name of its state.

use std::collections::{BTreeMap, BTreeSet};

use crate::RunId;
use crate::store::WorkflowState;
use crate::tool::ToolError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// May be written by any version: new fields have a default, unknown fields are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is kept under a name of its own")]
pub struct Data {
    /// Collected values by key. Replaced, but never removed.
    pub values: BTreeMap<String, String>,
    /// Optional keys that the user skipped.
    pub skipped: BTreeSet<String>,
    /// Completed states, newest last, without duplicates.
    pub trail: Vec<String>,
    /// Results of the states' tools, from their last entry.
    pub ran: BTreeMap<String, Ran>,
    /// The tool of the current state has finished, or there is none.
    pub is_ready: bool,
    /// The user confirmed the question of the current state.
    pub is_agreed: bool,
    /// The user confirmed a question and nothing has changed since: this approves the one tool that follows.
    pub has_consent: bool,
    /// Why the workflow does not advance although no value is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// When the question of the current state was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// The key that the user was last asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    pub is_greeted: bool,
    /// Number of changes: an older version never replaces a newer one.
    pub changes: u64,
}

/// Result of a state's tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// The keys that the tool uses.
    pub uses: BTreeSet<String>,
    pub text: String,
    /// Names of what the tool created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
}

/// Why a state's tool failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateFailure {
    /// The text for models.
    pub error: String,
    /// The text for users. Absent in data of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// A value that the tool would accept instead of the refused one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternative: Option<String>,
    /// Whether third parties wrote the error, so that it must not appear in a prompt.
    #[serde(default)]
    pub is_untrusted: bool,
}

impl StateFailure {
    pub fn new(error: &ToolError, is_untrusted: bool) -> Self {
        Self {
            error: error.for_model(),
            detail: Some(error.detail()),
            alternative: error.alternative().map(str::to_owned),
            is_untrusted,
        }
    }

    /// The text for users.
    pub fn detail(&self) -> &str {
        self.detail.as_ref().unwrap_or(&self.error)
    }
}

/// Why the workflow waits for an instruction before it advances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// The tool of `state` failed.
    Failed {
        state: String,
        #[serde(flatten)]
        failure: StateFailure,
    },
    /// The user declined the question of `state`.
    Declined { state: String },
    /// The user went back.
    Back,
}

/// The run and time of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub run_id: RunId,
    pub at: Timestamp,
}

impl Data {
    /// Reads stored data. If it is malformed, keeps at least the values.
    pub fn read(kept: &Value) -> Self {
        serde_json::from_value(kept.clone()).unwrap_or_else(|_| {
            let values = kept.get("values").cloned().unwrap_or_default();
            Self { values: serde_json::from_value(values).unwrap_or_default(), ..Self::default() }
        })
    }

    pub fn kept(&self, state: &str) -> WorkflowState {
        let data = serde_json::to_value(self).unwrap_or_default();
        WorkflowState { state: state.to_owned(), data }
    }
}

impl Held {
    /// Explains to models and callers why the workflow cannot advance.
    pub fn reason(&self) -> String {
        match self {
            Self::Failed { state, failure } if failure.is_untrusted => {
                format!("`{state}` did not work out: its tool reported an error")
            }
            Self::Failed { state, failure } => format!("`{state}` did not work out: {}", failure.error),
            Self::Declined { state } => format!("the person said no in `{state}`"),
            Self::Back => "the person went back".to_owned(),
        }
    }
}
