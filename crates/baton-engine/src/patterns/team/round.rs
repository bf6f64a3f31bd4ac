//! One round: everybody works, then the barrier.

use std::sync::Arc;

use baton_core::event::EventKind;
use baton_core::message::{Part, Visibility};
use baton_core::store::{NewEvent, StepKind};
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};

use super::Discussion;
use super::channel::Post;
use super::desk::Desk;
use super::hooks::Accompanied;
use super::member::Member;
use super::tools;
use super::turn::Turn;
use crate::bounds::Edge;
use crate::children;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::patterns::handover::shared;
use crate::run::{Input, Sent};
use crate::scope::Scope;

/// A round as it is recorded at its barrier.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Round {
    /// What was put on the channel before it began.
    pub(super) injected: Vec<Post>,
    pub(super) turns: Vec<Turn>,
    /// What the code that accompanies the team decided.
    ends_here: bool,
}

/// The same while it lasts.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    injected: Vec<Post>,
}

impl Round {
    pub(super) fn new(injected: Vec<Post>, turns: Vec<Turn>) -> Self {
        Self { injected, turns, ends_here: false }
    }

    /// All that goes on the channel, in the order of the members.
    pub(super) fn posts(&self, round: u32) -> impl Iterator<Item = Post> {
        self.turns.iter().flat_map(move |turn| turn.channel(round))
    }

    pub(super) fn goes_on(&self) -> bool {
        !self.ends_here
    }

    /// Whether nobody took part.
    pub(super) fn is_failed(&self) -> bool {
        self.turns.iter().all(|turn| turn.failure.is_some())
    }

    /// Members that are ready to conclude.
    pub(super) fn ready(&self) -> usize {
        self.turns.iter().filter(|turn| turn.vote.as_ref().is_some_and(|vote| vote.ready)).count()
    }

    /// What listeners with the right to traces are told.
    fn events(&self, place: &Scope, round: u32) -> Vec<NewEvent> {
        let of_turn = |turn: &Turn| -> Vec<NewEvent> {
            let happened = turn.happened(round).into_iter();
            let event = |kind| place.event_as(Visibility::Internal, kind);
            happened.map(|kind| NewEvent { agent: turn.member.clone(), ..event(kind) }).collect()
        };
        self.turns.iter().flat_map(of_turn).collect()
    }
}

impl Discussion<'_> {
    /// Says that the round begins, and what is put on the channel for it. Asked once, also when the round begins again.
    pub(super) async fn begin(&self, place: &Scope, round: u32) -> Result<Vec<Post>, Failure> {
        if let Some(Begun { injected }) = place.interrupted()? {
            return Ok(injected);
        }
        let texts = Accompanied::new(self.scope, round).injected();
        let injected: Vec<Post> =
            texts.into_iter().map(|text| Post::notice(round, &shared(&self.scope.agent, &text))).collect();
        let events = injected.iter().map(|post| {
            let kind = EventKind::Status { text: post.text.clone() };
            place.event_as(Visibility::Internal, kind)
        });
        let begun = Begun { injected: injected.clone() };
        place.begin_soon(StepKind::Round, &begun, events.collect(), Vec::new()).await?;
        Ok(injected)
    }

    /// Everybody's turn, so many at once as may be, in the order of the members; and what each was told.
    pub(super) async fn hear(
        &self,
        place: &Scope,
        round: u32,
    ) -> Result<(Vec<Turn>, Vec<Arc<Vec<Part>>>), Failure> {
        let at_once = self.scope.run.engine.parts.policy.max_live_children.max(1) as usize;
        let turns: Vec<_> = (0..self.members.len()).map(|at| self.hear_one(place, round, at)).collect();
        let mut heard: Vec<_> = stream::iter(turns).buffer_unordered(at_once).collect().await;
        heard.sort_by_key(|(at, _)| *at);
        // What was cancelled from above has no barrier.
        if self.scope.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        heard.into_iter().map(|(_, one)| one).collect()
    }

    async fn hear_one(
        &self,
        place: &Scope,
        round: u32,
        at: usize,
    ) -> (usize, Result<(Turn, Arc<Vec<Part>>), Failure>) {
        let member = &self.members[at];
        let told = member.told_before(place).unwrap_or_else(|| self.told(member, round));
        let told = Arc::new(told);
        let turn = self.turn(place, round, member, &told).await;
        (at, turn.map(|turn| (turn, told)))
    }

    async fn turn(
        &self,
        place: &Scope,
        round: u32,
        member: &Member,
        told: &Arc<Vec<Part>>,
    ) -> Result<Turn, Failure> {
        let desk = Arc::new(Desk::open(&member.place(place))?);
        match self.work(place, round, member, told, &desk).await {
            Err(failure) if failure.ends_the_run(self.scope) => Err(failure),
            result => Ok(Turn::new(self.scope, member, round, desk.said(), result)),
        }
    }

    /// The member's own run, with whoever it involves.
    async fn work(
        &self,
        place: &Scope,
        round: u32,
        member: &Member,
        told: &Arc<Vec<Part>>,
        desk: &Arc<Desk>,
    ) -> Result<Outcome, Failure> {
        let agent = member.agent.as_ref().ok_or_else(|| Failure::NoAgent(member.name.clone()))?;
        let mut child = place.enter_in_turn(agent, Edge::Member).await?;
        child.given = Arc::new(tools::of_member(desk));
        let reason = format!("round {round} of the team").into();
        let input = Input {
            history: Arc::clone(&member.history),
            parts: Arc::clone(told),
            rendered: Some(self.matter(member, round).behind(told)),
            sent: Some(Sent { by: self.scope.name().clone(), reason }),
            ..Input::default()
        };
        children::within(child, input, self.team.member_timeout).await
    }

    /// The barrier: what was said, voted and decided is kept as one.
    pub(super) async fn finish(
        &self,
        place: &Scope,
        number: u32,
        mut round: Round,
    ) -> Result<Round, Failure> {
        let hooks = Accompanied::new(self.scope, number);
        for turn in &round.turns {
            turn.posts.iter().for_each(|post| hooks.broadcast(&turn.member, &post.text));
            turn.vote.iter().for_each(|vote| hooks.voted(&turn.member, vote));
        }
        round.ends_here = !hooks.goes_on();
        let events = round.events(place, number);
        place.finish(StepKind::Round, &round, events, Vec::new()).await?;
        Ok(round)
    }
}
