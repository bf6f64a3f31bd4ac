//! What the request says that a walk begins with.

use baton_core::agent::Agent;
use baton_core::text::head;

/// Of the request, in characters.
const SHOWN: usize = 200;
/// Between what somebody wants and what it is to do.
const JOINTS: &[&str] = &["that", "which", "to", "for", "who", "so that", "about"];
/// Triggers that begin so do not say what to do.
const NO_VERBS: &[&str] = &["new", "it", "why", "a", "an", "the", "this", "my", "what", "how", "i", "where"];

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Opening {
    /// "create a skill that sends Slack alerts": completes "I'm here to help you …".
    pub(crate) wish: Option<String>,
    /// "sends Slack alerts": what it says beyond the trigger.
    pub(crate) told: Option<String>,
    /// The request as it was said, if no wish can be made of it.
    pub(crate) said: Option<String>,
}

pub(crate) fn read(agent: &Agent, request: &str) -> Opening {
    let sentence = first_sentence(request);
    if sentence.is_empty() {
        return Opening::default();
    }
    let said = Some(head(&sentence, SHOWN));
    let triggers = agent.accepts_handoff.iter().flat_map(|terms| &terms.triggers);
    // The longest one that stands there says most.
    let found = triggers
        .filter_map(|trigger| Some((find(&sentence, trigger)?, trigger)))
        .max_by_key(|(_, one)| one.len());
    let Some((at, trigger)) = found else { return Opening { said, ..Opening::default() } };
    let rest = sentence[at + trigger.len()..].trim();
    let told = joined(rest).map(|text| text.trim_end_matches(['.', '!', '?', ' ']).to_owned());
    let told = told.filter(|text| text.split_whitespace().count() > 1);
    let wish = wish(&sentence, at).map(|wish| head(&wish, SHOWN));
    Opening { said: said.filter(|_| wish.is_none()), wish, told }
}

fn first_sentence(request: &str) -> String {
    let line = request.trim().lines().next().unwrap_or_default();
    let end =
        ["! ", "? ", ". "].iter().filter_map(|mark| line.find(mark)).min().map_or(line.len(), |at| at + 1);
    // "Hi! I want to …" begins with the second.
    let (first, rest) = line.split_at(end);
    let is_greeting = first.split_whitespace().count() < 3 && !rest.trim().is_empty();
    if is_greeting { first_sentence(rest) } else { first.split_whitespace().collect::<Vec<_>>().join(" ") }
}

/// Where the trigger stands, as whole words, in whatever letters.
fn find(text: &str, trigger: &str) -> Option<usize> {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    text.char_indices().map(|(at, _)| at).find(|at| {
        let found = text.get(*at..at + trigger.len()).is_some_and(|part| part.eq_ignore_ascii_case(trigger));
        found
            && is_edge(text[..*at].chars().next_back())
            && is_edge(text[at + trigger.len()..].chars().next())
    })
}

/// What follows a joint: only then it is what the thing is to do.
fn joined(rest: &str) -> Option<&str> {
    if let Some(after) = rest.strip_prefix(':') {
        return Some(after.trim());
    }
    JOINTS.iter().find_map(|joint| {
        let after = rest.get(joint.len()..).filter(|_| rest[..joint.len()].eq_ignore_ascii_case(joint))?;
        after.starts_with(' ').then(|| after.trim())
    })
}

/// The request from its trigger on, seen from the other side.
fn wish(sentence: &str, at: usize) -> Option<String> {
    let text = sentence[at..].trim_end_matches(['.', '!', '?', ' ']);
    // "I'm here to help you …" has the help.
    let wanted = ["i want to ", "want to ", "help me "]
        .iter()
        .find_map(|lead| text.get(lead.len()..).filter(|_| text[..lead.len()].eq_ignore_ascii_case(lead)));
    let text = wanted.unwrap_or(text);
    let first = text.split_whitespace().next()?.to_lowercase();
    let before = sentence[..at].trim().to_lowercase();
    let is_asked = wanted.is_some()
        || before.is_empty()
        || ["to", "me", "please", "you", "let's"].iter().any(|word| before.ends_with(word));
    if NO_VERBS.contains(&first.as_str()) || !is_asked {
        return None;
    }
    let turned = text.split(' ').map(|word| match word {
        "my" | "our" => "your",
        "me" | "I" | "we" => "you",
        other => other,
    });
    let mut turned: Vec<String> = turned.map(str::to_owned).collect();
    if let Some(first) = turned.first_mut() {
        *first = first.to_lowercase();
    }
    Some(turned.join(" "))
}

#[cfg(test)]
mod tests {
    use baton_core::AgentName;
    use baton_core::agent::AcceptsHandoff;

    use super::*;

    fn opening(request: &str) -> Opening {
        let triggers =
            ["create a skill", "new skill", "want to return", "help me debug"].map(str::to_owned).to_vec();
        let mut agent = Agent::plain(AgentName::parse("a").unwrap(), "", "");
        agent.accepts_handoff = Some(AcceptsHandoff { triggers, ..AcceptsHandoff::default() });
        read(&agent, request)
    }

    fn parts(request: &str) -> (Option<String>, Option<String>) {
        let Opening { wish, told, .. } = opening(request);
        (wish, told)
    }

    #[test]
    fn j2_4_the_request_is_known_without_its_trigger() {
        let some = |text: &str| Some(text.to_owned());
        let (wish, told) = parts("I want to create a skill that sends Slack alerts");
        assert_eq!(
            (wish, told),
            (some("create a skill that sends Slack alerts"), some("sends Slack alerts"))
        );
        let (wish, told) = parts("Hi! Can you create a skill for my team's weekly report? Thanks.");
        assert_eq!(
            (wish, told),
            (some("create a skill for your team's weekly report"), some("my team's weekly report"))
        );
        assert_eq!(parts("Create a skill"), (some("create a skill"), None));
        assert_eq!(parts("Help me debug my crashing service").0, some("debug your crashing service"));
        assert_eq!(
            parts("I want to return a kettle"),
            (some("return a kettle"), None),
            "which value that is nobody knows"
        );
        assert_eq!(parts("A new skill that counts words"), (None, some("counts words")));
        assert_eq!(opening("Do something").said.as_deref(), Some("Do something"));
        assert_eq!(opening("  "), Opening::default());
        assert_eq!(parts("create a skillet that sings").1, None, "half a word is no trigger");
        assert!(
            opening(&format!("create a skill that {}", "ä".repeat(5000))).wish.unwrap().chars().count()
                <= SHOWN + 3
        );
    }
}
