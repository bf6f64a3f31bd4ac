//! Guardrails: checks of what an agent reads and of what it answers.

use serde::Serialize;
use serde_json::Value;

use crate::choices;
use crate::id::AgentName;

/// The guardrails of an agent, checked in order.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Guardrails {
    /// For what the agent gets: the user's message, or the task from another agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<Guard>,
    /// For its answers, and for what it writes to an agent that takes over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<Guard>,
}

impl Guardrails {
    pub fn is_empty(&self) -> bool {
        self.input.is_empty() && self.output.is_empty()
    }
}

/// One check, and what users are told if it fails.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Guard {
    #[serde(flatten)]
    pub check: GuardCheck,
    /// Replaces the sentence that says what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Bytes that a compiled pattern of [`GuardCheck::Deny`] may take, so that a file cannot use up the memory. Validation and the
/// engine compile with the same limit.
pub const PATTERN_BYTES: usize = 1 << 20;

/// What a guardrail checks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardCheck {
    /// At most this many characters.
    MaxLength(u32),
    /// No match of any of these regular expressions.
    Deny(Vec<String>),
    /// JSON that satisfies this schema.
    Schema(Value),
    /// None of these kinds of personal data.
    Pii(Vec<PiiKind>),
    /// Another agent decides.
    Judge(AgentName),
}

choices! {
    /// A kind of personal data.
    pub enum PiiKind {
        Email = "email",
        Card = "card",
        /// Passwords, keys and tokens.
        Secret = "secret",
    }
}

impl GuardCheck {
    /// The key in the agent's file.
    pub fn key(&self) -> &'static str {
        match self {
            Self::MaxLength(_) => "max_length",
            Self::Deny(_) => "deny",
            Self::Schema(_) => "schema",
            Self::Pii(_) => "pii",
            Self::Judge(_) => "judge",
        }
    }
}
