//! Previews the prompts of members and coordinator without holding a discussion.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::{Quorum, Team, TerminationMode};
use baton_core::message::Part;
use jiff::Timestamp;

use super::channel::{Post, PostAuthor};
use super::outbox::MemberOutbox;
use super::round::Round;
use super::turn::MemberTurn;
use super::{Discussion, DiscussionEnd, DiscussionEndReason, TeamMember, tools};
use crate::engine_tool::EngineTool;
use crate::extensions::Vote;
use crate::failure::Failure;
use crate::input::Input;
use crate::scope::Scope;
use crate::session::SessionSpec;

/// The member's prompt in the first round. Works also for an agent without a team, as if it had one with this member.
pub(crate) fn first_turn(scope: &Scope, member: &AgentName, input: &Input) -> Vec<Part> {
    let team = scope.agent().team.clone().unwrap_or_else(|| Team {
        members: vec![member.clone()],
        termination_mode: TerminationMode::CoordinatorDecides,
        max_rounds: 1,
        quorum: Quorum::All,
        member_timeout: scope.agent().limits.timeout,
    });
    let discussion = Discussion::open(scope, &team, input, input);
    discussion.member_prompt(&TeamMember::new(member, scope.run.agents.get(member)), 1)
}

/// The tools that the member at this scope has in addition to its own.
pub(crate) fn of_member(member: &Scope) -> Result<Vec<Arc<dyn EngineTool>>, Failure> {
    Ok(tools::of_member(&Arc::new(MemberOutbox::open(member)?)))
}

/// The sessions of a coordinator.
pub(crate) struct CoordinatorPreview {
    /// The decision after a round. `None` if the coordinator never decides.
    pub(crate) deciding: Option<(Scope, SessionSpec)>,
    pub(crate) answering: SessionSpec,
}

/// Previews the coordinator after one round in which each member posted `post` and voted to conclude.
pub(crate) fn coordination(
    scope: &Scope,
    team: &Team,
    (input, prompt): (&Input, &Input),
    post: impl Fn(&AgentName) -> String,
) -> CoordinatorPreview {
    let mut discussion = Discussion::open(scope, team, input, prompt);
    let turns = team.members.iter().map(|name| turn(name, post(name)));
    discussion.last = Round::new(Vec::new(), turns.collect());
    let posts: Vec<Post> = discussion.last.posts(1).collect();
    discussion.channel.extend(posts);
    let decides = team.termination_mode == TerminationMode::CoordinatorDecides && team.max_rounds > 1;
    let deciding = decides.then(|| discussion.deciding(&discussion.place(1), &discussion.news(1)));
    let (by, summary) = match team.termination_mode {
        TerminationMode::CoordinatorDecides if decides => {
            (DiscussionEndReason::Coordinator, Some(post(scope.name())))
        }
        TerminationMode::Consensus => (DiscussionEndReason::Consensus, None),
        TerminationMode::CoordinatorDecides | TerminationMode::MaxRounds => {
            (DiscussionEndReason::MaxRounds, None)
        }
    };
    let answering = discussion.answering(&DiscussionEnd { rounds: 1, by, summary });
    CoordinatorPreview { deciding, answering }
}

fn turn(member: &AgentName, text: String) -> MemberTurn {
    let post =
        Post { from: PostAuthor::Member(member.clone()), round: 1, at: Timestamp::now(), text: text.clone() };
    let vote = Some(Vote { ready: true, reason: text.clone() });
    MemberTurn { member: member.clone(), posts: vec![post], vote, words: text, failure: None }
}
