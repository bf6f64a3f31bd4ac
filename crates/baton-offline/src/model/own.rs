//! What an agent's author wrote for it: all that it knows without tools.

use serde_json::Value;

use super::labels;
use super::notice::BRIEF;
use super::sentences::{fitting, sentences};
use super::situation::Situation;

const MOST: usize = 3;
const WITHOUT_A_FIT: usize = 2;

/// The agent's own part of an answer: the label it has to set, if any, and what it goes by.
pub(super) fn part(situation: &Situation<'_>) -> String {
    let said = match (knowledge(situation), task(situation)) {
        (Some(known), _) => format!("{BRIEF}\n\n> {known}"),
        (None, task) => match offers(situation) {
            Some(offers) => format!("I cannot answer this by myself. {offers}"),
            None if task.is_empty() => "I cannot answer this by myself.".to_owned(),
            None => format!("I cannot answer this by myself. {BRIEF}\n\n> {task}"),
        },
    };
    labelled(situation, said)
}

/// What somebody could ask for instead, if there is anything.
fn offers(situation: &Situation<'_>) -> Option<String> {
    let tools = situation.request.tools.iter();
    let asked = situation.tool("call_agent").map(|tool| &tool.parameters["properties"]["specialist"]["enum"]);
    let asked: Vec<&str> =
        asked.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let colleagues: Vec<String> =
        tools.filter_map(|tool| Some(tool.name.strip_prefix("transfer_to_")?.replace('_', "-"))).collect();
    let ways = [
        (!asked.is_empty()).then(|| format!("ask {}", asked.join(" or "))),
        (!colleagues.is_empty()).then(|| format!("pass it on to {}", colleagues.join(" or "))),
        situation.tool("search_docs").map(|_| "search the documents".to_owned()),
    ];
    let ways: Vec<String> = ways.into_iter().flatten().collect();
    (!ways.is_empty())
        .then(|| format!("I can {}: say a few words about what you are looking for.", ways.join(", or ")))
}

/// The same for a stage among others, which need not answer alone.
pub(super) fn stage(situation: &Situation<'_>) -> String {
    let said = knowledge(situation).unwrap_or_else(|| task(situation));
    labelled(situation, format!("> {said}"))
}

fn labelled(situation: &Situation<'_>, said: String) -> String {
    match labels::choose(situation) {
        Some(label) => format!("{label}\n\n{said}"),
        None => said,
    }
}

/// The sentences of the prompt that fit the question. Those that say who the agent is are the last resort.
pub(super) fn knowledge(situation: &Situation<'_>) -> Option<String> {
    let system = situation.system;
    let knows: Vec<String> =
        sentences(system).into_iter().filter(|sentence| !sentence.starts_with("You ")).collect();
    let found =
        [knows.join("\n\n").as_str(), system].map(|text| fitting(&situation.question, text, MOST).join(" "));
    found.into_iter().find(|text| !text.is_empty())
}

/// What the agent is there for.
fn task(situation: &Situation<'_>) -> String {
    let first: Vec<String> = sentences(situation.system).into_iter().take(WITHOUT_A_FIT).collect();
    first.join(" ")
}
