//! One round: all members take a turn, then the barrier.

use std::sync::Arc;

use baton_core::event::EventKind;
use baton_core::message::{Part, Visibility};
use baton_core::store::{NewEvent, StepKind};
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};

use super::Discussion;
use super::channel::Post;
use super::hooks::RoundHooks;
use super::member::TeamMember;
use super::outbox::MemberOutbox;
use super::tools;
use super::turn::MemberTurn;
use crate::bounds::InvocationKind;
use crate::child_timeout;
use crate::failure::Failure;
use crate::input::{Input, InputSource};
use crate::invocation;
use crate::outcome::Outcome;
use crate::redaction::redact;
use crate::scope::Scope;

/// A round, as it is journaled at its barrier.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Round {
    /// Posts that hooks added to the channel before the round.
    pub(super) injected: Vec<Post>,
    pub(super) turns: Vec<MemberTurn>,
    /// Whether a hook ended the discussion.
    ends_here: bool,
}

/// The journaled start of a round.
#[derive(Debug, Serialize, Deserialize)]
struct RoundStart {
    injected: Vec<Post>,
}

impl Round {
    pub(super) fn new(injected: Vec<Post>, turns: Vec<MemberTurn>) -> Self {
        Self { injected, turns, ends_here: false }
    }

    /// All posts for the channel, in the order of the members.
    pub(super) fn posts(&self, round: u32) -> impl Iterator<Item = Post> {
        self.turns.iter().flat_map(move |turn| turn.channel(round))
    }

    pub(super) fn goes_on(&self) -> bool {
        !self.ends_here
    }

    /// Whether all members failed.
    pub(super) fn is_failed(&self) -> bool {
        self.turns.iter().all(|turn| turn.failure.is_some())
    }

    /// Number of members that voted to conclude.
    pub(super) fn ready(&self) -> usize {
        self.turns.iter().filter(|turn| turn.vote.as_ref().is_some_and(|vote| vote.ready)).count()
    }

    /// Trace events of the round.
    fn events(&self, place: &Scope, round: u32) -> Vec<NewEvent> {
        let of_turn = |turn: &MemberTurn| -> Vec<NewEvent> {
            let happened = turn.events(round).into_iter();
            let event = |kind| place.event(Visibility::Internal, kind);
            happened.map(|kind| NewEvent { agent: turn.member.clone(), ..event(kind) }).collect()
        };
        self.turns.iter().flat_map(of_turn).collect()
    }
}

impl Discussion<'_> {
    /// Journals the start of the round and returns the posts that hooks injected. After a crash, returns the journaled ones.
    pub(super) async fn begin(&self, place: &Scope, round: u32) -> Result<Vec<Post>, Failure> {
        if let Some(RoundStart { injected }) = place.step().interrupted()? {
            return Ok(injected);
        }
        let texts = RoundHooks::new(self.scope, round).injected();
        let injected: Vec<Post> =
            texts.into_iter().map(|text| Post::notice(round, &redact(self.scope.agent(), &text))).collect();
        let events = injected.iter().map(|post| {
            let kind = EventKind::Status { text: post.text.clone() };
            place.event(Visibility::Internal, kind)
        });
        let begun = RoundStart { injected: injected.clone() };
        place.step().begin_soon(StepKind::Round, &begun, events.collect(), Vec::new()).await?;
        Ok(injected)
    }

    /// Runs all members, at most `max_live_children` at once. Returns turns and prompts in the order of the members.
    pub(super) async fn run_members(
        &self,
        place: &Scope,
        round: u32,
    ) -> Result<(Vec<MemberTurn>, Vec<Arc<Vec<Part>>>), Failure> {
        let at_once = self.scope.run.policy.max_live_children.max(1) as usize;
        let turns: Vec<_> = (0..self.members.len()).map(|at| self.run_member(place, round, at)).collect();
        let mut heard: Vec<_> = stream::iter(turns).buffer_unordered(at_once).collect().await;
        heard.sort_by_key(|(at, _)| *at);
        // A cancelled round has no barrier.
        if self.scope.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        heard.into_iter().map(|(_, one)| one).collect()
    }

    async fn run_member(
        &self,
        place: &Scope,
        round: u32,
        at: usize,
    ) -> (usize, Result<(MemberTurn, Arc<Vec<Part>>), Failure>) {
        let member = &self.members[at];
        let prompt = member.recorded_prompt(place).unwrap_or_else(|| self.member_prompt(member, round));
        let prompt = Arc::new(prompt);
        let turn = self.turn(place, round, member, &prompt).await;
        (at, turn.map(|turn| (turn, prompt)))
    }

    async fn turn(
        &self,
        place: &Scope,
        round: u32,
        member: &TeamMember,
        prompt: &Arc<Vec<Part>>,
    ) -> Result<MemberTurn, Failure> {
        let outbox = Arc::new(MemberOutbox::open(&member.place(place))?);
        match self.work(place, round, member, prompt, &outbox).await {
            Err(failure) if failure.is_fatal(&self.scope.run.control.cancel) => Err(failure),
            result => Ok(MemberTurn::new(self.scope, member, round, outbox.said(), result)),
        }
    }

    /// Runs the member in a child scope, with a timeout of `member_timeout`.
    async fn work(
        &self,
        place: &Scope,
        round: u32,
        member: &TeamMember,
        prompt: &Arc<Vec<Part>>,
        outbox: &Arc<MemberOutbox>,
    ) -> Result<Outcome, Failure> {
        let agent = member.agent.as_ref().ok_or_else(|| Failure::NoAgent(member.name.clone()))?;
        let child = invocation::enter_when_permitted(place, agent, InvocationKind::Member).await?;
        let reason = format!("round {round} of the team").into();
        let input = Input {
            history: Arc::clone(&member.history),
            parts: Arc::clone(prompt),
            engine_tools: tools::of_member(outbox),
            rendered: Some(self.member_envelope(member, round).rendered_as(prompt)),
            sent: Some(InputSource { by: self.scope.name().clone(), reason }),
            ..Input::default()
        };
        let limit = self.scope.models().scaled_timeout(self.team.member_timeout, [agent]);
        child_timeout::run_with_timeout(child, input, limit).await
    }

    /// The barrier: calls the hooks, then journals posts, votes and the decision of the hooks as one record.
    pub(super) async fn finish(
        &self,
        place: &Scope,
        number: u32,
        mut round: Round,
    ) -> Result<Round, Failure> {
        let hooks = RoundHooks::new(self.scope, number);
        for turn in &round.turns {
            turn.posts.iter().for_each(|post| hooks.broadcast(&turn.member, &post.text));
            turn.vote.iter().for_each(|vote| hooks.voted(&turn.member, vote));
        }
        round.ends_here = !hooks.goes_on();
        let events = round.events(place, number);
        place.step().finish(StepKind::Round, &round, events, Vec::new()).await?;
        Ok(round)
    }
}
