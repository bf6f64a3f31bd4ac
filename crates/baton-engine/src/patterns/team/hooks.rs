//! Callbacks of the embedding server around team rounds.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use baton_core::{AgentName, RunId, TenantId, ThreadId};

use super::votes::Vote;
use crate::scope::Scope;

/// Callbacks around the rounds of a team. They are called between rounds, one at a time, and must return quickly because the team
/// waits. Decisions are journaled with the round; if the process dies just before that, the hooks are called again.
pub trait TeamHooks: Send + Sync + fmt::Debug {
    /// Called for each post of a member.
    fn on_broadcast(&self, _at: &TeamRound, _member: &AgentName, _text: &str) {}

    /// Called for each vote of a member.
    fn on_vote(&self, _at: &TeamRound, _member: &AgentName, _vote: &Vote) {}

    /// Returns messages to all members before the round begins.
    fn inject(&self, _at: &TeamRound) -> Vec<String> {
        Vec::new()
    }

    /// Whether another round may follow. If `false`, the coordinator answers.
    fn should_continue(&self, _at: &TeamRound) -> bool {
        true
    }
}

/// Identifies a round of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamRound {
    pub tenant: TenantId,
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub coordinator: AgentName,
    /// Starts at 1.
    pub round: u32,
}

/// The registered hooks, if any, bound to a round.
pub(super) struct RoundHooks<'a> {
    hooks: Option<&'a dyn TeamHooks>,
    at: TeamRound,
}

impl<'a> RoundHooks<'a> {
    pub(super) fn new(scope: &'a Scope, round: u32) -> Self {
        let caller = &scope.run.caller;
        let at = TeamRound {
            tenant: caller.tenant.clone(),
            thread_id: caller.thread_id,
            run_id: scope.run.run_id,
            coordinator: scope.name().clone(),
            round,
        };
        Self { hooks: scope.run.extensions.team_hooks.as_deref(), at }
    }

    /// Calls the hooks. A panic is caught and logged, and counts as no answer.
    fn ask<T>(&self, ask: impl FnOnce(&dyn TeamHooks, &TeamRound) -> T) -> Option<T> {
        let hooks = self.hooks?;
        let answer = catch_unwind(AssertUnwindSafe(|| ask(hooks, &self.at)));
        answer.inspect_err(|_| tracing::error!(team = %self.at.coordinator, "a team hook panicked")).ok()
    }

    pub(super) fn broadcast(&self, member: &AgentName, text: &str) {
        self.ask(|hooks, at| hooks.on_broadcast(at, member, text));
    }

    pub(super) fn voted(&self, member: &AgentName, vote: &Vote) {
        self.ask(|hooks, at| hooks.on_vote(at, member, vote));
    }

    pub(super) fn injected(&self) -> Vec<String> {
        self.ask(|hooks, at| hooks.inject(at)).unwrap_or_default()
    }

    pub(super) fn goes_on(&self) -> bool {
        self.ask(|hooks, at| hooks.should_continue(at)).unwrap_or(true)
    }
}
