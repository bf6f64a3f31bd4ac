//! Callbacks of the embedding server around team rounds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use baton_core::AgentName;

use crate::extensions::{TeamHooks, TeamRound, Vote};
use crate::scope::Scope;

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
