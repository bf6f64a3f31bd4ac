//! Stemming of English words, so that forms of a word compare as equal.

/// Removes common English endings from a lower-case word, so that `limits`, `limiting`, `limited` and `limitation` have one
/// stem. Wrong stems are harmless, because query and text are treated alike.
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
            // `documentation` is `document`, which has an ending of its own.
            "ation" => without_ending(root),
            _ => root.to_owned(),
        };
    }
    word.to_owned()
}

/// Reduces `stopp` to `stop`, but keeps `call`, `pass` and `buzz`. `operat` loses its `at` as well.
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
            &["document", "documents", "documentation"],
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
}
