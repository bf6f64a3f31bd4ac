//! `team:`: members discuss in rounds; the declaring agent coordinates and answers.
//!
//! All members of a round run concurrently, each in a session of its own. The round ends with a barrier, at which their posts go
//! on the channel in the order of the members. The barrier is one journal record, so posts, votes and decisions take effect once.
//! Posts before the barrier are journaled by the members' tools ([`outbox`]), so a crash within a round loses nothing.

use std::sync::Arc;

use baton_core::agent::{Team, TerminationMode};
use baton_core::chat::ChatMessage;
use baton_core::event::{Dissent, EventKind};
use baton_core::message::Visibility;
use baton_core::store::StepKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bounds::LimitKind;
use crate::budget::Budget;
use crate::failure::Failure;
use crate::input::Input;
use crate::outcome::Outcome;
use crate::scope::Scope;
use channel::TeamChannel;
use coordinator::CoordinatorDecision;
use member::TeamMember;
use round::Round;

mod briefing;
mod channel;
mod coordinator;
pub(crate) mod hooks;
mod member;
mod memory;
mod outbox;
pub(crate) mod preview;
mod round;
mod tools;
mod turn;
pub(crate) mod votes;

/// Holds the discussion and lets the coordinator answer. `input` is the request, `prompt` the same with advice.
pub(crate) async fn discuss(
    scope: &Scope,
    team: &Team,
    input: &Input,
    prompt: &Input,
) -> Result<Outcome, Failure> {
    let mut discussion = Discussion::open(scope, team, input, prompt);
    let end = discussion.hold().await?;
    discussion.announce(&end).await?;
    discussion.require_contribution(&end)?;
    let mut outcome = discussion.answer(&end).await?;
    outcome.dissent = discussion.dissent();
    Ok(outcome)
}

/// A running discussion. After a crash it is rebuilt from the journaled barriers.
#[derive(Debug)]
struct Discussion<'a> {
    /// The coordinator's scope.
    scope: &'a Scope,
    team: &'a Team,
    /// The request.
    input: &'a Input,
    /// The request with advice, for the coordinator only.
    prompt: &'a Input,
    members: Vec<TeamMember>,
    channel: TeamChannel,
    /// Prompts and decisions of the coordinator between the rounds.
    coordinator_history: Vec<ChatMessage>,
    /// Number of channel posts that the coordinator has read.
    read: usize,
    /// The latest round.
    last: Round,
}

/// End of a discussion, as it is journaled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DiscussionEnd {
    rounds: u32,
    by: DiscussionEndReason,
    /// The coordinator's summary, if it ended the discussion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

/// Why a discussion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DiscussionEndReason {
    Consensus,
    MaxRounds,
    Coordinator,
    /// The coordinator's decision failed.
    CoordinatorFailed,
    /// All members failed in the last round.
    MembersFailed,
    Hook,
    #[serde(untagged)]
    Limit(LimitKind),
}

impl DiscussionEndReason {
    /// Stable identifier for clients.
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

    /// Description for the coordinator's prompt.
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
    fn open(scope: &'a Scope, team: &'a Team, input: &'a Input, prompt: &'a Input) -> Self {
        let members = team.members.iter().map(|name| TeamMember::new(name, scope.run.agents.get(name)));
        Self {
            scope,
            team,
            input,
            prompt,
            members: members.collect(),
            channel: TeamChannel::default(),
            coordinator_history: Vec::new(),
            read: 0,
            last: Round::default(),
        }
    }

    /// Runs rounds until there is a reason to end. After a crash, replays the journaled rounds and their end.
    async fn hold(&mut self) -> Result<DiscussionEnd, Failure> {
        let recorded: Option<DiscussionEnd> = self.scope.at("team").step().finished()?;
        let mut rounds = 0;
        loop {
            if let Some(end) = recorded.as_ref().filter(|end| end.rounds == rounds) {
                return Ok(end.clone());
            }
            if let Some((by, summary)) = self.end_reason(rounds).await? {
                return Ok(DiscussionEnd { rounds, by, summary });
            }
            rounds += 1;
            self.round(rounds).await?;
        }
    }

    /// The reason to end after `rounds` rounds, if any. `max_rounds` applies in every termination mode.
    async fn end_reason(
        &mut self,
        rounds: u32,
    ) -> Result<Option<(DiscussionEndReason, Option<String>)>, Failure> {
        if rounds > 0 {
            if let Some(by) = self.round_end_reason(rounds) {
                return Ok(Some((by, None)));
            }
            if self.team.termination_mode == TerminationMode::CoordinatorDecides {
                return self.ask_coordinator(rounds).await;
            }
        }
        // A round that started before a crash is finished, whatever the limits.
        let is_begun = self.place(rounds + 1).step().interrupted::<Value>()?.is_some();
        let limit = self.limit().filter(|_| !is_begun && !self.place(rounds + 1).step().is_finished());
        Ok(limit.map(|limit| (DiscussionEndReason::Limit(limit), None)))
    }

    fn round_end_reason(&self, rounds: u32) -> Option<DiscussionEndReason> {
        let is_consensus = self.team.termination_mode == TerminationMode::Consensus;
        if !self.last.goes_on() {
            Some(DiscussionEndReason::Hook)
        } else if self.last.is_failed() {
            Some(DiscussionEndReason::MembersFailed)
        } else if is_consensus && votes::is_reached(self.team.quorum, self.last.ready(), self.members.len()) {
            Some(DiscussionEndReason::Consensus)
        } else if rounds >= self.team.max_rounds {
            Some(DiscussionEndReason::MaxRounds)
        } else {
            None
        }
    }

    async fn ask_coordinator(
        &mut self,
        round: u32,
    ) -> Result<Option<(DiscussionEndReason, Option<String>)>, Failure> {
        let is_decided = self.place(round).at("coordinator").step().is_finished();
        if let Some(limit) = self.limit().filter(|_| !is_decided) {
            return Ok(Some((DiscussionEndReason::Limit(limit), None)));
        }
        Ok(match self.decide(round).await? {
            CoordinatorDecision::Concluded(summary) => {
                Some((DiscussionEndReason::Coordinator, Some(summary)))
            }
            CoordinatorDecision::Limit(limit) => Some((DiscussionEndReason::Limit(limit), None)),
            CoordinatorDecision::Failed => Some((DiscussionEndReason::CoordinatorFailed, None)),
            CoordinatorDecision::GoOn(_) => None,
        })
    }

    /// The limit of the coordinator or of a parent that ends the discussion.
    fn limit(&self) -> Option<LimitKind> {
        let run = &self.scope.run;
        let is_stopped = run.control.stop.is_cancelled().then_some(LimitKind::Stopped);
        is_stopped.or_else(|| Budget::new(&self.scope.session.bounds, None).limit_met(&run.recorder.ledger))
    }

    fn place(&self, round: u32) -> Scope {
        self.scope.at(&format!("round:{round}")).internal()
    }

    /// Fails if members were asked and none of them posted anything: an answer of the coordinator alone would look like one of the
    /// team.
    fn require_contribution(&self, end: &DiscussionEnd) -> Result<(), Failure> {
        if end.rounds == 0 || self.channel.has_contribution() {
            return Ok(());
        }
        let members = self.members.iter().map(TeamMember::absence).collect();
        Err(Failure::NoContribution { coordinator: self.scope.name().clone(), members })
    }

    fn dissent(&self) -> Vec<Dissent> {
        self.members.iter().filter_map(TeamMember::dissent).collect()
    }

    async fn announce(&self, end: &DiscussionEnd) -> Result<(), Failure> {
        let place = self.scope.at("team");
        if place.step().is_finished() {
            return Ok(());
        }
        let (by, dissent) = (end.by.word().to_owned(), self.dissent());
        let kind = EventKind::TeamEnded { rounds: end.rounds, by, dissent };
        let events = vec![self.scope.event(Visibility::Internal, kind)];
        place.step().finish(StepKind::Round, end, events, Vec::new()).await
    }

    /// Runs one round up to its barrier, or replays it from the journal.
    async fn round(&mut self, number: u32) -> Result<(), Failure> {
        let place = self.place(number);
        let recorded: Option<Round> = place.step().finished()?;
        let injected = match &recorded {
            Some(round) => round.injected.clone(),
            None => self.begin(&place, number).await?,
        };
        self.channel.extend(injected.iter().cloned());
        let seen = self.channel.len();
        let (round, prompt) = match recorded {
            Some(round) => {
                let prompt =
                    self.members.iter().map(|member| member.recorded_prompt(&place).unwrap_or_default());
                let prompt = prompt.map(Arc::new).collect();
                (round, prompt)
            }
            None => {
                let (turns, prompt) = self.run_members(&place, number).await?;
                (self.finish(&place, number, Round::new(injected, turns)).await?, prompt)
            }
        };
        self.channel.extend(round.posts(number));
        for ((member, turn), prompt) in self.members.iter_mut().zip(&round.turns).zip(prompt) {
            member.advance(turn, &prompt, seen, number);
        }
        self.last = round;
        Ok(())
    }
}
