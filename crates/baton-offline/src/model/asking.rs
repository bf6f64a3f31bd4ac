//! Asking colleagues, and looking things up.

use serde_json::{Value, json};

use super::Move;
use super::destination::{Destination, best, description, destinations};
use super::own;
use super::passing::was_handed_over;
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

/// The question as a query for a colleague (K8): what is asked about, without the words that only ask.
fn query(question: &str) -> String {
    const ASKING: &[&str] = &[
        "hi",
        "hello",
        "hey",
        "please",
        "can you tell me",
        "could you tell me",
        "can you",
        "could you",
        "tell me",
        "explain",
        "i want to know",
        "i would like to know",
        "i'd like to know",
        "do you know",
        "what are the",
        "what is the",
        "what's the",
        "what are",
        "what is",
        "what's",
        "how do i",
        "how can i",
        "how do we",
        "how can we",
        "how to",
        "how does",
        "where do i find",
        "where can i find",
        "where is",
        "where are",
        "who is",
        "which are the",
    ];
    let mut rest = question.trim();
    while let Some(after) = ASKING.iter().find_map(|phrase| after_phrase(rest, phrase)) {
        rest = after;
    }
    let rest = rest.trim_end_matches(['?', '!', '.', ' ']);
    if telling(rest).is_empty() { question.to_owned() } else { rest.to_owned() }
}

/// What follows the phrase at the beginning of the text, in any case.
fn after_phrase<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(phrase.len())?;
    let is_word = rest.starts_with([' ', ',', '!', ':']);
    (is_word && start.eq_ignore_ascii_case(phrase)).then(|| rest.trim_start_matches([' ', ',', '!', ':']))
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
    destinations(allowed.unwrap_or(&Value::Null), &lines, &situation.question)
}

fn call(situation: &Situation<'_>, specialist: Option<&str>) -> Option<Move> {
    let tool = situation.tool("call_agent").filter(|tool| !situation.has_called(&tool.name))?;
    let mut arguments = json!({ "mission": query(&situation.question) });
    if let Some(specialist) = specialist {
        arguments["specialist"] = specialist.into();
    }
    Some(Move::Call { tool: tool.name.clone(), arguments })
}

fn delegate(situation: &Situation<'_>, to: &[Destination]) -> Option<Move> {
    let tool = situation.tool("delegate").filter(|tool| !situation.has_called(&tool.name))?;
    let agents: Vec<&str> = to.iter().take(MOST).map(|destination| destination.name.as_str()).collect();
    let arguments = json!({ "agents": agents, "message": query(&situation.question) });
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

#[cfg(test)]
mod tests {
    use super::query;

    /// K8, the example of the seed.
    #[test]
    fn k_8_question_becomes_a_query() {
        for (question, expected) in [
            (
                "What are the best practices for error handling in Python agents?",
                "best practices for error handling in Python agents",
            ),
            ("Hi! How do I configure rate limiting for my agent?", "configure rate limiting for my agent"),
            ("Please compare Rust and Go.", "compare Rust and Go"),
            ("What is the?", "What is the?"),
            ("Größe", "Größe"),
        ] {
            assert_eq!(query(question), expected);
        }
    }
}
