//! Texts as words that can be compared.

use std::collections::BTreeSet;

use baton_core::stem::stem;

/// Words that say nothing about a subject.
const STOP_WORDS: &str = "
    a about after all also am an and any are as ask asks at be because been but by can could did do does doing each for
    from get give go had has have he hello help her here hey hi him his how i if in into is it its just know let like
    make may me more most much must my need new no not now of on one or other our out over person please she should show
    so some tell than thank thanks that the their them then there these they this those through to together too up us
    use very want was we were what when where which who why will with would you your";

/// A text in small letters without punctuation, each word without its ending.
#[derive(Debug)]
pub(super) struct Words {
    /// All of them in order, with a space around each.
    line: String,
    /// Those that tell something.
    pub(super) significant: BTreeSet<String>,
}

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let lower = text.to_lowercase();
        let mut words = Self { line: " ".to_owned(), significant: BTreeSet::new() };
        let letters = |c: char| !c.is_alphanumeric() && c != '\'';
        for word in lower.split(letters).map(|word| word.trim_matches('\'')).filter(|word| !word.is_empty()) {
            let stem = stem(word);
            words.line.push_str(&stem);
            words.line.push(' ');
            if !STOP_WORDS.split_ascii_whitespace().any(|silent| silent == word) {
                words.significant.insert(stem);
            }
        }
        words
    }

    /// Whether the other words stand here, one after the other. An empty text stands nowhere.
    pub(super) fn contains_sequence(&self, other: &Self) -> bool {
        other.line.len() > 1 && self.line.contains(&other.line)
    }
}
