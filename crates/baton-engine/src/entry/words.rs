//! Texts as words that can be compared.

use std::collections::BTreeSet;

/// Words that say nothing about a subject.
const SILENT: &str = "
    a about after all also am an and any are as ask asks at be because been but by can could did do does doing each for
    from get give go had has have he hello help her here hey hi him his how i if in into is it its just know let like
    make may me more most much must my need new no not now of on one or other our out over person please she should show
    so some tell than thank thanks that the their them then there these they this those through to together too up us
    use very want was we were what when where which who why will with would you your";

/// Endings that the same word may have, the longest first, and how many letters must be left.
const ENDINGS: &[(&str, usize)] = &[
    ("ations", 4),
    ("ation", 4),
    ("ings", 4),
    ("ing", 3),
    ("ies", 3),
    ("ed", 4),
    ("es", 4),
    ("s", 3),
    ("e", 3),
    ("y", 3),
];

/// A text in small letters without punctuation, each word without its ending.
#[derive(Debug)]
pub(super) struct Words {
    /// All of them in order, with a space around each.
    line: String,
    /// Those that tell something.
    pub(super) telling: BTreeSet<String>,
}

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let lower = text.to_lowercase();
        let mut words = Self { line: " ".to_owned(), telling: BTreeSet::new() };
        let letters = |c: char| !c.is_alphanumeric() && c != '\'';
        for word in lower.split(letters).map(|word| word.trim_matches('\'')).filter(|word| !word.is_empty()) {
            let stem = stem(word);
            words.line.push_str(stem);
            words.line.push(' ');
            if !SILENT.split_ascii_whitespace().any(|silent| silent == word) {
                words.telling.insert(stem.to_owned());
            }
        }
        words
    }

    /// Whether the other words stand here, one after the other. An empty text stands nowhere.
    pub(super) fn holds(&self, other: &Self) -> bool {
        other.line.len() > 1 && self.line.contains(&other.line)
    }
}

/// The word without its ending. It need not be a word itself, only the same for words that belong together.
fn stem(word: &str) -> &str {
    let stem = ENDINGS.iter().find_map(|(ending, least)| {
        let stem = word.strip_suffix(ending)?;
        let is_ending = *ending != "s" || !stem.ends_with('s');
        (stem.chars().count() >= *least && is_ending).then_some(stem)
    });
    let stem = stem.unwrap_or(word);
    // `debugging` and `debug`, `stopped` and `stop`.
    let mut last = stem.char_indices().rev();
    match (last.next(), last.next()) {
        (Some((at, one)), Some((_, two))) if stem.len() < word.len() && one == two && stem.len() > 4 => {
            &stem[..at]
        }
        _ => stem,
    }
}
