//! Whether a skill would be chosen for what people say.
//!
//! Without a model the measure is words: how many of a request's words the description has, because the description is
//! all that an agent sees before it chooses. That finds requests it forgot and near misses it cannot tell apart.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::stem::stem;

use super::head::SkillFrontmatter;
use crate::search::words::{stems, words};

/// At least half of the words.
const CHOSEN_PERCENT: usize = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    pub prompt: String,
    pub should: bool,
    /// How many of its words are known.
    pub percent: usize,
    pub verdict: TriggerVerdict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerVerdict {
    Good,
    /// Worth a look: what is doubtful about it.
    Doubtful(String),
    /// The same words are wanted and unwanted.
    Contradiction(String),
}

impl Trial {
    pub fn is_contradiction(&self) -> bool {
        matches!(self.verdict, TriggerVerdict::Contradiction(_))
    }
}

/// Tries every example that the skill brings in its metadata.
pub fn try_all(head: &SkillFrontmatter) -> Vec<Trial> {
    let examples = |key| -> Vec<String> {
        let text = head.metadata(key).unwrap_or_default();
        text.split(';').map(str::trim).filter(|example| !example.is_empty()).map(str::to_owned).collect()
    };
    let (triggers, misses) = (examples("baton.triggers"), examples("baton.non_triggers"));
    let description = head.text("description").unwrap_or_default();
    let known: BTreeSet<String> = words(description).map(|(_, word)| stem(&word.to_lowercase())).collect();
    let wanted = triggers.iter().map(|prompt| wanted(prompt, &known, description));
    let unwanted = misses.iter().map(|prompt| unwanted(prompt, &known, &triggers));
    wanted.chain(unwanted).collect()
}

fn wanted(prompt: &str, known: &BTreeSet<String>, description: &str) -> Trial {
    let percent = percent(prompt, known);
    let unknown = unknown(prompt, known).join("”, “");
    // Signs that are no words are there or not.
    let is_said = unknown.is_empty() && description.contains(prompt);
    let verdict = if percent >= CHOSEN_PERCENT || is_said {
        TriggerVerdict::Good
    } else {
        let unknown = if unknown.is_empty() { prompt } else { &unknown };
        TriggerVerdict::Doubtful(format!("the description does not speak of “{unknown}”"))
    };
    Trial { prompt: prompt.to_owned(), should: true, percent, verdict }
}

fn unwanted(prompt: &str, known: &BTreeSet<String>, triggers: &[String]) -> Trial {
    let percent = percent(prompt, known);
    let own = distinct(prompt);
    let is_same = |trigger: &&String| {
        if own.is_empty() { trigger.as_str() == prompt } else { distinct(trigger).keys().eq(own.keys()) }
    };
    let same = triggers.iter().find(is_same);
    let apart = unknown(prompt, known);
    let verdict = match same {
        Some(trigger) => {
            TriggerVerdict::Contradiction(format!("it says the same as the trigger “{trigger}”"))
        }
        None if percent < CHOSEN_PERCENT => TriggerVerdict::Good,
        None if apart.is_empty() => TriggerVerdict::Doubtful(
            "it sounds like what the skill is for; an agent could take it for that".to_owned(),
        ),
        None => TriggerVerdict::Doubtful(format!(
            "close to the skill; only “{}” tells it apart",
            apart.join("”, “")
        )),
    };
    Trial { prompt: prompt.to_owned(), should: false, percent, verdict }
}

/// Words that mean something and that the description does not have.
fn unknown(prompt: &str, known: &BTreeSet<String>) -> Vec<String> {
    distinct(prompt).into_iter().filter(|(stem, _)| !known.contains(stem)).map(|(_, word)| word).collect()
}

/// Stems that mean something, each with the word as it was written.
fn distinct(prompt: &str) -> BTreeMap<String, String> {
    let wanted: BTreeSet<String> = stems(prompt).into_iter().collect();
    let written = words(prompt).map(|(_, word)| (stem(&word.to_lowercase()), word.to_owned()));
    written.filter(|(stem, _)| wanted.contains(stem)).collect()
}

fn percent(prompt: &str, known: &BTreeSet<String>) -> usize {
    let stems: BTreeSet<String> = stems(prompt).into_iter().collect();
    let found = stems.iter().filter(|stem| known.contains(*stem)).count();
    if stems.is_empty() { 0 } else { found * 100 / stems.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skills::head::read;

    #[test]
    fn near_misses_are_told_apart() {
        let text = "---\nname: x\ndescription: Writes Slack alerts, sends them and warns.\nmetadata:\n  \
                    baton.triggers: \"send a slack alert; warn the team\"\n  \
                    baton.non_triggers: \"book a flight; delete a slack alert; sending slack alerts\"\n---\n";
        let trials = try_all(&read(text).unwrap().0);
        let shown: Vec<_> =
            trials.iter().map(|t| (t.should, t.percent, t.verdict == TriggerVerdict::Good)).collect();
        assert_eq!(
            shown,
            [(true, 100, true), (true, 50, true), (false, 0, true), (false, 66, false), (false, 100, false)]
        );
        assert_eq!(
            trials[3].verdict,
            TriggerVerdict::Doubtful("close to the skill; only “delete” tells it apart".to_owned())
        );
        assert!(matches!(trials[4].verdict, TriggerVerdict::Contradiction(_)));
    }
}
