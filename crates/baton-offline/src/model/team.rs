//! A discussion: what a member says and how it votes, when the coordinator ends it, and what it came to.

use serde_json::json;

use super::Move;
use super::notice::{closed, quotable};
use super::own;
use super::sentences::beginning;
use super::situation::Situation;

const MOST: usize = 800;
/// Who the engine itself is on the channel.
const NOTICE: &str = "notice";
pub(super) const POSTS: &[&str] = &["post", "broadcast", "posts"];

/// The turn of a member or of the coordinator between rounds; `None` outside of a discussion.
pub(super) fn turn(situation: &Situation<'_>) -> Option<Move> {
    if situation.tool("conclude_team").is_some() {
        return Some(coordinate(situation));
    }
    let is_member = situation.tool("broadcast").is_some() || situation.tool("vote_conclude").is_some();
    is_member.then(|| contribute(situation))
}

/// Says its point once, votes from the second round on, and ends its turn.
fn contribute(situation: &Situation<'_>) -> Move {
    let has_spoken = has_spoken(situation);
    if let Some(tool) =
        situation.tool("broadcast").filter(|tool| !has_spoken && !situation.has_called(&tool.name))
    {
        let message = quotable(&own::part(situation));
        return Move::Call { tool: tool.name.clone(), arguments: json!({ "message": message }) };
    }
    let vote = situation.tool("vote_conclude").filter(|tool| has_spoken && !situation.has_called(&tool.name));
    if let Some(tool) = vote {
        let arguments =
            json!({ "ready": true, "reason": "my point has been made, and I have heard the others" });
        return Move::Call { tool: tool.name.clone(), arguments };
    }
    // The last words go to the others only if nothing else did.
    let is_said = has_spoken || situation.has_called("broadcast");
    Move::Say(if is_said { "pass".to_owned() } else { quotable(&own::part(situation)) })
}

/// Whether this is a later round: members of a round speak at the same time, so whoever reads posts has spoken before.
fn has_spoken(situation: &Situation<'_>) -> bool {
    let mut posts = situation.blocks(POSTS);
    situation.has_spoken || posts.any(|post| post.author() != NOTICE)
}

/// The coordinator ends a discussion in which everybody has spoken.
fn coordinate(situation: &Situation<'_>) -> Move {
    let summary = minutes(situation).filter(|_| !situation.has_called("conclude_team"));
    match summary {
        Some(summary) => {
            Move::Call { tool: "conclude_team".to_owned(), arguments: json!({ "summary": summary }) }
        }
        None => Move::Say(closed(&own::part(situation))),
    }
}

/// What each of them said, who was not there, and who does not agree.
pub(super) fn minutes(situation: &Situation<'_>) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    for block in situation.blocks(POSTS) {
        let (author, text) = (block.author(), beginning(&quotable(&block.text), MOST));
        let line = if author == NOTICE { format!("- {text}") } else { format!("- **{author}**: {text}") };
        if !text.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    let against =
        situation.blocks(&["dissent"]).map(|block| format!("Not agreed or not there: {}", block.text));
    let against: Vec<String> = against.collect();
    let said = (!lines.is_empty()).then(|| format!("This is what was said:\n\n{}", lines.join("\n")));
    let parts: Vec<String> = said.into_iter().chain(against).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}
