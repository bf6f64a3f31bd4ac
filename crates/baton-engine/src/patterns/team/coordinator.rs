//! The agent that declares the team: it decides between the rounds, and answers in the end.

use std::sync::Arc;

use baton_core::agent::{Agent, PlanningStrategy};
use baton_core::event::EventKind;
use baton_core::message::{Part, Visibility};
use baton_core::store::StepKind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::channel::{LONGEST_POST, Post, Sender};
use super::memory::remember;
use super::tools::{CONCLUDE, ConcludeTeam};
use super::turn::is_pass;
use super::{Discussion, End};
use crate::budget::Limit;
use crate::failure::Failure;
use crate::given::Ending;
use crate::outcome::Outcome;
use crate::patterns;
use crate::patterns::fence::Fence;
use crate::patterns::handover::{head, shared};
use crate::run::Input;
use crate::scope::Scope;
use crate::session::{self, AtLimit, Brief, Ended};

/// Turns that a decision may take.
const DECIDING_TURNS: u32 = 3;

/// What the coordinator decided after a round, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ruling {
    Concluded(String),
    /// What the members should turn to, if it said so.
    GoOn(Option<Post>),
    /// There was no time or money left for a decision.
    Limit(Limit),
    Failed,
}

impl Discussion<'_> {
    /// The coordinator's turn after a round. It sees what is new, and ends the discussion or says what it should turn to.
    pub(super) async fn decide(&mut self, round: u32) -> Result<Ruling, Failure> {
        let place = self.place(round).at("coordinator");
        let told = self.news(round);
        let ruling = match place.finished()? {
            Some(ruling) => ruling,
            None => self.rule(&place, round, &told).await?,
        };
        self.read = self.channel.len();
        if let Ruling::GoOn(guidance) = &ruling {
            let text = guidance.as_ref().map_or("Go on.", |post| post.text.as_str()).to_owned();
            remember(&mut self.chaired, &told, text);
            self.channel.extend(guidance.clone());
        }
        Ok(ruling)
    }

    /// Asks, and keeps what came of it.
    async fn rule(&self, place: &Scope, round: u32, told: &Arc<Vec<Part>>) -> Result<Ruling, Failure> {
        let (chair, brief) = self.deciding(place, told);
        let ruling = match session::hold(&chair, brief).await {
            Ok(ended) => self.ruling(round, ended),
            Err(failure) if failure.ends_the_run(self.scope) || self.scope.cancel.is_cancelled() => {
                return Err(failure);
            }
            Err(failure) => {
                tracing::warn!(agent = %self.scope.name(), %failure, "a coordinator could not decide");
                Ruling::Failed
            }
        };
        let said = match &ruling {
            Ruling::GoOn(Some(post)) => Some(post.text.clone()),
            _ => None,
        };
        let events = said.map(|text| {
            let kind = EventKind::Broadcast { member: self.scope.name().clone(), round, text };
            place.event_as(Visibility::Internal, kind)
        });
        place.finish(StepKind::Round, &ruling, events.into_iter().collect(), Vec::new()).await?;
        Ok(ruling)
    }

    /// Where and on which terms it decides.
    pub(super) fn deciding(&self, place: &Scope, told: &Arc<Vec<Part>>) -> (Scope, Brief) {
        let chair = chair(place);
        let history = self.told.history.iter().chain(&self.chaired).cloned().collect();
        let input = Input { history: Arc::new(history), parts: Arc::clone(told), ..Input::default() };
        let mut brief = Brief::new(&chair, &input, vec![Arc::new(ConcludeTeam::default())]);
        brief.own_tools = false;
        brief.max_turns = Some(DECIDING_TURNS);
        brief.at_limit = AtLimit::End;
        (chair, brief)
    }

    fn ruling(&self, round: u32, ended: Ended) -> Ruling {
        match ended {
            Ended::By(Ending::Concluded(summary)) => Ruling::Concluded(summary),
            Ended::Answered(concluded) => {
                let text = head(&shared(&self.scope.agent, concluded.answer.text.trim()), LONGEST_POST);
                let from = Sender::Coordinator(self.scope.name().clone());
                let post = Post { from, round, at: Timestamp::now(), text };
                Ruling::GoOn((!is_pass(&post.text)).then_some(post))
            }
            Ended::By(Ending::Passed(_) | Ending::Returned) | Ended::Undecided(_) => {
                self.limit().map_or(Ruling::GoOn(None), Ruling::Limit)
            }
        }
    }

    /// The request, and last what the coordinator has not read yet.
    pub(super) fn news(&self, round: u32) -> Arc<Vec<Part>> {
        let fence = Fence::new();
        let mut blocks = vec![fence.material()];
        blocks.extend(self.channel.unread(self.scope.name(), self.read, &fence));
        blocks.push(fence.block("votes", "### Votes in this round", &self.votes()));
        let most = self.team.max_rounds;
        blocks.push(format!(
            "You coordinate this team. Round {round} of at most {most} is over; above is what was said in it. If it is enough to \
             answer the request, call `{CONCLUDE}`. Otherwise say in a few sentences what the members should turn to next; they \
             will read it. Do not answer the request yet."
        ));
        Arc::new(self.told.parts.iter().cloned().chain([Part::text(blocks.join("\n\n"))]).collect())
    }

    fn votes(&self) -> String {
        let lines = self.last.turns.iter().map(|turn| match (&turn.vote, &turn.failure) {
            (_, Some(_)) => format!("`{}` did not take part", turn.member),
            (None, None) => format!("`{}` did not vote", turn.member),
            (Some(vote), None) => {
                let word = if vote.ready { "ready" } else { "not ready" };
                format!("`{}` is {word}: {}", turn.member, vote.reason)
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The coordinator's own session, with its own tools, on the request and the discussion.
    pub(super) async fn answer(&self, end: &End) -> Result<Outcome, Failure> {
        Ok(session::hold(self.scope, self.answering(end)).await?.outcome(self.scope))
    }

    pub(super) fn answering(&self, end: &End) -> Brief {
        let parts = self.told.parts.iter().cloned().chain([Part::text(self.report(end))]).collect();
        let input = Input { parts: Arc::new(parts), ..self.told.clone() };
        Brief::new(self.scope, &input, patterns::tools(self.scope, self.input))
    }

    fn report(&self, end: &End) -> String {
        let fence = Fence::new();
        let (transcript, left_out) = self.channel.transcript(&fence);
        let mut blocks = vec![fence.material()];
        if left_out > 0 {
            blocks.push(format!("The first {left_out} messages of the discussion are left out."));
        }
        blocks.extend(transcript);
        if !self.last.turns.is_empty() {
            blocks.push(fence.block("votes", "### Votes in the last round", &self.votes()));
        }
        if let Some(summary) = &end.summary {
            blocks.push(fence.block("summary", "### Your summary", summary));
        }
        let dissent = self.dissent();
        if !dissent.is_empty() {
            let lines = dissent.iter().map(|one| format!("`{}`: {}", one.member, one.reason));
            let lines: Vec<String> = lines.collect();
            blocks.push(fence.block("dissent", "### Not agreed or not there", &lines.join("\n")));
        }
        let (reason, rounds) = (end.by.reason(), if end.rounds == 1 { "round" } else { "rounds" });
        blocks.push(format!(
            "The discussion of your team is over after {} {rounds}: {reason}. Above is what was said. Answer the request now, \
             in your own words and for whoever asked; they have not seen the discussion. Say where the team did not agree.",
            end.rounds
        ));
        blocks.join("\n\n")
    }
}

/// The coordinator at its place between the rounds: it decides in plain words, whatever its answers have to look like.
fn chair(place: &Scope) -> Scope {
    let mut chair = place.clone();
    chair.agent = Arc::new(Agent {
        planning_strategy: PlanningStrategy::NativeReact,
        output_schema: None,
        ..Agent::clone(&place.agent)
    });
    chair
}
