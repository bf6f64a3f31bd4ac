//! Sentences of a text, and those that fit a question.

use super::words::overlap;

/// The sentences of prose. Headings, code and rules are left out; an item of a list is a sentence.
pub(super) fn sentences(text: &str) -> Vec<String> {
    paragraphs(text).iter().flat_map(|paragraph| split(paragraph)).collect()
}

fn paragraphs(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut in_code = false;
    for line in text.lines().map(str::trim) {
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        let item = item(line);
        if item.is_some() || line.is_empty() || line.starts_with('#') || is_fence {
            found.push(String::new());
        }
        if in_code || is_fence || line.starts_with('#') {
            continue;
        }
        let paragraph = found.last_mut().expect("never empty");
        if !paragraph.is_empty() {
            paragraph.push(' ');
        }
        *paragraph += item.unwrap_or(line);
    }
    found.retain(|paragraph| !paragraph.trim().is_empty());
    found
}

/// What a line of a list says.
fn item(line: &str) -> Option<&str> {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = number.strip_prefix(". ").filter(|_| number.len() < line.len());
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or(numbered)
}

fn split(paragraph: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut start = 0;
    let ends = paragraph.match_indices(['.', '!', '?']).map(|(at, _)| at + 1);
    for end in ends {
        let rest = &paragraph[end..];
        let next = rest.trim_start();
        // `e.g. this` and `1.5` do not end a sentence.
        let ends_here = rest.starts_with(' ') && !next.starts_with(char::is_lowercase);
        if ends_here {
            found.push(paragraph[start..end].trim().to_owned());
            start = end;
        }
    }
    found.push(paragraph[start..].trim().to_owned());
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// At most `most` sentences that share words with the question, in their order. The best are chosen.
pub(super) fn fitting(question: &str, text: &str, most: usize) -> Vec<String> {
    let all = sentences(text);
    let mut scored: Vec<(usize, usize)> =
        all.iter().enumerate().map(|(at, sentence)| (overlap(question, sentence), at)).collect();
    scored.retain(|(score, _)| *score > 0);
    scored.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
    // One word in common is a coincidence where another sentence has several.
    let best = scored.first().map_or(0, |(score, _)| *score);
    scored.retain(|(score, _)| score * 2 >= best);
    scored.truncate(most);
    let mut chosen: Vec<usize> = scored.into_iter().map(|(_, at)| at).collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|at| all[at].clone()).collect()
}

/// The beginning of a text: whole sentences if any fit, else as many characters as are allowed.
pub(super) fn beginning(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let cut = text.char_indices().nth(most.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    let kept = &text[..cut];
    let end =
        [". ", ".\n", "\n\n"].iter().filter_map(|mark| Some(kept.rfind(mark)? + mark.trim_end().len())).max();
    match end.filter(|end| *end * 2 > cut) {
        Some(end) => kept[..end].trim_end().to_owned(),
        None => format!("{}…", kept.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_and_lists_are_parted_into_sentences() {
        let text = "# Title\nYou advise on law,\ne.g. on terms. Be brief!\n\n- Check 1.5 points\n2. Skip the rest.\n```\ncode. Here.\n```";
        let expected =
            ["You advise on law, e.g. on terms.", "Be brief!", "Check 1.5 points", "Skip the rest."];
        assert_eq!(sentences(text), expected);
    }

    #[test]
    fn the_best_sentences_keep_their_order() {
        let text = "Be kind. Check the liability. Check term and liability caps. Check the term.";
        assert_eq!(
            fitting("Is the liability limited, and the term long?", text, 2),
            ["Check the liability.", "Check term and liability caps."]
        );
        assert!(fitting("Bananas", text, 2).is_empty());
    }

    #[test]
    fn a_beginning_is_bounded_in_characters() {
        assert_eq!(beginning("One. Two. Three is long.", 12), "One. Two.");
        assert_eq!(beginning("äöüäöüäöü", 4), "äöü…");
        assert_eq!(beginning("short", 5), "short");
    }
}
