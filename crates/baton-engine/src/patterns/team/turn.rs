//! What a member did in one round.

use baton_core::AgentName;
use baton_core::event::EventKind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::channel::{LONGEST_POST, Post, Sender};
use super::desk::Said;
use super::member::Member;
use super::votes::Vote;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::patterns::handover::{head, shared};
use crate::scope::Scope;

/// What a member answers that has nothing to say.
pub(super) const PASS: &str = "pass";

/// What a member did in a round, as it is recorded at the barrier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) member: AgentName,
    /// As others may see them.
    pub(super) posts: Vec<Post>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) vote: Option<Vote>,
    /// What it remembers to have said.
    pub(super) words: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
}

impl Turn {
    /// What a member said with its tools and came to in the end. A vote counts only from who took part to the end.
    pub(super) fn new(
        scope: &Scope,
        member: &Member,
        round: u32,
        said: Vec<Said>,
        result: Result<Outcome, Failure>,
    ) -> Self {
        let (mut posts, mut vote) = (Vec::new(), None);
        for one in said {
            match one {
                Said::Posted { text, at } => posts.push(member.post(round, text, at)),
                Said::Voted(newest) => vote = Some(newest),
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
                let text = failure.to_string();
                Some(member.agent.as_ref().map_or(text.clone(), |agent| shared(agent, &text)))
            }
        };
        words.retain(|text| !text.is_empty());
        let words = if words.is_empty() { PASS.to_owned() } else { words.join("\n\n") };
        Self { member: member.name.clone(), posts, vote, words, failure }
    }

    fn notice(&self, round: u32) -> Option<String> {
        let reason = self.failure.as_ref()?;
        Some(format!("`{}` {}", self.member, missed(round, reason)))
    }

    /// What others read of it.
    pub(super) fn channel(&self, round: u32) -> impl Iterator<Item = Post> {
        let notice = self.notice(round).map(|text| Post::notice(round, &text));
        self.posts.iter().cloned().chain(notice)
    }

    /// The same for those who may read traces.
    pub(super) fn happened(&self, round: u32) -> Vec<EventKind> {
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

impl Member {
    fn post(&self, round: u32, text: String, at: Timestamp) -> Post {
        Post { from: Sender::Member(self.name.clone()), round, at, text }
    }

    /// What its turn ended with, as others may see it: whoever speaks for it is somebody else to it, too. They read it when it told
    /// them nothing else, or when somebody else speaks for it.
    fn last_words(&self, scope: &Scope, outcome: &Outcome) -> String {
        let speaker = scope.run.agents.get(&outcome.agent);
        let givers = speaker.into_iter().chain(&self.agent);
        let text = givers.fold(outcome.answer.text.trim().to_owned(), |text, giver| shared(giver, &text));
        head(&text, LONGEST_POST)
    }
}

pub(super) fn missed(round: u32, reason: &str) -> String {
    format!("could not take part in round {round}: {reason}")
}

/// Nothing to say.
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
    fn a_pass_is_one_word() {
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
