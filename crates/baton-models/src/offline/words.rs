//! Which words a text is about.

use std::collections::BTreeSet;

/// Too common to say what a text is about.
const COMMON: &[&str] = &[
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can", "could", "did",
    "do", "does", "for", "from", "get", "give", "go", "had", "has", "have", "he", "her", "his", "how", "i",
    "if", "in", "into", "is", "it", "its", "just", "like", "me", "more", "my", "no", "not", "of", "on",
    "one", "or", "our", "please", "she", "should", "so", "some", "that", "the", "their", "them", "there",
    "these", "they", "this", "to", "up", "use", "want", "was", "we", "were", "what", "when", "where",
    "which", "who", "why", "will", "with", "would", "you", "your",
];

/// The telling words of a text, each cut to its stem.
pub(super) fn telling(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| word.len() > 1 && !COMMON.contains(&word.as_str())).map(|word| stem(&word)).collect()
}

/// How many telling words two texts share.
pub(super) fn overlap(a: &str, b: &str) -> usize {
    telling(a).intersection(&telling(b)).count()
}

/// Plurals and common endings, so that `limits`, `limiting` and `limited` meet. Only ASCII endings are cut, at ASCII
/// boundaries.
fn stem(word: &str) -> String {
    let endings = ["ations", "ation", "ing", "ies", "ed", "es", "e", "s"];
    let cut = endings.iter().find_map(|ending| word.strip_suffix(ending).filter(|stem| stem.len() >= 3));
    cut.unwrap_or(word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_meet() {
        assert_eq!(overlap("How do I configure rate limiting?", "Rate limits are configured here"), 3);
        assert_eq!(overlap("the a of", "the a of"), 0);
        assert_eq!(overlap("größe", "Größe"), 1);
    }
}
