//! What is said to the person when the thread changes hands, where no model says it.

use baton_core::agent::Agent;
use baton_core::store::{HandoffEnd, HandoffSession};
use serde_json::Value;

use crate::engine::Agents;
use crate::patterns::handover::head;

/// Words at the end of a name that say that it is somebody, not what they do.
const SOMEBODY: &[&str] = &["assistant", "agent", "bot", "specialist", "helper", "expert"];
/// Of what is quoted in a sentence, in characters.
const QUOTED: usize = 60;

pub(crate) fn connecting(target: &Agent) -> String {
    format!("Connecting you with {}...", target.display_name)
}

/// The same for a stored handoff. An agent that no longer exists is named by its id.
pub fn connected(agents: &Agents, handoff: &HandoffSession) -> String {
    format!("Connecting you with {}...", name(agents.get(&handoff.target_agent_id), handoff))
}

/// C-13.
pub(crate) fn occupied(holder: &Agent) -> String {
    let what = occupation(holder);
    let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("You're currently in {article} {what} session. Would you like to finish that first?")
}

/// C-14.
pub(crate) fn unavailable(target: &Agent) -> String {
    let name = target.display_name.to_lowercase();
    format!(
        "The {name} is currently unavailable. Would you like me to help you with something else, or try again later?"
    )
}

/// What the person hears when the thread goes back, before whoever has it again says something.
pub fn returning(agents: &Agents, handoff: &HandoffSession) -> String {
    let to = receiver(agents, handoff);
    let target = agents.get(&handoff.target_agent_id);
    match handoff.notes.end {
        Some(HandoffEnd::Completed) => match target.and_then(|target| Activity::of(target)) {
            Some(Activity { object: Some(object), .. }) => {
                format!("Your {object} is ready! Returning you to {to}.")
            }
            _ => format!("That's done! Returning you to {to}."),
        },
        Some(HandoffEnd::Left) => format!("No problem! Returning you to {to}."),
        Some(HandoffEnd::Expired) => {
            format!("Your session with {} has ended. Your progress is saved.", name(target, handoff))
        }
        Some(HandoffEnd::Failed) => {
            target.map_or_else(|| "This did not work out.".to_owned(), |one| unavailable(one))
        }
        Some(HandoffEnd::Declined | HandoffEnd::Ended) | None => format!("Returning you to {to}."),
    }
}

/// What whoever has the thread again says, where it has no model to find better words with.
pub(crate) fn acknowledged(agents: &Agents, handoff: &HandoffSession) -> String {
    let target = agents.get(&handoff.target_agent_id);
    let activity = target.and_then(|target| Activity::of(target));
    match handoff.notes.end {
        Some(HandoffEnd::Completed) => completed(activity.as_ref(), handoff),
        Some(HandoffEnd::Declined) => {
            let why = handoff.result_summary.as_deref().map(|why| format!(" {}", sentence(why)));
            format!("{} could not help with this.{}", name(target, handoff), why.unwrap_or_default())
        }
        Some(HandoffEnd::Failed) => {
            target.map_or_else(|| "What can I do for you?".to_owned(), |one| unavailable(one))
        }
        Some(HandoffEnd::Expired) => welcome_back(agents, handoff),
        Some(HandoffEnd::Left | HandoffEnd::Ended) | None if is_kept(target, handoff) => {
            let what =
                activity.map_or_else(|| format!("with {}", name(target, handoff)), |one| one.pointing());
            format!("Let me know if you'd like to continue {what} later.")
        }
        Some(HandoffEnd::Left | HandoffEnd::Ended) | None => "What can I do for you?".to_owned(),
    }
}

fn completed(activity: Option<&Activity>, handoff: &HandoffSession) -> String {
    let object = activity.and_then(|activity| activity.object.as_deref());
    match (subject(handoff), object) {
        (Some(subject), Some(object)) => format!("Great, your '{subject}' {object} is now active."),
        _ => match handoff.result_summary.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
            Some(summary) => format!("Great! {}", sentence(summary)),
            None => "Great, that's done.".to_owned(),
        },
    }
}

/// C-15. What the person is asked who comes back to something that is not done.
pub fn welcome_back(agents: &Agents, handoff: &HandoffSession) -> String {
    let target = agents.get(&handoff.target_agent_id);
    let what =
        target.and_then(|target| Activity::of(target)).map(|activity| activity.owned(subject(handoff)));
    let what = what.unwrap_or_else(|| format!("with {}", name(target, handoff)));
    format!("Welcome back! Would you like to continue {what}?")
}

/// What a holder's part begins with that goes on.
pub(crate) fn going_on(target: &Agent) -> String {
    format!("Welcome back! You are with {} again, where you left off.", target.display_name)
}

/// Whether there is something to come back to.
fn is_kept(target: Option<&std::sync::Arc<Agent>>, handoff: &HandoffSession) -> bool {
    let resumes = target.and_then(|target| target.accepts_handoff.as_ref()).is_some_and(|terms| terms.resume);
    resumes && handoff.workflow.is_some() && handoff.notes.preserve_state
}

fn name(target: Option<&std::sync::Arc<Agent>>, handoff: &HandoffSession) -> String {
    target.map_or_else(|| handoff.target_agent_id.to_string(), |target| target.display_name.clone())
}

/// Who gets the thread back, as people call it.
fn receiver(agents: &Agents, handoff: &HandoffSession) -> String {
    let source = agents.get(&handoff.source_agent_id).map(|source| source.display_name.clone());
    let source = source.unwrap_or_else(|| handoff.source_agent_id.to_string());
    if source.to_lowercase() == "assistant" { "the main assistant".to_owned() } else { source }
}

/// What the work is about: its name, if the workflow asked for one.
fn subject(handoff: &HandoffSession) -> Option<String> {
    let values = handoff.workflow.as_ref()?.data.get("values")?;
    let named = ["name", "title", "subject"].iter().find_map(|key| values.get(key).and_then(Value::as_str));
    let text = named?.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then(|| head(&text, QUOTED))
}

/// "Skill Creation Assistant" does skill creation.
fn occupation(agent: &Agent) -> String {
    let name = agent.display_name.to_lowercase();
    let words: Vec<&str> = name.split_whitespace().collect();
    match words.split_last() {
        Some((last, rest)) if SOMEBODY.contains(last) && !rest.is_empty() => rest.join(" "),
        _ => name,
    }
}

/// A text as a sentence of its own.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// What an agent does with people, in the words of its first trigger: "create a skill" is creating a skill.
#[derive(Debug, PartialEq, Eq)]
struct Activity {
    doing: String,
    object: Option<String>,
}

impl Activity {
    fn of(agent: &Agent) -> Option<Self> {
        let trigger = agent.accepts_handoff.as_ref()?.triggers.first()?.to_lowercase();
        let mut words = trigger.split_whitespace();
        let doing = gerund(words.next()?)?;
        let articles = ["a", "an", "the", "my", "your", "new", "this", "that", "it"];
        let object: Vec<&str> = words.filter(|word| !articles.contains(word)).collect();
        Some(Self { doing, object: (!object.is_empty()).then(|| object.join(" ")) })
    }

    /// creating that skill
    fn pointing(&self) -> String {
        match &self.object {
            Some(object) => format!("{} that {object}", self.doing),
            None => format!("{} this", self.doing),
        }
    }

    /// creating your 'Slack Alert' skill
    fn owned(&self, subject: Option<String>) -> String {
        match (&self.object, subject) {
            (Some(object), Some(subject)) => format!("{} your '{subject}' {object}", self.doing),
            (Some(object), None) => format!("{} your {object}", self.doing),
            (None, _) => self.pointing(),
        }
    }
}

/// Only for words that it can be told from: a trigger may begin with anything.
fn gerund(verb: &str) -> Option<String> {
    if verb.len() < 3 || !verb.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    let is_vowel = |byte: u8| b"aeiou".contains(&byte);
    let bytes = verb.as_bytes();
    let [.., before, middle, last] = bytes else { return None };
    if let Some(stem) = verb.strip_suffix('e').filter(|stem| !stem.ends_with('e')) {
        return Some(format!("{stem}ing"));
    }
    let doubles = !is_vowel(*last) && is_vowel(*middle) && !is_vowel(*before) && !b"wxy".contains(last);
    let is_short = bytes.iter().filter(|byte| is_vowel(**byte)).count() == 1 || verb == "debug";
    if doubles && is_short {
        Some(format!("{verb}{}ing", char::from(*last)))
    } else {
        Some(format!("{verb}ing"))
    }
}

#[cfg(test)]
mod tests {
    use super::gerund;

    #[test]
    fn what_is_done_is_told_from_a_verb() {
        let doing = |verb: &str| gerund(verb).unwrap();
        let verbs = ["create", "build", "debug", "plan", "fix", "set", "see", "open", "test"].map(doing);
        let done = [
            "creating",
            "building",
            "debugging",
            "planning",
            "fixing",
            "setting",
            "seeing",
            "opening",
            "testing",
        ];
        assert_eq!(verbs, done);
        assert_eq!(gerund("to"), None);
        assert_eq!(gerund("Ärger"), None);
    }
}
