//! A discussion that nobody holds: what its members and its coordinator would be told.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::{Quorum, Team, TerminationMode};
use baton_core::message::Part;
use jiff::Timestamp;

use super::channel::{Post, Sender};
use super::desk::Desk;
use super::round::Round;
use super::turn::Turn;
use super::votes::Vote;
use super::{By, Discussion, End, Member, tools};
use crate::failure::Failure;
use crate::given::Given;
use crate::run::Input;
use crate::scope::Scope;
use crate::session::Brief;

/// What a member is told in the first round of the scope's team, also one that it does not have.
pub(crate) fn first_turn(scope: &Scope, member: &AgentName, input: &Input) -> Vec<Part> {
    let team = scope.agent.team.clone().unwrap_or_else(|| Team {
        members: vec![member.clone()],
        termination_mode: TerminationMode::CoordinatorDecides,
        max_rounds: 1,
        quorum: Quorum::All,
        member_timeout: scope.agent.limits.timeout,
    });
    let discussion = Discussion::open(scope, &team, input, input);
    discussion.told(&Member::new(member, scope.run.agents.get(member)), 1)
}

/// What the member at this place can do besides its own tools.
pub(crate) fn of_member(member: &Scope) -> Result<Vec<Arc<dyn Given>>, Failure> {
    Ok(tools::of_member(&Arc::new(Desk::open(member)?)))
}

/// What a coordinator does.
pub(crate) struct Coordination {
    /// Its decision after a round, if its team ends that way.
    pub(crate) deciding: Option<(Scope, Brief)>,
    pub(crate) answering: Brief,
}

/// As if there had been one round in which each member wrote what `post` says and was ready.
pub(crate) fn coordination(
    scope: &Scope,
    team: &Team,
    (input, told): (&Input, &Input),
    post: impl Fn(&AgentName) -> String,
) -> Coordination {
    let mut discussion = Discussion::open(scope, team, input, told);
    let turns = team.members.iter().map(|name| turn(name, post(name)));
    discussion.last = Round::new(Vec::new(), turns.collect());
    let posts: Vec<Post> = discussion.last.posts(1).collect();
    discussion.channel.extend(posts);
    let decides = team.termination_mode == TerminationMode::CoordinatorDecides && team.max_rounds > 1;
    let deciding = decides.then(|| discussion.deciding(&discussion.place(1), &discussion.news(1)));
    let (by, summary) = match team.termination_mode {
        TerminationMode::CoordinatorDecides if decides => (By::Coordinator, Some(post(scope.name()))),
        TerminationMode::Consensus => (By::Consensus, None),
        TerminationMode::CoordinatorDecides | TerminationMode::MaxRounds => (By::MaxRounds, None),
    };
    let answering = discussion.answering(&End { rounds: 1, by, summary });
    Coordination { deciding, answering }
}

fn turn(member: &AgentName, text: String) -> Turn {
    let post =
        Post { from: Sender::Member(member.clone()), round: 1, at: Timestamp::now(), text: text.clone() };
    let vote = Some(Vote { ready: true, reason: text.clone() });
    Turn { member: member.clone(), posts: vec![post], vote, words: text, failure: None }
}
