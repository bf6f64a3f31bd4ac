//! Which agent of a list fits a question.

use baton_core::tool::ToolSpec;
use serde_json::Value;

use super::words::shared;

/// An agent that a tool can reach, with the words that speak for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) name: String,
    pub(super) fits: Vec<String>,
}

impl Destination {
    pub(super) fn reason(&self) -> String {
        reason(&self.fits)
    }
}

/// Why an agent was chosen.
pub(super) fn reason(fits: &[String]) -> String {
    match fits {
        [] => "nothing in the request points to anybody in particular".to_owned(),
        words => format!("the request mentions {}", words.join(", ")),
    }
}

/// The agents that a parameter allows, in the author's order, each with how its line fits the question.
pub(super) fn destinations(allowed: &Value, described: &str, question: &str) -> Vec<Destination> {
    let names = allowed.as_array().into_iter().flatten().filter_map(Value::as_str);
    let described: Vec<(&str, String)> = names.map(|name| (name, line_about(described, name))).collect();
    let found = described.into_iter().map(|(name, line)| Destination {
        name: name.to_owned(),
        fits: shared(question, &format!("{name} {line}")),
    });
    found.collect()
}

/// What a tool says about its agents: in its description, or in that of the parameter.
pub(super) fn description(tool: &ToolSpec, parameter: &str) -> String {
    let about = tool.parameters["properties"][parameter]["description"].as_str().unwrap_or_default();
    format!("{}\n{about}", tool.description)
}

/// The line `- name: …`; or else every line that names it.
fn line_about(described: &str, name: &str) -> String {
    let is_about = |line: &&str| {
        let line = line.trim_start_matches(['-', '*', ' ', '`']);
        line.strip_prefix(name).is_some_and(|rest| rest.trim_start_matches('`').starts_with([':', ' ']))
    };
    if let Some(line) = described.lines().find(is_about) {
        return line.to_owned();
    }
    described.lines().filter(|line| line.contains(name)).collect::<Vec<_>>().join(" ")
}

/// The one that fits best; the first of equals, because the author's order decides.
pub(super) fn best(destinations: &[Destination]) -> Option<&Destination> {
    destinations.iter().rev().max_by_key(|destination| destination.fits.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_line_of_an_agent_decides() {
        let described = "Sends people on.\n- it-help: laptop, network\n- people: holiday and leave\n- facilities: rooms for people";
        let found =
            destinations(&json!(["it-help", "people", "facilities"]), described, "How much holiday is left?");
        assert_eq!(best(&found).unwrap().name, "people");
        assert_eq!(found[1].reason(), "the request mentions holiday");
        assert!(found[2].fits.is_empty());
        let nothing = destinations(&json!(["a", "b"]), "", "x");
        assert_eq!(best(&nothing).unwrap().name, "a");
    }
}
