//! Code that accompanies teams.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use baton_core::{AgentName, RunId, TenantId, ThreadId};

use super::votes::Vote;
use crate::scope::Scope;

/// What a server does beside its teams. Called at barriers only, one call after the other, and quick: the team waits. What is decided
/// is recorded with the round. A process that dies just before that asks again.
pub trait TeamHooks: Send + Sync + fmt::Debug {
    /// A member has said something to the others.
    fn on_broadcast(&self, _at: &TeamRound, _member: &AgentName, _text: &str) {}

    /// A member has said whether the discussion can end.
    fn on_vote(&self, _at: &TeamRound, _member: &AgentName, _vote: &Vote) {}

    /// What to tell all members before the round begins.
    fn inject(&self, _at: &TeamRound) -> Vec<String> {
        Vec::new()
    }

    /// Whether another round may follow. `false`: the coordinator answers.
    fn should_continue(&self, _at: &TeamRound) -> bool {
        true
    }
}

/// Which round of which team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamRound {
    pub tenant: TenantId,
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub coordinator: AgentName,
    /// From 1.
    pub round: u32,
}

/// The hooks of a run, if there are any.
pub(super) struct Accompanied<'a> {
    hooks: Option<&'a dyn TeamHooks>,
    at: TeamRound,
}

impl<'a> Accompanied<'a> {
    pub(super) fn new(scope: &'a Scope, round: u32) -> Self {
        let caller = &scope.run.caller;
        let at = TeamRound {
            tenant: caller.tenant.clone(),
            thread_id: caller.thread_id,
            run_id: scope.run.run_id,
            coordinator: scope.name().clone(),
            round,
        };
        Self { hooks: scope.run.engine.parts.team_hooks.as_deref(), at }
    }

    /// A hook that panics is as good as none: it must not take the run with it.
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
