//! A member of a team over the rounds: how far it has read, and what it said.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::Agent;
use baton_core::chat::ChatMessage;
use baton_core::event::Dissent;
use baton_core::message::Part;

use super::memory::remember;
use super::turn::{Turn, missed};
use super::votes::Vote;
use crate::scope::Scope;

#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: AgentName,
    /// Missing if it is not in the roster any more.
    pub(super) agent: Option<Arc<Agent>>,
    /// What it was told and said in earlier rounds.
    pub(super) history: Arc<Vec<ChatMessage>>,
    /// Where the channel begins that it has not read.
    pub(super) cursor: usize,
    pub(super) vote: Option<Vote>,
    /// Why it was not there in the newest round.
    missed: Option<String>,
}

impl Member {
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

    /// Where its turn in a round happens.
    pub(super) fn place(&self, round: &Scope) -> Scope {
        round.at(&format!("member:{}", self.name))
    }

    /// What it was told in a round that began before a crash. The marks around the blocks stay the same that way.
    pub(super) fn told_before(&self, round: &Scope) -> Option<Vec<Part>> {
        let step = round.run.steps.get(self.place(round).path())?;
        serde_json::from_value(step.data.get("input")?.clone()).ok()
    }

    /// After the barrier. Who said nothing because it failed reads the same again in the next round.
    pub(super) fn advance(&mut self, turn: &Turn, told: &[Part], seen: usize, round: u32) {
        self.vote = turn.vote.clone().or(self.vote.take());
        self.missed = turn.failure.as_ref().map(|reason| missed(round, reason));
        if turn.failure.is_none() || !turn.posts.is_empty() {
            remember(Arc::make_mut(&mut self.history), told, turn.words.clone());
            self.cursor = seen;
        }
    }

    /// Why the result is not its own.
    pub(super) fn dissent(&self) -> Option<Dissent> {
        let against = self.vote.as_ref().filter(|vote| !vote.ready).map(|vote| vote.reason.clone());
        let reason = against.or_else(|| self.missed.clone())?;
        Some(Dissent { member: self.name.clone(), reason })
    }
}
