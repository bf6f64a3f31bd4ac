//! Skills: which one a request is for, and what its steps are.

use serde_json::json;

use super::Move;
use super::notice::quotable;
use super::sentences::beginning;
use super::situation::Situation;
use super::words::{shared, telling};

const TOOL: &str = "load_skill";
/// How the engine's list of skills begins, below whatever the agent's author wrote.
const OPENING: &str = "\n\n## Skills\n\nEach line is the name of a skill";
/// Fewer words in common are a coincidence.
const LEAST: usize = 2;
const MOST_CHARS: usize = 2_000;

/// A prompt without the list of skills, and the list.
pub(super) fn parted(system: &str) -> (&str, Vec<(&str, String)>) {
    let Some(at) = system.find(OPENING) else { return (system, Vec::new()) };
    let (prompt, list) = system.split_at(at);
    let described = list.lines().filter_map(|line| {
        let (name, description) = line.strip_prefix("- ")?.split_once(": ")?;
        Some((name, serde_json::from_str(description).ok()?))
    });
    (prompt, described.collect())
}

/// `load_skill`, when most of what is asked is what a skill says it is for.
pub(super) fn load(situation: &Situation<'_>) -> Option<Move> {
    let tool = situation.tool(TOOL).filter(|tool| !situation.has_called(&tool.name))?;
    let asked = telling(&situation.question).len();
    let fits = |(name, description): &(&str, String)| {
        shared(&situation.question, &format!("{} {description}", name.replace('-', " "))).len()
    };
    // The first of equals.
    let best = situation.skills.iter().rev().max_by_key(|skill| fits(skill))?;
    let words = fits(best);
    let is_clear = words >= LEAST && words * 2 >= asked;
    is_clear.then(|| Move::Call { tool: tool.name.clone(), arguments: json!({ "name": best.0 }) })
}

/// The steps of the skill that was loaded. Rules cannot do them; whoever reads them can.
pub(super) fn told(situation: &Situation<'_>) -> Option<String> {
    let loaded = situation.done.iter().find(|done| is_skill(&done.result.name) && !done.result.failed)?;
    let name = loaded.arguments["name"].as_str()?;
    let text = quotable(&loaded.result.content);
    let body = text.split_once("\n\n").map_or(text.as_str(), |(_, body)| body);
    let steps = section(body, "## Steps").unwrap_or(body);
    let result = section(body, "## Result").map(|result| format!("\n\n{result}")).unwrap_or_default();
    Some(format!("I use the skill `{name}` for this. Its steps:\n\n{}{result}", beginning(steps, MOST_CHARS)))
}

pub(super) fn is_skill(tool: &str) -> bool {
    tool == TOOL
}

/// What stands below a heading, up to the next one.
fn section<'a>(text: &'a str, heading: &str) -> Option<&'a str> {
    let (_, below) = text.split_once(&format!("{heading}\n"))?;
    let end = below.find("\n#").unwrap_or(below.len());
    Some(below[..end].trim()).filter(|text| !text.is_empty())
}
