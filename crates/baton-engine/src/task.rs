//! What a run is to do with its message.

use baton_core::agent::{Strategy, Synthesis};
use baton_core::{AgentName, HandoffId, HumanDuration, Rights, choices};
use serde::{Deserialize, Serialize};

use crate::bounds::Refusal;
use crate::engine::Agents;
use crate::failure::Failure;

/// What somebody needs who has agents work for them.
pub(crate) const DELEGATE: &str = "orchestration:delegate";

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// The agent answers it.
    #[default]
    Answer,
    /// Others are asked, whom the caller chose; no model decides anything.
    Delegate(Delegation),
    /// A handoff changed outside of a run. Whoever has the thread now takes it up from here; nobody has said anything.
    Handoff { handoff_id: HandoffId, change: Change },
}

choices! {
    /// What happened to a handoff.
    pub enum Change {
        Begun = "begun",
        Resumed = "resumed",
        Ended = "ended",
    }
}

/// Who is asked, and on which terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    pub agents: Vec<AgentName>,
    pub strategy: Strategy,
    /// For each of them.
    pub timeout: HumanDuration,
    /// With `model`, the run's agent makes one answer of what they bring. With `none` there is no answer, only results.
    pub synthesis: Synthesis,
}

impl Delegation {
    /// Each of them once, in the order in which they are named first.
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

impl Task {
    pub(crate) fn is_answer(&self) -> bool {
        *self == Self::Answer
    }

    /// Whether somebody said something that it is about.
    pub(crate) fn is_said(&self) -> bool {
        !matches!(self, Self::Handoff { .. })
    }

    /// As the trail calls it.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Delegate(_) => "delegate",
            Self::Handoff { .. } => "handoff",
        }
    }

    /// Whether it could be begun now, or why not. Who goes away later is a result like any other failure.
    pub(crate) fn check(&self, agents: &Agents, rights: &Rights) -> Result<(), Failure> {
        let Self::Delegate(delegation) = self else { return Ok(()) };
        if !rights.allow(DELEGATE) {
            return Err(Failure::NotAllowed(DELEGATE.to_owned()));
        }
        for name in &delegation.agents {
            let agent = agents.get(name).ok_or_else(|| Failure::NoAgent(name.clone()))?;
            if !agent.can_be_orchestrated {
                return Err(Refusal::NotOrchestrated(name.clone()).into());
            }
        }
        Ok(())
    }
}
