//! Which words a text is about.

use std::collections::BTreeSet;

use baton_core::stem::stem;

/// Too common to say what a text is about.
const COMMON: &[&str] = &[
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "because", "been",
    "before", "being", "but", "by", "bye", "can", "cannot", "could", "did", "do", "does", "for", "from",
    "get", "give", "go", "had", "has", "have", "he", "hello", "her", "hey", "hi", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "just", "let", "like", "me", "more", "my", "need", "no", "not", "now",
    "of", "on", "one", "only", "or", "other", "others", "our", "please", "she", "should", "since", "so",
    "some", "such", "than", "thank", "thanks", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "to", "too", "up", "use", "want", "was", "we", "were", "what", "when", "where", "which",
    "while", "who", "whose", "why", "will", "with", "would", "you", "your",
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

/// The words of `a` that `b` has too, as `a` spells them.
pub(super) fn shared(a: &str, b: &str) -> Vec<String> {
    let other = telling(b);
    let mut found: Vec<String> = Vec::new();
    for word in a.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let is_new = !found.iter().any(|known| known.eq_ignore_ascii_case(word));
        if is_new && telling(word).iter().any(|stem| other.contains(stem)) {
            found.push(word.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_meet() {
        assert_eq!(overlap("How do I configure rate limiting?", "Rate limits are configured here"), 3);
        assert_eq!(overlap("the a of", "the a of"), 0);
        assert_eq!(overlap("größe", "Größe"), 1);
        assert_eq!(shared("I was charged, Charged twice!", "charges and invoices"), ["charged"]);
    }
}
