//! The question for a colleague (K8): what is asked, in words that can be understood without the conversation. Not the words of the
//! person: without greetings and politeness, without "my", and with the matter in place of "it".

use super::situation::Situation;
use super::words::telling;

/// At the beginning and at the end of a message, they ask nothing.
const FILLER: &[&str] = &[
    "hi there",
    "hi",
    "hello",
    "hey",
    "good morning",
    "good afternoon",
    "thank you",
    "thanks",
    "please",
    "ok",
    "okay",
    "well",
    "so",
    "and",
    "but",
    "also",
    "now",
    "sorry",
    "one more question",
    "a question",
    "can you tell me",
    "could you tell me",
    "can you explain",
    "could you explain",
    "can you",
    "could you",
    "would you",
    "tell me",
    "explain to me",
    "explain",
    "i want to know",
    "i would like to know",
    "i'd like to know",
    "i was wondering",
    "i wonder",
    "do you know",
];
/// How questions begin, and how the query does.
const FORMS: &[(&str, &str)] = &[
    ("how do i", "how to"),
    ("how do we", "how to"),
    ("how do you", "how to"),
    ("how can i", "how to"),
    ("how can we", "how to"),
    ("how should i", "how to"),
    ("how would i", "how to"),
    ("where do i find", "where to find"),
    ("where can i find", "where to find"),
    ("what are the", ""),
    ("what is the", ""),
    ("what's the", ""),
    ("what are", ""),
    ("what is", ""),
    ("what's", ""),
    ("which are the", ""),
];
const PRONOUNS: &[&str] = &["it", "that", "this", "they", "them", "those", "these"];
/// "that" and the like stand alone before these, and at the end.
const AFTER_A_PRONOUN: &[&str] = &[
    "is", "are", "was", "were", "does", "do", "did", "has", "have", "can", "could", "will", "would", "work",
    "works", "mean", "means", "happen", "happens",
];
/// "it" stands for nothing before these: "how long does it take".
const AFTER_NOTHING: &[&str] = &["take", "takes", "possible", "worth", "true", "make", "seem", "seems"];
const DETERMINERS: &[&str] = &["a", "an", "the", "my", "our", "your", "his", "her", "their"];
/// Of the matter that an earlier question was about, in words.
const MOST_WORDS: usize = 8;

/// The query for the question of a turn.
pub(super) fn standalone(situation: &Situation<'_>) -> String {
    let query = without_filler(&situation.question);
    match pronoun(&query) {
        Some(at) => situation.earlier_questions().find_map(|earlier| matter(&earlier)).map_or(
            query.clone(),
            |matter| {
                let words = query.split_whitespace().enumerate();
                let resolved = words.map(|(place, word)| {
                    let marks = word.trim_start_matches(|c: char| c.is_alphanumeric());
                    if place == at { format!("{matter}{marks}") } else { word.to_owned() }
                });
                resolved.collect::<Vec<_>>().join(" ")
            },
        ),
        None => query,
    }
}

/// A question as a query. What asks nothing at all stays as it is.
fn without_filler(question: &str) -> String {
    let mut rest = question.trim();
    loop {
        let shorter = FILLER.iter().find_map(|filler| after(rest, filler).or_else(|| before(rest, filler)));
        match shorter.filter(|shorter| !telling(shorter).is_empty()) {
            Some(shorter) => rest = shorter,
            None => break,
        }
    }
    let (form, rest) = FORMS
        .iter()
        .find_map(|(asked, form)| Some((*form, after(rest, asked)?)))
        .filter(|(_, rest)| !telling(rest).is_empty())
        .unwrap_or(("", rest));
    let rest = rest.trim_end_matches(['?', '!', '.', ' ']);
    if telling(rest).is_empty() {
        return question.trim().to_owned();
    }
    let query = format!("{form} {rest}");
    // The lines of a longer text stay as they are.
    let lines = query.trim().lines().map(|line| line.split(' ').map(neutral).collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Replaces `my` and `our` by `the`.
fn neutral(word: &str) -> &str {
    match word {
        "my" | "our" | "My" | "Our" => "the",
        other => other,
    }
}

/// What follows the phrase at the beginning of the text.
fn after<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(phrase.len())?;
    let is_word = rest.starts_with([' ', ',', '!', ':', '.', '\n']);
    (is_word && start.eq_ignore_ascii_case(phrase))
        .then(|| rest.trim_start_matches([' ', ',', '!', ':', '.', '\n']))
}

/// What precedes the phrase at the end of the text.
fn before<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    let text = text.trim_end_matches(['?', '!', '.', ' ']);
    let (rest, end) = text.split_at_checked(text.len().checked_sub(phrase.len())?)?;
    let is_word = rest.ends_with([' ', ',', '!', '?', '.', '\n']);
    (is_word && end.eq_ignore_ascii_case(phrase)).then(|| rest.trim_end_matches([' ', ',', '\n']))
}

/// The place of the word that stands for the matter of an earlier question. None if the question itself names what it stands for.
fn pronoun(query: &str) -> Option<usize> {
    let words: Vec<String> = query
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .collect();
    let is_alone = |at: usize| match (words[at].as_str(), words.get(at + 1).map(String::as_str)) {
        ("it", Some(next)) => !AFTER_NOTHING.contains(&next),
        ("it" | "they" | "them", _) | (_, None) => true,
        (_, Some(next)) => AFTER_A_PRONOUN.contains(&next),
    };
    let at = (0..words.len()).find(|at| PRONOUNS.contains(&words[*at].as_str()) && is_alone(*at))?;
    let names = words[..at]
        .windows(2)
        .any(|pair| DETERMINERS.contains(&pair[0].as_str()) && !telling(&pair[1]).is_empty());
    let ends_a_part =
        query.split_whitespace().take(at).any(|word| word.ends_with([',', '.', ';', ':', '!', '?']));
    (!names && !ends_a_part).then_some(at)
}

/// What a question is about, if it says so itself: "how to configure rate limiting" is about "rate limiting".
fn matter(question: &str) -> Option<String> {
    let query = without_filler(question);
    if pronoun(&query).is_some() {
        return None;
    }
    let words: Vec<&str> =
        query.lines().next()?.split([',', ';', '?', '.', '!']).next()?.split_whitespace().collect();
    let words = match words.as_slice() {
        ["how", "to", _, rest @ ..] | ["where", "to", "find", rest @ ..] => rest,
        all => all,
    };
    let words = &words[..words.len().min(MOST_WORDS)];
    let matter = words.join(" ");
    (!telling(&matter).is_empty()).then_some(matter)
}

#[cfg(test)]
mod tests {
    use super::{matter, pronoun, without_filler};

    /// K8, the examples of the seed first.
    #[test]
    fn k_8_question_becomes_a_query_of_its_own() {
        for (question, expected) in [
            (
                "What are the best practices for error handling in Python agents?",
                "best practices for error handling in Python agents",
            ),
            (
                "How do I configure rate limiting for my agent?",
                "how to configure rate limiting for the agent",
            ),
            ("Hi! Could you tell me how I set a budget, please? Thanks!", "how I set a budget"),
            ("Please compare Rust and Go.", "compare Rust and Go"),
            ("Hello, what's a baton?", "a baton"),
            // Nothing is left of these.
            ("What is the?", "What is the?"),
            ("Hi!", "Hi!"),
            ("Größe", "Größe"),
            ("ß", "ß"),
            ("", ""),
        ] {
            assert_eq!(without_filler(question), expected, "{question}");
        }
    }

    #[test]
    fn only_an_open_pronoun_is_resolved() {
        let word =
            |query: &str| pronoun(query).map(|at| query.split_whitespace().nth(at).unwrap().to_owned());
        for query in [
            "what happens when it is exceeded",
            "how to change that",
            "does this work in production",
            "who uses them",
        ] {
            assert!(word(query).is_some(), "{query}");
        }
        for query in [
            "how long does it take",
            "how to restart the server when it crashes",
            "I have Postgres, how to back it up",
            "the skill that sends alerts",
            "this limit",
        ] {
            assert_eq!(word(query), None, "{query}");
        }
        assert_eq!(matter("How do I configure rate limiting?").as_deref(), Some("rate limiting"));
        assert_eq!(matter("And what happens then with it?"), None);
        assert_eq!(matter("Hi!"), None);
    }
}
