//! Words as search compares them: lower-case, without common endings.

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

/// Takes the usual English endings off a lower-case word, so that `limits`, `limiting`, `limited` and `limitation`
/// are one word. Wrong guesses are harmless: question and text are treated alike.
pub fn stem(word: &str) -> String {
    if !word.is_ascii() || word.len() < 4 || word.bytes().any(|b| b.is_ascii_digit()) {
        return word.to_owned();
    }
    let singular = singular(word);
    let root = without_ending(&singular);
    match root.strip_suffix('e') {
        Some(short) if short.len() >= 3 => short.to_owned(),
        _ => root,
    }
}

fn singular(word: &str) -> String {
    let keep = |suffix: &str, more: &str| {
        word.strip_suffix(suffix).filter(|root| root.len() >= 2).map(|root| format!("{root}{more}"))
    };
    if let Some(root) = keep("sses", "ss").or_else(|| keep("ies", "y")) {
        return root;
    }
    let sibilant = ["xes", "zes", "ches", "shes"].iter().any(|ending| word.ends_with(ending));
    let kept = ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending));
    match word {
        _ if sibilant => word[..word.len() - 2].to_owned(),
        _ if word.ends_with('s') && !kept => word[..word.len() - 1].to_owned(),
        _ => word.to_owned(),
    }
}

fn without_ending(word: &str) -> String {
    for (ending, shortest) in [("ation", 4), ("ate", 4), ("ment", 4), ("ing", 3), ("ed", 3)] {
        let Some(root) = word.strip_suffix(ending) else { continue };
        let has_vowel = root.contains(['a', 'e', 'i', 'o', 'u', 'y']);
        if root.len() < shortest || !has_vowel {
            continue;
        }
        return match ending {
            "ing" | "ed" => verb(root).to_owned(),
            _ => root.to_owned(),
        };
    }
    word.to_owned()
}

/// `stopp` is `stop`, but `call`, `pass` and `buzz` stay. `operat` is what is left of `operate` too.
fn verb(root: &str) -> &str {
    match root.as_bytes() {
        [.., a, b] if a == b && !b"lszaeiou".contains(b) => &root[..root.len() - 1],
        [.., b'a', b't'] if root.len() >= 6 => &root[..root.len() - 2],
        _ => root,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_are_one() {
        for forms in [
            &["limit", "limits", "limited", "limiting", "limitation", "limitations"][..],
            &["configure", "configures", "configured", "configuring", "configuration"],
            &["authenticate", "authentication", "authenticating", "authenticated"],
            &["operate", "operates", "operated", "operating", "operation"],
            &["format", "formats", "formatted", "formatting"],
            &["update", "updates", "updated", "updating"],
            &["policy", "policies"],
            &["class", "classes"],
            &["box", "boxes"],
            &["stop", "stopped", "stopping", "stops"],
            &["deploy", "deployment", "deployments", "deployed"],
            &["agent", "agents"],
        ] {
            let stems: Vec<String> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.iter().all(|s| *s == stems[0]), "{forms:?} became {stems:?}");
        }
        for word in ["status", "this", "bus", "string", "king", "red", "ring"] {
            assert_eq!(stem(word), word);
        }
        assert_ne!(stem("policy"), stem("police"));
    }

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
