//! Whether a skill would be chosen for what people say.
//!
//! Without a model the measure is words: how many of a request's words the description and the triggers have. That
//! finds requests the description forgot and near misses it cannot tell apart.

use std::collections::{BTreeMap, BTreeSet};

use super::head::Head;
use crate::search::words::{stem, stems, words};

/// At least half of the words.
const CHOSEN_PERCENT: usize = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    pub prompt: String,
    pub should: bool,
    /// How many of its words are known.
    pub percent: usize,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Good,
    /// Worth a look: what is doubtful about it.
    Doubtful(String),
    /// The same words are wanted and unwanted.
    Contradiction(String),
}

/// Tries every example that the skill brings in its metadata.
pub fn try_all(head: &Head) -> Vec<Trial> {
    let examples = |key| -> Vec<String> {
        let text = head.metadata(key).unwrap_or_default();
        text.split(';').map(str::trim).filter(|example| !example.is_empty()).map(str::to_owned).collect()
    };
    let (triggers, misses) = (examples("baton.triggers"), examples("baton.non_triggers"));
    let known = format!("{} {}", head.text("description").unwrap_or_default(), triggers.join(" "));
    let known: BTreeSet<String> = words(&known).map(|(_, word)| stem(&word.to_lowercase())).collect();
    let wanted = triggers.iter().map(|prompt| wanted(prompt, &known));
    let unwanted = misses.iter().map(|prompt| unwanted(prompt, &known, &triggers));
    wanted.chain(unwanted).collect()
}

fn wanted(prompt: &str, known: &BTreeSet<String>) -> Trial {
    let percent = percent(prompt, known);
    let verdict = if percent >= CHOSEN_PERCENT {
        Verdict::Good
    } else {
        Verdict::Doubtful("the description has too few of these words".to_owned())
    };
    Trial { prompt: prompt.to_owned(), should: true, percent, verdict }
}

fn unwanted(prompt: &str, known: &BTreeSet<String>, triggers: &[String]) -> Trial {
    let percent = percent(prompt, known);
    let own = distinct(prompt);
    let same = triggers.iter().find(|trigger| distinct(trigger).keys().eq(own.keys()));
    let apart: Vec<&str> =
        own.iter().filter(|(stem, _)| !known.contains(*stem)).map(|(_, word)| word.as_str()).collect();
    let verdict = match same {
        Some(trigger) => Verdict::Contradiction(format!("it says the same as the trigger “{trigger}”")),
        None if percent < CHOSEN_PERCENT => Verdict::Good,
        None if apart.is_empty() => {
            Verdict::Doubtful("no word tells it from what the skill is for".to_owned())
        }
        None => Verdict::Doubtful(format!("near it; only “{}” tells it apart", apart.join(", "))),
    };
    Trial { prompt: prompt.to_owned(), should: false, percent, verdict }
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
        let text = "---\nname: x\ndescription: Writes Slack alerts.\nmetadata:\n  \
                    baton.triggers: \"send a slack alert; warn the team\"\n  \
                    baton.non_triggers: \"book a flight; delete a slack alert; sending slack alerts\"\n---\n";
        let trials = try_all(&read(text).unwrap().0);
        let shown: Vec<_> =
            trials.iter().map(|t| (t.should, t.percent, t.verdict == Verdict::Good)).collect();
        assert_eq!(
            shown,
            [(true, 100, true), (true, 100, true), (false, 0, true), (false, 66, false), (false, 100, false)]
        );
        assert_eq!(trials[3].verdict, Verdict::Doubtful("near it; only “delete” tells it apart".to_owned()));
        assert!(matches!(trials[4].verdict, Verdict::Contradiction(_)));
    }
}
