//! Passing the baton: routes and transfers.

use baton_core::tool::ToolSpec;
use serde_json::json;

use super::Move;
use super::destination::{best, description, destinations, reason};
use super::situation::Situation;
use super::words::{overlap, shared, telling};

const PREFIX: &str = "transfer_to_";
/// Blocks that come with a baton that was just passed.
const HANDED_OVER: &[&str] = &["work", "reason", "handover", "context"];

/// `route_to`, to whoever fits best and was not refused before.
pub(super) fn route(situation: &Situation<'_>) -> Option<Move> {
    let tool = situation.tool("route_to")?;
    let allowed = &tool.parameters["properties"]["agent"]["enum"];
    let mut found = destinations(allowed, &description(tool, "agent"), &situation.question);
    let was_refused = |name: &str| situation.done.iter().any(|done| done.arguments["agent"] == name);
    found.retain(|destination| !was_refused(&destination.name));
    let chosen = best(&found)?;
    let is_forced = situation.request.tool_choice != baton_core::model::ToolChoice::Auto;
    if chosen.fits.is_empty() && !is_forced {
        return None;
    }
    let arguments = json!({ "agent": chosen.name, "reason": chosen.reason() });
    Some(Move::Call { tool: tool.name.clone(), arguments })
}

/// `transfer_to_x`, when the request clearly is theirs.
pub(super) fn transfer(situation: &Situation<'_>) -> Option<Move> {
    let tools: Vec<&ToolSpec> =
        situation.request.tools.iter().filter(|tool| tool.name.starts_with(PREFIX)).copied().collect();
    let fits = |tool: &ToolSpec| shared(&situation.question, &telling_part(tool, &tools));
    let open = tools.iter().filter(|tool| !situation.has_called(&tool.name));
    // Of equals, the one whose matter is mentioned first.
    let rank = |words: &[String]| {
        let first = words.first().and_then(|word| situation.question.find(word.as_str()));
        (words.len(), std::cmp::Reverse(first))
    };
    let (words, tool) = open.map(|tool| (fits(tool), *tool)).max_by_key(|(words, _)| rank(words))?;
    if words.len() < enough(situation) {
        return None;
    }
    let mut arguments = json!({ "reason": reason(&words) });
    if let Some(announcement) = announcement(tool) {
        arguments["announcement"] = announcement.into();
    }
    Some(Move::Call { tool: tool.name.clone(), arguments })
}

/// What the person is told before they talk to somebody else (K7): who that is and, if its description begins with a verb, what it
/// does. Only where the tool takes it.
fn announcement(tool: &ToolSpec) -> Option<String> {
    tool.parameters["properties"].get("announcement")?;
    let (name, rest) =
        tool.description.strip_prefix("Passes the conversation to ")?.split_once(", who then")?;
    let does = rest.split_once(". ").and_then(|(_, description)| doing(description));
    let does = does.map(|does| format!(", who {does}")).unwrap_or_default();
    // A name of several words is that of a role.
    let our = if name.contains(' ') { "our " } else { "" };
    Some(format!("I'll connect you with {our}{name}{does}."))
}

/// "Builds a skill together with the person: asks …" as "builds a skill together with you".
fn doing(description: &str) -> Option<String> {
    let clause = description.split([':', '.', ';', ',']).next()?.trim();
    let (verb, rest) = clause.split_once(' ')?;
    let is_verb = verb.starts_with(char::is_uppercase) && verb.ends_with('s') && !verb.ends_with("ss");
    let rest = rest.replace("the person", "you").replace("the user", "you");
    is_verb.then(|| format!("{} {rest}", verb.to_lowercase()))
}

/// How many words must speak for a transfer: two, or one if the agent could do nothing else. Whoever has just been given the
/// baton passes it on only when somebody else fits much better.
fn enough(situation: &Situation<'_>) -> usize {
    if was_handed_over(situation) {
        return 2 + 2 * overlap(&situation.question, situation.system);
    }
    let others = ["search_docs", "call_agent", "delegate"];
    if others.iter().any(|name| situation.tool(name).is_some()) { 2 } else { 1 }
}

/// Whether somebody has just passed the baton to this agent.
pub(super) fn was_handed_over(situation: &Situation<'_>) -> bool {
    situation.blocks(HANDED_OVER).next().is_some()
}

/// A description without the words that all transfers have in common.
fn telling_part(tool: &ToolSpec, all: &[&ToolSpec]) -> String {
    let is_everywhere =
        |word: &String| all.len() > 1 && all.iter().all(|tool| telling(&tool.description).contains(word));
    let words = telling(&tool.description).into_iter().filter(|word| !is_everywhere(word));
    words.collect::<Vec<_>>().join(" ")
}
