//! Words as search compares them: lower-case, without common endings.

use baton_core::stem::stem;

/// Words that say nothing about what a text is about.
const COMMON: &[&str] = &[
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "d",
    "did", "do", "does", "for", "from", "get", "had", "has", "have", "he", "her", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "ll", "m", "may", "me", "my", "no", "not", "of", "on", "or", "our",
    "please", "re", "s", "shall", "she", "should", "so", "some", "t", "tell", "than", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "to", "us", "use", "used", "uses", "using", "ve",
    "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you",
    "your",
];

/// No word of a language is longer; what is, is data.
const MAX_WORD_BYTES: usize = 64;

pub fn is_common(word: &str) -> bool {
    COMMON.binary_search(&word).is_ok()
}

/// The words of a text with their byte offsets: runs of letters and digits. Scripts without spaces give one word for
/// each character.
pub fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(char::is_alphanumeric)?;
        let first = text[start..].chars().next()?;
        let end = if stands_alone(first) {
            start + first.len_utf8()
        } else {
            let is_end = |c: char| !c.is_alphanumeric() || stands_alone(c);
            text[start..].find(is_end).map_or(text.len(), |length| start + length)
        };
        rest = end;
        Some((start, &text[start..end]))
    })
    .filter(|(_, word)| word.len() <= MAX_WORD_BYTES)
}

/// Kana and ideographs, in which no space ends a word.
fn stands_alone(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The stems of all words that mean something; of all words, when none does.
pub fn stems(text: &str) -> Vec<String> {
    let lower: Vec<String> = words(text).map(|(_, word)| word.to_lowercase()).collect();
    let meaningful: Vec<String> =
        lower.iter().filter(|word| !is_common(word)).map(|word| stem(word)).collect();
    if meaningful.is_empty() { lower.iter().map(|word| stem(word)).collect() } else { meaningful }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_script() {
        let all = |text| words(text).map(|(_, word)| word).collect::<Vec<_>>();
        assert_eq!(all("max_concurrent-runs=5!"), ["max", "concurrent", "runs", "5"]);
        assert_eq!(all("Größe ändern"), ["Größe", "ändern"]);
        assert_eq!(all("設定API"), ["設", "定", "API"]);
        assert_eq!(all("🎷"), Vec::<&str>::new());
    }

    #[test]
    fn common_words_are_sorted_and_dropped() {
        assert!(COMMON.is_sorted());
        assert_eq!(stems("How do I configure rate limiting?"), ["configur", "rat", "limit"]);
        assert_eq!(stems("what is it"), ["what", "is", "it"]);
    }
}
