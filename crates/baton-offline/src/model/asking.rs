//! Asking colleagues, and looking things up.

use serde_json::{Value, json};

use super::Move;
use super::destination::{Destination, best, description, destinations};
use super::own;
use super::passing::was_handed_over;
use super::query;
use super::situation::Situation;
use super::words::telling;

/// More are not asked at once.
const MOST: usize = 5;

/// Several colleagues fit: all of them. One fits: that one.
pub(super) fn colleagues(situation: &Situation<'_>) -> Option<Move> {
    let fitting: Vec<Destination> =
        known(situation).into_iter().filter(|destination| !destination.fits.is_empty()).collect();
    match &fitting[..] {
        [] => None,
        [one] => call(situation, Some(&one.name)).or_else(|| delegate(situation, &fitting)),
        _ => delegate(situation, &fitting)
            .or_else(|| call(situation, best(&fitting).map(|one| one.name.as_str()))),
    }
}

/// Nobody fits in particular: everybody, if anything is asked at all.
pub(super) fn everybody(situation: &Situation<'_>) -> Option<Move> {
    if telling(&situation.question).is_empty() {
        return None;
    }
    let all = known(situation);
    match &all[..] {
        [] => None,
        [one] => call(situation, Some(&one.name)),
        _ => delegate(situation, &all).or_else(|| call(situation, best(&all).map(|one| one.name.as_str()))),
    }
}

/// Those who can be asked, with how they fit.
fn known(situation: &Situation<'_>) -> Vec<Destination> {
    let tools = [("call_agent", "specialist", "/enum"), ("delegate", "agents", "/items/enum")];
    let lines: String = tools
        .iter()
        .filter_map(|(name, parameter, _)| Some(description(situation.tool(name)?, parameter)))
        .collect::<Vec<_>>()
        .join("\n");
    let allowed = tools.iter().find_map(|(name, parameter, path)| {
        situation.tool(name)?.parameters["properties"][*parameter].pointer(path)
    });
    destinations(allowed.unwrap_or(&Value::Null), &lines, &query::standalone(situation))
}

fn call(situation: &Situation<'_>, specialist: Option<&str>) -> Option<Move> {
    let tool = situation.tool("call_agent").filter(|tool| !situation.has_called(&tool.name))?;
    let mut arguments = json!({ "mission": query::standalone(situation) });
    if let Some(specialist) = specialist {
        arguments["specialist"] = specialist.into();
    }
    Some(Move::Call { tool: tool.name.clone(), arguments })
}

fn delegate(situation: &Situation<'_>, to: &[Destination]) -> Option<Move> {
    let tool = situation.tool("delegate").filter(|tool| !situation.has_called(&tool.name))?;
    let agents: Vec<&str> = to.iter().take(MOST).map(|destination| destination.name.as_str()).collect();
    let arguments = json!({ "agents": agents, "message": query::standalone(situation) });
    Some(Move::Call { tool: tool.name.clone(), arguments })
}

/// Whoever was handed something that is its own subject does not have to look it up.
pub(super) fn documents(situation: &Situation<'_>) -> Option<Move> {
    if was_handed_over(situation) && own::knowledge(situation).is_some() {
        return None;
    }
    let tool = situation.tool("search_docs").filter(|tool| !situation.has_called(&tool.name))?;
    Some(Move::Call { tool: tool.name.clone(), arguments: json!({ "query": situation.question }) })
}
