//! What a team has said to itself. Nothing on it ever changes; everybody reads on from where they stopped.

use baton_core::AgentName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::patterns::fence::Fence;
use crate::patterns::handover::head;

/// In characters. Longer ones are cut, so that the newest always fit into what is read.
pub(super) const LONGEST_POST: usize = 16_000;
/// What is read at once, in characters. When there is more, each post is shortened alike.
const MOST_UNREAD: usize = 60_000;
/// What is always left of a post.
const LEAST_OF_A_POST: usize = 300;
/// What the coordinator answers from, in characters.
const MOST_TRANSCRIPT: usize = 80_000;

/// Something that was said to all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Post {
    pub(super) from: Sender,
    pub(super) round: u32,
    pub(super) at: Timestamp,
    /// As others may see it.
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sender {
    Member(AgentName),
    Coordinator(AgentName),
    /// The engine, or the code that accompanies the team.
    Notice,
}

impl Sender {
    fn name(&self) -> Option<&AgentName> {
        match self {
            Self::Member(name) | Self::Coordinator(name) => Some(name),
            Self::Notice => None,
        }
    }
}

impl Post {
    pub(super) fn notice(round: u32, text: &str) -> Self {
        Self { from: Sender::Notice, round, at: Timestamp::now(), text: head(text, LONGEST_POST) }
    }

    fn is_from(&self, name: &AgentName) -> bool {
        self.from.name() == Some(name)
    }

    fn heading(&self) -> String {
        let (round, at) = (self.round, self.at.strftime("%Y-%m-%d %H:%M:%S UTC"));
        match &self.from {
            Sender::Member(name) => format!("### `{name}`, round {round}, {at}"),
            Sender::Coordinator(name) => format!("### `{name}`, the coordinator, after round {round}, {at}"),
            Sender::Notice => format!("### Notice, round {round}, {at}"),
        }
    }

    fn block(&self, fence: &Fence, most: usize) -> String {
        fence.block("post", &self.heading(), &head(&self.text, most))
    }

    fn len(&self) -> usize {
        self.text.chars().count()
    }
}

#[derive(Debug, Default)]
pub(super) struct Channel {
    posts: Vec<Post>,
}

impl Channel {
    pub(super) fn extend(&mut self, posts: impl IntoIterator<Item = Post>) {
        self.posts.extend(posts);
    }

    pub(super) fn len(&self) -> usize {
        self.posts.len()
    }

    /// What others said since `cursor`, as blocks.
    pub(super) fn unread(&self, reader: &AgentName, cursor: usize, fence: &Fence) -> Vec<String> {
        let (posts, most) = self.news(reader, cursor);
        posts.into_iter().map(|post| post.block(fence, most)).collect()
    }

    /// The same for whoever the reader asks: who said it, and what.
    pub(super) fn said(
        &self,
        reader: &AgentName,
        cursor: usize,
    ) -> impl Iterator<Item = (Option<&AgentName>, String)> {
        let (posts, most) = self.news(reader, cursor);
        posts.into_iter().map(move |post| (post.from.name(), head(&post.text, most)))
    }

    /// What others said since `cursor`, and how much of each is read.
    fn news(&self, reader: &AgentName, cursor: usize) -> (Vec<&Post>, usize) {
        let posts: Vec<&Post> = self.posts[cursor..].iter().filter(|post| !post.is_from(reader)).collect();
        let total: usize = posts.iter().map(|post| post.len()).sum();
        let share = MOST_UNREAD / posts.len().max(1);
        let most = if total > MOST_UNREAD { share.max(LEAST_OF_A_POST) } else { usize::MAX };
        (posts, most)
    }

    /// The last part of all that was said, as blocks, and how many posts are not in it.
    pub(super) fn transcript(&self, fence: &Fence) -> (Vec<String>, usize) {
        let mut room = MOST_TRANSCRIPT;
        let newest = self.posts.iter().rev().take_while(|post| {
            let fits = post.len() <= room;
            room = room.saturating_sub(post.len());
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

    fn channel(posts: usize, length: usize) -> Channel {
        let name = |n: usize| AgentName::parse(&format!("m{n}")).unwrap();
        let post = |n| Post {
            from: Sender::Member(name(n)),
            round: 1,
            at: Timestamp::UNIX_EPOCH,
            text: "x".repeat(length),
        };
        Channel { posts: (0..posts).map(post).collect() }
    }

    /// E34
    #[test]
    fn everybody_reads_on_from_their_cursor_and_never_themselves() {
        let (channel, fence) = (channel(3, 10), Fence::new());
        let reader = AgentName::parse("m1").unwrap();
        assert_eq!(channel.unread(&reader, 0, &fence).len(), 2);
        assert_eq!(channel.unread(&reader, 2, &fence).len(), 1);
        assert!(channel.unread(&reader, 3, &fence).is_empty());
    }

    #[test]
    fn what_is_read_at_once_has_a_bound_whatever_was_said() {
        let (long, fence) = (channel(40, 16_000), Fence::new());
        let unread: usize =
            long.unread(&AgentName::parse("x").unwrap(), 0, &fence).iter().map(String::len).sum();
        assert!(unread < MOST_UNREAD + 40 * 200, "{unread}");
        let (blocks, left_out) = long.transcript(&fence);
        assert_eq!((blocks.len(), left_out), (5, 35), "the newest are kept whole");
        let (blocks, left_out) = channel(3, 10).transcript(&fence);
        assert_eq!((blocks.len(), left_out), (3, 0));
    }
}
