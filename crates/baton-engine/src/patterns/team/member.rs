//! The state of a team member across rounds.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::Agent;
use baton_core::chat::ChatMessage;
use baton_core::event::Dissent;
use baton_core::message::Part;

use super::memory::remember;
use super::turn::{MemberTurn, missed_notice};
use crate::extensions::Vote;
use crate::scope::Scope;

/// A member with its memory, read cursor and latest vote.
#[derive(Debug)]
pub(super) struct TeamMember {
    pub(super) name: AgentName,
    /// `None` if the agent no longer exists.
    pub(super) agent: Option<Arc<Agent>>,
    /// Memory of earlier rounds.
    pub(super) history: Arc<Vec<ChatMessage>>,
    /// Index of the first channel post that it has not read.
    pub(super) cursor: usize,
    pub(super) vote: Option<Vote>,
    /// Why it failed in the latest round.
    missed: Option<String>,
}

impl TeamMember {
    pub(super) fn new(name: &AgentName, agent: Option<&Arc<Agent>>) -> Self {
        Self {
            name: name.clone(),
            agent: agent.cloned(),
            history: Arc::default(),
            cursor: 0,
            vote: None,
            missed: None,
        }
    }

    /// The scope of its turn in a round.
    pub(super) fn place(&self, round: &Scope) -> Scope {
        round.at(&format!("member:{}", self.name))
    }

    /// The prompt that was journaled before a crash. Reusing it keeps the nonces of its fences.
    pub(super) fn recorded_prompt(&self, round: &Scope) -> Option<Vec<Part>> {
        let step = round.run.recorder.steps.get(self.place(round).path())?;
        step.data.field("input")
    }

    /// Updates the member after the barrier. A member that failed without a post reads the same posts again in the next round.
    pub(super) fn advance(&mut self, turn: &MemberTurn, prompt: &[Part], seen: usize, round: u32) {
        self.vote = turn.vote.clone().or(self.vote.take());
        self.missed = turn.failure.as_ref().map(|reason| missed_notice(round, reason));
        if turn.failure.is_none() || !turn.posts.is_empty() {
            remember(Arc::make_mut(&mut self.history), prompt, turn.words.clone());
            self.cursor = seen;
        }
    }

    /// Why the member has contributed nothing, as a clause that names it.
    pub(super) fn absence(&self) -> String {
        let reason = self.missed.as_deref().unwrap_or("had nothing to say");
        format!("`{}` {reason}", self.name)
    }

    /// Why the member does not share the result: it voted against the end, or it failed in the latest round.
    pub(super) fn dissent(&self) -> Option<Dissent> {
        let against = self.vote.as_ref().filter(|vote| !vote.ready).map(|vote| vote.reason.clone());
        let reason = against.or_else(|| self.missed.clone())?;
        Some(Dissent { member: self.name.clone(), reason })
    }
}
