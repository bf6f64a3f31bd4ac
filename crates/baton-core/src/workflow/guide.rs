//! Guides a user through a workflow without a model.
//!
//! The engine stores the machine, runs the tools of its states and publishes its progress. A guide only interprets the user's
//! message and words the reply, so it is deterministic: after a crash the same message leads to the same state and reply.

use std::fmt;

use crate::agent::Agent;
use crate::workflow::data::StateFailure;
use crate::workflow::machine::Machine;

/// Guides users through a workflow by rules. A [`Model`](crate::Model) with a guide does not call `advance_workflow` itself.
pub trait WorkflowGuide: Send + Sync + fmt::Debug {
    /// Applies a message to the machine and begins the reply. The engine then advances the machine as far as possible.
    fn read(
        &self,
        agent: &Agent,
        machine: &mut Machine<'_>,
        message: &GuideMessage<'_>,
    ) -> Box<dyn GuideReply>;
}

/// A reply that depends on the machine's final state.
pub trait GuideReply: Send {
    /// Returns the text for the user. `changes` lists what the engine did since [`WorkflowGuide::read`], in order.
    fn finish(self: Box<Self>, agent: &Agent, machine: &Machine<'_>, changes: &[WorkflowChange]) -> String;
}

/// The message that a guide reads.
#[derive(Debug, Clone, Copy)]
pub struct GuideMessage<'a> {
    /// The user's message. Empty when a workflow resumes without one.
    pub text: &'a str,
    /// The request that started the workflow. Only used for its first message.
    pub request: &'a str,
    /// Whether the user had seen the question of the current state before writing.
    pub was_asked: bool,
}

/// One step of the engine with a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowChange {
    Entered(String),
    Ran { tool: String, text: String, is_untrusted: bool },
    Failed { tool: String, error: String, is_untrusted: bool },
}

impl WorkflowChange {
    pub fn failed(tool: String, failure: &StateFailure) -> Self {
        Self::Failed { tool, error: failure.error.clone(), is_untrusted: failure.is_untrusted }
    }
}
