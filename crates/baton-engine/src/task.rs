//! What a run does with its message.

use baton_core::agent::{Strategy, Synthesis};
use baton_core::{AgentName, HandoffId, HumanDuration, choices};
use serde::{Deserialize, Serialize};

/// The permission to delegate to agents.
pub const DELEGATE_PERMISSION: &str = "orchestration:delegate";

/// The task of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunTask {
    /// The agent answers the message.
    #[default]
    Answer,
    /// Agents that the caller chose are asked. No model decides.
    Delegate(DelegationPlan),
    /// A handoff changed outside of a run, and the agent that has the thread now reacts. The run has no message.
    Handoff { handoff_id: HandoffId, change: HandoffTransition },
}

choices! {
    /// How a handoff changed.
    pub enum HandoffTransition {
        Begun = "begun",
        Resumed = "resumed",
        Ended = "ended",
    }
}

/// The agents that the caller delegates to, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationPlan {
    pub agents: Vec<AgentName>,
    pub strategy: Strategy,
    /// The time limit of each agent.
    pub timeout: HumanDuration,
    /// With `model`, the run's agent makes one answer of the results. With `none` there is no answer, only results.
    pub synthesis: Synthesis,
}

impl DelegationPlan {
    /// The agents without duplicates, in the order in which they are first named.
    pub(crate) fn asked(&self) -> Vec<&AgentName> {
        let mut asked: Vec<&AgentName> = Vec::new();
        for name in &self.agents {
            if !asked.contains(&name) {
                asked.push(name);
            }
        }
        asked
    }
}

impl RunTask {
    pub(crate) fn is_answer(&self) -> bool {
        *self == Self::Answer
    }

    /// Whether the run has a message.
    pub(crate) fn is_said(&self) -> bool {
        !matches!(self, Self::Handoff { .. })
    }

    /// The word for it in the audit trail.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Delegate(_) => "delegate",
            Self::Handoff { .. } => "handoff",
        }
    }
}
