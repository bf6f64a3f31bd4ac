//! The append-only message channel of a team. Each reader has a cursor.

use baton_core::AgentName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fence::Fence;
use crate::redaction::head;

/// Maximum length of a post, in characters. Longer ones are cut, so that the newest always fit into a transcript.
pub(super) const MAX_POST_CHARS: usize = 16_000;
/// Maximum length of all unread posts in a prompt, in characters. Beyond it, all posts are cut to equal length.
const MAX_UNREAD_CHARS: usize = 60_000;
/// Minimum length that a post is cut to, in characters.
const MIN_POST_CHARS: usize = 300;
/// Maximum length of the transcript for the coordinator's answer, in characters.
const MAX_TRANSCRIPT_CHARS: usize = 80_000;

/// A message to the whole team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Post {
    pub(super) from: PostAuthor,
    pub(super) round: u32,
    pub(super) at: Timestamp,
    /// Already redacted.
    pub(super) text: String,
}

/// Author of a post.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PostAuthor {
    Member(AgentName),
    Coordinator(AgentName),
    /// The engine, or a hook.
    Notice,
}

impl PostAuthor {
    fn name(&self) -> Option<&AgentName> {
        match self {
            Self::Member(name) | Self::Coordinator(name) => Some(name),
            Self::Notice => None,
        }
    }
}

impl Post {
    pub(super) fn notice(round: u32, text: &str) -> Self {
        Self { from: PostAuthor::Notice, round, at: Timestamp::now(), text: head(text, MAX_POST_CHARS) }
    }

    fn is_from(&self, name: &AgentName) -> bool {
        self.from.name() == Some(name)
    }

    fn heading(&self) -> String {
        let (round, at) = (self.round, self.at.strftime("%Y-%m-%d %H:%M:%S UTC"));
        match &self.from {
            PostAuthor::Member(name) => format!("### `{name}`, round {round}, {at}"),
            PostAuthor::Coordinator(name) => {
                format!("### `{name}`, the coordinator, after round {round}, {at}")
            }
            PostAuthor::Notice => format!("### Notice, round {round}, {at}"),
        }
    }

    fn block(&self, fence: &Fence, most: usize) -> String {
        fence.block("post", &self.heading(), &head(&self.text, most))
    }

    fn len(&self) -> usize {
        self.text.chars().count()
    }
}

/// The posts of a team, oldest first.
#[derive(Debug, Default)]
pub(super) struct TeamChannel {
    posts: Vec<Post>,
}

impl TeamChannel {
    pub(super) fn extend(&mut self, posts: impl IntoIterator<Item = Post>) {
        self.posts.extend(posts);
    }

    pub(super) fn len(&self) -> usize {
        self.posts.len()
    }

    /// Whether a member has posted anything.
    pub(super) fn has_contribution(&self) -> bool {
        self.posts.iter().any(|post| matches!(post.from, PostAuthor::Member(_)))
    }

    /// Posts of others since `cursor`, as fenced blocks.
    pub(super) fn unread(&self, reader: &AgentName, cursor: usize, fence: &Fence) -> Vec<String> {
        let (posts, most) = self.news(reader, cursor);
        posts.into_iter().map(|post| post.block(fence, most)).collect()
    }

    /// Posts of others since `cursor`, as author and text.
    pub(super) fn said(
        &self,
        reader: &AgentName,
        cursor: usize,
    ) -> impl Iterator<Item = (Option<&AgentName>, String)> {
        let (posts, most) = self.news(reader, cursor);
        posts.into_iter().map(move |post| (post.from.name(), head(&post.text, most)))
    }

    /// Posts of others since `cursor`, and the length that each is cut to.
    fn news(&self, reader: &AgentName, cursor: usize) -> (Vec<&Post>, usize) {
        let posts: Vec<&Post> = self.posts[cursor..].iter().filter(|post| !post.is_from(reader)).collect();
        let total: usize = posts.iter().map(|post| post.len()).sum();
        let share = MAX_UNREAD_CHARS / posts.len().max(1);
        let most = if total > MAX_UNREAD_CHARS { share.max(MIN_POST_CHARS) } else { usize::MAX };
        (posts, most)
    }

    /// The newest posts that fit, as fenced blocks, and the number of older ones that are left out.
    pub(super) fn transcript(&self, fence: &Fence) -> (Vec<String>, usize) {
        let mut chars_left = MAX_TRANSCRIPT_CHARS;
        let newest = self.posts.iter().rev().take_while(|post| {
            let fits = post.len() <= chars_left;
            chars_left = chars_left.saturating_sub(post.len());
            fits
        });
        let mut blocks: Vec<String> = newest.map(|post| post.block(fence, usize::MAX)).collect();
        blocks.reverse();
        let left_out = self.posts.len() - blocks.len();
        (blocks, left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(posts: usize, length: usize) -> TeamChannel {
        let name = |n: usize| AgentName::parse(&format!("m{n}")).unwrap();
        let post = |n| Post {
            from: PostAuthor::Member(name(n)),
            round: 1,
            at: Timestamp::UNIX_EPOCH,
            text: "x".repeat(length),
        };
        TeamChannel { posts: (0..posts).map(post).collect() }
    }

    /// E34
    #[test]
    fn reader_gets_others_posts_after_its_cursor() {
        let (channel, fence) = (channel(3, 10), Fence::new());
        let reader = AgentName::parse("m1").unwrap();
        assert_eq!(channel.unread(&reader, 0, &fence).len(), 2);
        assert_eq!(channel.unread(&reader, 2, &fence).len(), 1);
        assert!(channel.unread(&reader, 3, &fence).is_empty());
    }

    #[test]
    fn unread_posts_are_bounded() {
        let (long, fence) = (channel(40, 16_000), Fence::new());
        let unread: usize =
            long.unread(&AgentName::parse("x").unwrap(), 0, &fence).iter().map(String::len).sum();
        assert!(unread < MAX_UNREAD_CHARS + 40 * 200, "{unread}");
        let (blocks, left_out) = long.transcript(&fence);
        assert_eq!((blocks.len(), left_out), (5, 35), "the newest are kept whole");
        let (blocks, left_out) = channel(3, 10).transcript(&fence);
        assert_eq!((blocks.len(), left_out), (3, 0));
    }
}
