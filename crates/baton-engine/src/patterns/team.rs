//! `team:`: members discuss in rounds, the declaring agent coordinates and answers.
//!
//! In a round all members work at the same time, each in a session of its own. At its end, the barrier, what they said goes on the
//! channel in the order of the members, whoever was faster. The barrier is one record: what was posted, voted and decided there
//! happens once. What a member said before it is recorded by its tools ([`desk`]), so a crash in the middle of a round costs nothing.

use std::sync::Arc;

use baton_core::agent::{Team, TerminationMode};
use baton_core::chat::ChatMessage;
use baton_core::event::{Dissent, EventKind};
use baton_core::message::Visibility;
use baton_core::store::StepKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::{Budget, Limit};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::run::Input;
use crate::scope::Scope;
use channel::Channel;
use coordinator::Ruling;
use member::Member;
use round::Round;

mod briefing;
mod channel;
mod coordinator;
mod desk;
pub(crate) mod hooks;
pub(crate) mod imagined;
mod member;
mod memory;
mod round;
mod tools;
mod turn;
pub(crate) mod votes;

/// Holds the discussion and lets the coordinator answer. `input` is what was asked, `told` the same with advice.
pub(crate) async fn discuss(
    scope: &Scope,
    team: &Team,
    input: &Input,
    told: &Input,
) -> Result<Outcome, Failure> {
    let mut discussion = Discussion::open(scope, team, input, told);
    let end = discussion.hold().await?;
    discussion.announce(&end).await?;
    let mut outcome = discussion.answer(&end).await?;
    outcome.dissent = discussion.dissent();
    Ok(outcome)
}

/// A discussion under way. A crash does not change it: it is built again from what was recorded at each barrier.
#[derive(Debug)]
struct Discussion<'a> {
    /// The coordinator's.
    scope: &'a Scope,
    team: &'a Team,
    /// What was asked.
    input: &'a Input,
    /// The same with advice, for the coordinator only.
    told: &'a Input,
    members: Vec<Member>,
    channel: Channel,
    /// What the coordinator was told and said between the rounds,
    chaired: Vec<ChatMessage>,
    /// and how far it has read.
    read: usize,
    /// The newest round.
    last: Round,
}

/// How a discussion ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    rounds: u32,
    by: By,
    /// The coordinator's words, if it was the one who ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

/// Why a discussion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum By {
    Consensus,
    MaxRounds,
    Coordinator,
    /// Its model could not say whether to go on.
    CoordinatorFailed,
    /// Nobody took part in the last round.
    MembersFailed,
    Hook,
    #[serde(untagged)]
    Limit(Limit),
}

impl By {
    /// Stable, for programs.
    fn word(self) -> &'static str {
        match self {
            Self::Consensus => "consensus",
            Self::MaxRounds => "max_rounds",
            Self::Coordinator => "coordinator",
            Self::CoordinatorFailed => "coordinator_failed",
            Self::MembersFailed => "members_failed",
            Self::Hook => "hook",
            Self::Limit(limit) => limit.word(),
        }
    }

    /// For the coordinator.
    fn reason(self) -> String {
        match self {
            Self::Consensus => "enough members were ready to conclude".to_owned(),
            Self::MaxRounds => "all rounds were held".to_owned(),
            Self::Coordinator => "you concluded it".to_owned(),
            Self::CoordinatorFailed => "it could not be decided whether to go on".to_owned(),
            Self::MembersFailed => "no member could take part any more".to_owned(),
            Self::Hook => "the rules of this server ended it".to_owned(),
            Self::Limit(limit) => limit.reason(),
        }
    }
}

impl<'a> Discussion<'a> {
    fn open(scope: &'a Scope, team: &'a Team, input: &'a Input, told: &'a Input) -> Self {
        let members = team.members.iter().map(|name| Member::new(name, scope.run.agents.get(name)));
        Self {
            scope,
            team,
            input,
            told,
            members: members.collect(),
            channel: Channel::default(),
            chaired: Vec::new(),
            read: 0,
            last: Round::default(),
        }
    }

    /// Round after round until there is a reason to end.
    async fn hold(&mut self) -> Result<End, Failure> {
        let recorded: Option<End> = self.scope.at("team").finished()?;
        let mut rounds = 0;
        loop {
            if let Some(end) = recorded.as_ref().filter(|end| end.rounds == rounds) {
                return Ok(end.clone());
            }
            if let Some((by, summary)) = self.verdict(rounds).await? {
                return Ok(End { rounds, by, summary });
            }
            rounds += 1;
            self.round(rounds).await?;
        }
    }

    /// Why nothing follows after so many rounds, if nothing does. The declared maximum holds in every mode.
    async fn verdict(&mut self, rounds: u32) -> Result<Option<(By, Option<String>)>, Failure> {
        if rounds > 0 {
            if let Some(by) = self.verdict_of_the_round(rounds) {
                return Ok(Some((by, None)));
            }
            if self.team.termination_mode == TerminationMode::CoordinatorDecides {
                return self.ask_the_coordinator(rounds).await;
            }
        }
        // A round that was begun before a crash is finished.
        let is_begun = self.place(rounds + 1).interrupted::<Value>()?.is_some();
        let limit = self.limit().filter(|_| !is_begun && !self.place(rounds + 1).is_finished());
        Ok(limit.map(|limit| (By::Limit(limit), None)))
    }

    fn verdict_of_the_round(&self, rounds: u32) -> Option<By> {
        let is_consensus = self.team.termination_mode == TerminationMode::Consensus;
        if !self.last.goes_on() {
            Some(By::Hook)
        } else if self.last.is_failed() {
            Some(By::MembersFailed)
        } else if is_consensus && votes::is_reached(self.team.quorum, self.last.ready(), self.members.len()) {
            Some(By::Consensus)
        } else if rounds >= self.team.max_rounds {
            Some(By::MaxRounds)
        } else {
            None
        }
    }

    async fn ask_the_coordinator(&mut self, round: u32) -> Result<Option<(By, Option<String>)>, Failure> {
        let is_decided = self.place(round).at("coordinator").is_finished();
        if let Some(limit) = self.limit().filter(|_| !is_decided) {
            return Ok(Some((By::Limit(limit), None)));
        }
        Ok(match self.decide(round).await? {
            Ruling::Concluded(summary) => Some((By::Coordinator, Some(summary))),
            Ruling::Limit(limit) => Some((By::Limit(limit), None)),
            Ruling::Failed => Some((By::CoordinatorFailed, None)),
            Ruling::GoOn(_) => None,
        })
    }

    /// The limit of the coordinator's session, or of somebody above it, that ends the discussion.
    fn limit(&self) -> Option<Limit> {
        let run = &self.scope.run;
        let is_stopped = run.stop.is_cancelled().then_some(Limit::Stopped);
        is_stopped.or_else(|| Budget::new(&self.scope.bounds, None).met(run))
    }

    fn place(&self, round: u32) -> Scope {
        self.scope.at(&format!("round:{round}")).internal()
    }

    fn dissent(&self) -> Vec<Dissent> {
        self.members.iter().filter_map(Member::dissent).collect()
    }

    async fn announce(&self, end: &End) -> Result<(), Failure> {
        let place = self.scope.at("team");
        if place.is_finished() {
            return Ok(());
        }
        let (by, dissent) = (end.by.word().to_owned(), self.dissent());
        let kind = EventKind::TeamEnded { rounds: end.rounds, by, dissent };
        let events = vec![self.scope.event_as(Visibility::Internal, kind)];
        place.finish(StepKind::Round, end, events, Vec::new()).await
    }

    /// Everybody's turn in a round, and the barrier after it.
    async fn round(&mut self, number: u32) -> Result<(), Failure> {
        let place = self.place(number);
        let is_kept: Option<Round> = place.finished()?;
        let injected = match &is_kept {
            Some(round) => round.injected.clone(),
            None => self.begin(&place, number).await?,
        };
        self.channel.extend(injected.iter().cloned());
        let seen = self.channel.len();
        let (round, told) = match is_kept {
            Some(round) => {
                let told = self.members.iter().map(|member| member.told_before(&place).unwrap_or_default());
                let told = told.map(Arc::new).collect();
                (round, told)
            }
            None => {
                let (turns, told) = self.hear(&place, number).await?;
                (self.finish(&place, number, Round::new(injected, turns)).await?, told)
            }
        };
        self.channel.extend(round.posts(number));
        for ((member, turn), told) in self.members.iter_mut().zip(&round.turns).zip(told) {
            member.advance(turn, &told, seen, number);
        }
        self.last = round;
        Ok(())
    }
}
