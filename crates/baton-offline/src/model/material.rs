//! Answers from what others wrote before: advice, and the work of the stage before.

use super::notice::quotable;
use super::own;
use super::sentences::{beginning, fitting};
use super::situation::Situation;

const MOST_ADVICE: usize = 600;
const MOST_WORK: usize = 6_000;
const SENTENCES: usize = 3;
/// What is passed along a chain or with a transfer.
pub(super) const WORK: &[&str] = &["answer", "work"];
const ADVICE: &[&str] = &["advice", "failure"];

/// What each advisor said, and who could not be heard.
pub(super) fn advice(situation: &Situation<'_>) -> Option<String> {
    let heard = situation.blocks(ADVICE).map(|block| {
        let text = quotable(&block.text);
        if block.what == "failure" {
            return format!("- **{}** could not be heard: {}", block.author(), beginning(&text, MOST_ADVICE));
        }
        let fitting = fitting(&situation.question, &text, SENTENCES).join(" ");
        let said = if fitting.is_empty() { text } else { fitting };
        format!("- **{}**: {}", block.author(), beginning(&said, MOST_ADVICE))
    });
    let heard: Vec<String> = heard.collect();
    (!heard.is_empty()).then(|| format!("Before this answer others looked at it:\n\n{}", heard.join("\n")))
}

/// What is known, in plain sentences: what others said that fits the question, or else the question itself.
pub(super) fn known(situation: &Situation<'_>) -> String {
    let heard =
        situation.material.iter().filter(|block| block.what != "failure").map(|block| quotable(&block.text));
    let found =
        situation.done.iter().filter(|done| !done.result.failed).map(|done| quotable(&done.result.content));
    let texts: Vec<String> = heard.chain(found).collect();
    let fitting = fitting(&situation.question, &texts.join("\n\n"), SENTENCES);
    if fitting.is_empty() { situation.question.clone() } else { fitting.join(" ") }
}

/// The own part, with the work of those before below it.
pub(super) fn stage(situation: &Situation<'_>) -> Option<String> {
    let before = situation.blocks(WORK).map(|block| {
        let said = beginning(&quotable(&block.text), MOST_WORK);
        if block.what == "work" {
            format!("Work so far:\n{said}")
        } else {
            format!("From {}:\n{said}", block.author())
        }
    });
    let before: Vec<String> = before.collect();
    (!before.is_empty()).then(|| format!("{}\n\n{}", own::stage(situation), before.join("\n\n")))
}
