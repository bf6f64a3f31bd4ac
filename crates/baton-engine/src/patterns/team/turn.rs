//! The result of a member's turn.

use baton_core::event::EventKind;
use baton_core::{AgentName, HumanDuration};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::channel::{MAX_POST_CHARS, Post, PostAuthor};
use super::member::TeamMember;
use super::outbox::MemberAction;
use crate::extensions::Vote;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::redaction::{head, redact};
use crate::scope::Scope;

/// Answer of a member that has nothing to say.
pub(super) const PASS: &str = "pass";

/// A member's turn, as it is journaled at the barrier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MemberTurn {
    pub(super) member: AgentName,
    /// Already redacted.
    pub(super) posts: Vec<Post>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) vote: Option<Vote>,
    /// The member's own words, for its memory.
    pub(super) words: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
}

impl MemberTurn {
    /// Builds the turn from the member's tool calls and its final answer. The vote of a failed member does not count.
    pub(super) fn new(
        scope: &Scope,
        member: &TeamMember,
        round: u32,
        said: Vec<MemberAction>,
        result: Result<Outcome, Failure>,
    ) -> Self {
        let (mut posts, mut vote) = (Vec::new(), None);
        for one in said {
            match one {
                MemberAction::Posted { text, at } => posts.push(member.post(round, text, at)),
                MemberAction::Voted(newest) => vote = Some(newest),
            }
        }
        let mut words: Vec<String> = posts.iter().map(|post: &Post| post.text.clone()).collect();
        let failure = match result {
            Ok(outcome) => {
                let text = member.last_words(scope, &outcome);
                let is_read = posts.is_empty() || outcome.agent != member.name;
                if is_read && !is_pass(&text) {
                    posts.push(member.post(round, text.clone(), Timestamp::now()));
                }
                words.push(text);
                None
            }
            Err(failure) => {
                vote = None;
                if let Failure::TimedOut { limit, partial: Some(text) } = &failure {
                    let text = partial_post(*limit, &member.redacted(text));
                    posts.push(member.post(round, text.clone(), Timestamp::now()));
                    words.push(text);
                }
                Some(member.redacted(&failure.to_string()))
            }
        };
        words.retain(|text| !text.is_empty());
        let words = if words.is_empty() { PASS.to_owned() } else { words.join("\n\n") };
        Self { member: member.name.clone(), posts, vote, words, failure }
    }

    fn notice(&self, round: u32) -> Option<String> {
        let reason = self.failure.as_ref()?;
        Some(format!("`{}` {}", self.member, missed_notice(round, reason)))
    }

    /// Posts for the channel, including a notice if the member failed.
    pub(super) fn channel(&self, round: u32) -> impl Iterator<Item = Post> {
        let notice = self.notice(round).map(|text| Post::notice(round, &text));
        self.posts.iter().cloned().chain(notice)
    }

    /// Trace events of the turn.
    pub(super) fn events(&self, round: u32) -> Vec<EventKind> {
        let member = &self.member;
        let posts = self.posts.iter().map(|post| EventKind::Broadcast {
            member: member.clone(),
            round,
            text: post.text.clone(),
        });
        let vote = self.vote.iter().map(|vote| EventKind::Voted {
            member: member.clone(),
            round,
            ready: vote.ready,
            reason: vote.reason.clone(),
        });
        let notice = self.notice(round).map(|text| EventKind::Status { text });
        posts.chain(vote).chain(notice).collect()
    }
}

/// A post that the member's time limit cut off, marked as such.
fn partial_post(limit: HumanDuration, text: &str) -> String {
    head(&format!("(partial: cut off after {limit})\n{text}"), MAX_POST_CHARS)
}

impl TeamMember {
    /// The text, redacted as the member's file says.
    fn redacted(&self, text: &str) -> String {
        self.agent.as_ref().map_or_else(|| text.to_owned(), |agent| redact(agent, text))
    }

    fn post(&self, round: u32, text: String, at: Timestamp) -> Post {
        Post { from: PostAuthor::Member(self.name.clone()), round, at, text }
    }

    /// The member's final answer, redacted as its author and the member say. It becomes a post if the member posted nothing else
    /// or another agent gave the answer.
    fn last_words(&self, scope: &Scope, outcome: &Outcome) -> String {
        let speaker = scope.run.agents.get(&outcome.agent);
        let givers = speaker.into_iter().chain(&self.agent);
        let text = givers.fold(outcome.answer.text.trim().to_owned(), |text, giver| redact(giver, &text));
        head(&text, MAX_POST_CHARS)
    }
}

pub(super) fn missed_notice(round: u32, reason: &str) -> String {
    format!("could not take part in round {round}: {reason}")
}

/// Whether the text is empty or the single word `pass`, ignoring case and punctuation.
pub(super) fn is_pass(text: &str) -> bool {
    let is_around = |c: char| c.is_whitespace() || c.is_ascii_punctuation() || "“”„‘’«»…–—".contains(c);
    let word = text.trim_matches(is_around);
    word.is_empty() || word.eq_ignore_ascii_case(PASS)
}

#[cfg(test)]
mod tests {
    use super::is_pass;

    /// E36
    #[test]
    fn pass_is_a_single_word() {
        for text in [
            "pass",
            " Pass.\n",
            "`pass`",
            "**PASS**",
            "(pass)",
            "_pass_",
            "“Pass”",
            "'pass…'",
            "> pass",
            "",
            " … ",
        ] {
            assert!(is_pass(text), "{text:?}");
        }
        for text in ["pass the salt", "bypass", "I passed", "👍", "no pass"] {
            assert!(!is_pass(text), "{text:?}");
        }
    }
}
