//! Words whose meaning is fixed.

pub(super) const BACK: &[&str] = &[
    "back",
    "go back",
    "step back",
    "one step back",
    "previous",
    "previous step",
    "back please",
    "go one step back",
];
pub(super) const HELP: &[&str] = &[
    "help",
    "what do you mean",
    "what does that mean",
    "what is that",
    "whats that",
    "huh",
    "explain",
    "please explain",
    "can you explain",
    "can you explain that",
    "i dont understand",
    "i do not understand",
    "not sure",
    "im not sure",
    "i dont know",
    "no idea",
    "like what",
    "for example",
    "what are my options",
    "what are the options",
    "which options",
    "give me an example",
    "why do you ask",
    "why",
    "what",
];
pub(super) const STATUS: &[&str] = &[
    "status",
    "where are we",
    "summary",
    "show me",
    "show",
    "show me what you have",
    "what do you have",
    "what do you have so far",
];
pub(super) const SKIP: &[&str] =
    &["skip", "skip it", "skip this", "skip that", "skip this one", "pass", "leave it out"];
pub(super) const NONE: &[&str] = &[
    "no",
    "none",
    "nope",
    "no preference",
    "doesnt matter",
    "does not matter",
    "dont care",
    "i dont care",
    "any",
    "whatever",
    "na",
    "nothing",
    "not needed",
    "dont mind",
    "up to you",
];
pub(super) const GO_ON: &[&str] = &[
    "go on",
    "continue",
    "keep",
    "keep it",
    "nothing",
    "no change",
    "no changes",
    "its fine",
    "fine",
    "again",
    "try again",
    "retry",
    "once more",
    "try it again",
    "ok",
    "okay",
    "yes",
    "next",
    "go ahead",
    "leave it",
    "as it is",
];
pub(super) const KEEP: &[&str] =
    &["keep", "keep it", "same", "the same", "leave it", "no", "no change", "as it is"];
pub(super) const YES: &[&str] = &[
    "yes",
    "y",
    "yeah",
    "yep",
    "yup",
    "sure",
    "ok",
    "okay",
    "correct",
    "right",
    "absolutely",
    "definitely",
    "confirm",
    "confirmed",
    "agreed",
    "perfect",
    "fine",
    "good",
    "great",
];
/// What may stand around a yes.
pub(super) const KIND: &[&str] = &[
    "please", "thanks", "thank", "you", "do", "it", "that", "thats", "this", "is", "looks", "sounds", "go",
    "ahead", "of", "course", "all", "and", "very", "much", "i", "to", "me", "for", "works",
];
pub(super) const NO: &[&str] = &["no", "n", "nope", "nah", "not", "dont", "do not", "wait", "stop"];

/// Small letters, single spaces, no punctuation.
pub(super) fn bare(text: &str) -> String {
    let text = text.replace(['\'', '’'], "").to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Whether it is a yes and nothing else: the words of the question itself may stand beside it.
pub(crate) fn is_yes(words: &str, question: &str) -> bool {
    const PHRASES: &[&str] =
        &["do it", "go ahead", "please do", "of course", "looks good", "sounds good", "save it"];
    if words.len() > 200 {
        return false;
    }
    let (said, question) = (bare(words), bare(question));
    let is_in = |word: &str| question.split(' ').any(|one| one == word);
    let is_kind =
        |word: &str| YES.contains(&word) || KIND.contains(&word) || (is_in(word) && !NO.contains(&word));
    let has_yes = said.split(' ').any(|word| YES.contains(&word))
        || PHRASES.iter().any(|phrase| said.starts_with(phrase));
    has_yes && said.split(' ').all(is_kind) && !words.trim().ends_with('?')
}
