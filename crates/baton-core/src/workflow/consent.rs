//! Detects a yes. Consent is read from the user's own words, never taken from a model.

const YES: &[&str] = &[
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
/// Words that may accompany a yes.
const KIND: &[&str] = &[
    "please", "thanks", "thank", "you", "do", "it", "that", "thats", "this", "is", "looks", "sounds", "go",
    "ahead", "of", "course", "all", "and", "very", "much", "i", "to", "me", "for", "works",
];
/// Words that turn a message into a refusal.
pub const NO: &[&str] = &["no", "n", "nope", "nah", "not", "dont", "do not", "wait", "stop"];

/// Lower case, single spaces, no punctuation.
pub fn bare(text: &str) -> String {
    let text = text.replace(['\'', '’'], "").to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Whether the message is a yes and nothing else. Words of the question may be repeated.
pub fn is_yes(words: &str, question: &str) -> bool {
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

/// Like [`is_yes`], for a yes that no model has read as one: only words of consent, and nothing that may be a question.
pub fn is_plain_yes(words: &str) -> bool {
    const ASKING: &[&str] =
        &["is", "are", "do", "does", "did", "you", "can", "could", "will", "would", "should"];
    let mut said = bare(words);
    for phrase in ["do it", "save it", "go ahead"] {
        said = said.replace(phrase, "yes");
    }
    let first = said.split(' ').next().unwrap_or_default();
    !words.contains('?') && !ASKING.contains(&first) && is_yes(&said, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_yes_is_no_question_and_has_no_other_words() {
        for yes in ["yes", "Yes, save it!", "ok, looks good", "sure thanks", "Do it", "go ahead please"] {
            assert!(is_plain_yes(yes), "{yes}");
        }
        let others = [
            "is that right",
            "is that right? thanks",
            "you sure",
            "is this ok",
            "ok, I do that now",
            "ok, only to me please",
            "yes, but call it Pager",
            "no",
            "",
        ];
        for other in others {
            assert!(!is_plain_yes(other), "{other}");
        }
    }

    #[test]
    fn a_yes_is_a_yes_and_nothing_else() {
        for yes in ["yes", "Yes, save it!", "ok, looks good", "sure thanks"] {
            assert!(is_yes(yes, "Save it?"), "{yes}");
        }
        for other in ["yes?", "yes, but call it Pager", "no", "don't save it", "save", ""] {
            assert!(!is_yes(other, "Save it?"), "{other}");
        }
    }
}
