//! The agent that declares the team: it decides after each round whether to continue, and answers in the end.

use std::sync::Arc;

use baton_core::agent::{Agent, PlanningStrategy};
use baton_core::event::EventKind;
use baton_core::message::{Part, Visibility};
use baton_core::store::StepKind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::channel::{MAX_POST_CHARS, Post, PostAuthor};
use super::memory::remember;
use super::tools::{CONCLUDE, ConcludeTeam};
use super::turn::is_pass;
use super::{Discussion, DiscussionEnd};
use crate::bounds::LimitKind;
use crate::engine_tool::SessionEnding;
use crate::failure::Failure;
use crate::fence::Fence;
use crate::input::Input;
use crate::outcome::Outcome;
use crate::patterns;
use crate::redaction::{head, redact};
use crate::scope::Scope;
use crate::session::{self, OnLimit, SessionEnd, SessionSpec};

/// Maximum number of turns for a decision.
const MAX_DECISION_TURNS: u32 = 3;

/// The coordinator's decision after a round, as it is journaled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CoordinatorDecision {
    Concluded(String),
    /// Continues, with guidance for the members if the coordinator gave any.
    GoOn(Option<Post>),
    /// A limit ended the session before a decision.
    Limit(LimitKind),
    Failed,
}

impl Discussion<'_> {
    /// Lets the coordinator read the new posts and decide. After a crash, returns the journaled decision.
    pub(super) async fn decide(&mut self, round: u32) -> Result<CoordinatorDecision, Failure> {
        let place = self.place(round).at("coordinator");
        let prompt = self.news(round);
        let ruling = match place.step().finished()? {
            Some(ruling) => ruling,
            None => self.request_decision(&place, round, &prompt).await?,
        };
        self.read = self.channel.len();
        if let CoordinatorDecision::GoOn(guidance) = &ruling {
            let text = guidance.as_ref().map_or("Go on.", |post| post.text.as_str()).to_owned();
            remember(&mut self.coordinator_history, &prompt, text);
            self.channel.extend(guidance.clone());
        }
        Ok(ruling)
    }

    /// Runs the coordinator's session and journals the decision. A failure that does not end the run is a decision, too.
    async fn request_decision(
        &self,
        place: &Scope,
        round: u32,
        prompt: &Arc<Vec<Part>>,
    ) -> Result<CoordinatorDecision, Failure> {
        let (chair, spec) = self.deciding(place, prompt);
        let ruling = match session::run_session(&chair, spec).await {
            Ok(ended) => self.decision_from(round, ended),
            Err(failure)
                if failure.is_fatal(&self.scope.run.control.cancel) || self.scope.cancel.is_cancelled() =>
            {
                return Err(failure);
            }
            Err(failure) => {
                tracing::warn!(agent = %self.scope.name(), %failure, "a coordinator could not decide");
                CoordinatorDecision::Failed
            }
        };
        let said = match &ruling {
            CoordinatorDecision::GoOn(Some(post)) => Some(post.text.clone()),
            _ => None,
        };
        let events = said.map(|text| {
            let kind = EventKind::Broadcast { member: self.scope.name().clone(), round, text };
            place.event(Visibility::Internal, kind)
        });
        place.step().finish(StepKind::Round, &ruling, events.into_iter().collect(), Vec::new()).await?;
        Ok(ruling)
    }

    /// Scope and session of a decision.
    pub(super) fn deciding(&self, place: &Scope, prompt: &Arc<Vec<Part>>) -> (Scope, SessionSpec) {
        let chair = coordinator_scope(place);
        let history = self.prompt.history.iter().chain(&self.coordinator_history).cloned().collect();
        let input = Input { history: Arc::new(history), parts: Arc::clone(prompt), ..Input::default() };
        let mut spec = SessionSpec::new(&chair, &input, vec![Arc::new(ConcludeTeam::default())]);
        spec.own_tools = false;
        spec.max_turns = Some(MAX_DECISION_TURNS);
        spec.on_limit = OnLimit::End;
        (chair, spec)
    }

    fn decision_from(&self, round: u32, ended: SessionEnd) -> CoordinatorDecision {
        match ended {
            SessionEnd::ByTool(SessionEnding::Concluded(summary)) => CoordinatorDecision::Concluded(summary),
            SessionEnd::Answered(concluded) => {
                let text = head(&redact(self.scope.agent(), concluded.answer.text.trim()), MAX_POST_CHARS);
                let from = PostAuthor::Coordinator(self.scope.name().clone());
                let post = Post { from, round, at: Timestamp::now(), text };
                CoordinatorDecision::GoOn((!is_pass(&post.text)).then_some(post))
            }
            SessionEnd::ByTool(SessionEnding::Passed(_) | SessionEnding::Returned)
            | SessionEnd::Undecided(_) => {
                self.limit().map_or(CoordinatorDecision::GoOn(None), CoordinatorDecision::Limit)
            }
        }
    }

    /// The coordinator's prompt: the request, then the unread posts and the votes.
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
        Arc::new(self.prompt.parts.iter().cloned().chain([Part::text(blocks.join("\n\n"))]).collect())
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

    /// Runs the coordinator's session with its own tools, on the request and the discussion.
    pub(super) async fn answer(&self, end: &DiscussionEnd) -> Result<Outcome, Failure> {
        Ok(session::run_session(self.scope, self.answering(end)).await?.outcome(self.scope))
    }

    pub(super) fn answering(&self, end: &DiscussionEnd) -> SessionSpec {
        let parts = self.prompt.parts.iter().cloned().chain([Part::text(self.report(end))]).collect();
        let input = Input { parts: Arc::new(parts), ..self.prompt.clone() };
        SessionSpec::new(self.scope, &input, patterns::tools(self.scope, self.input))
    }

    fn report(&self, end: &DiscussionEnd) -> String {
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
             in your own words, for the person or agent that asked; they have not seen the discussion. Say where the team did not agree.",
            end.rounds
        ));
        blocks.join("\n\n")
    }
}

/// The coordinator's scope for a decision: without planning and without an output schema.
fn coordinator_scope(place: &Scope) -> Scope {
    let planning_strategy = PlanningStrategy::NativeReact;
    let agent = Agent { planning_strategy, output_schema: None, ..Agent::clone(place.agent()) };
    place.clone().with_session(|session| session.agent = Arc::new(agent))
}
