//! Checks that values which a model read from a message are really in it. What is recorded are the user's own words, so a value
//! that the model made up or took from elsewhere is never stored.
//!
//! A value counts if the message contains it as it is, or each item of it if it is a list. A longer value in other words is
//! replaced by the sentence of the message that it restates. Words of a question do not count, and neither does the phrase that
//! started the handoff.

use std::collections::BTreeSet;
use std::ops::Range;

use baton_core::agent::Slot;
use baton_core::stem::stem;
use baton_core::workflow::consent::NO;

/// A value with at most this many words is one thing: no other value is a part of it.
const MAX_ATOMIC_WORDS: usize = 4;
/// A sentence with at most this many words answers one question.
const MAX_SINGLE_ANSWER_WORDS: usize = 12;
/// Significant words that a value needs to be recognized as the restatement of a sentence.
const MIN_RESTATED_WORDS: usize = 3;
/// The share of a value's significant words that the restated sentence contains.
const MIN_RESTATED_SHARE: f64 = 0.6;
/// Words that say nothing about whether two sentences have the same content.
const INSIGNIFICANT: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "have", "i", "in", "into", "is", "it",
    "its", "me", "my", "of", "on", "or", "our", "should", "that", "the", "their", "them", "they", "this",
    "to", "want", "we", "will", "with", "would", "you", "your",
];

/// A value that a model read from a message, before it is checked.
#[derive(Debug)]
pub(crate) struct ReadValue<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) text: String,
    /// Whether the value may be in other words than the message's. Then the sentence that it restates is taken.
    pub(crate) may_restate: bool,
}

/// A message, split into words and sentences.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    message: &'a str,
    words: Vec<MessageWord>,
    /// Ranges of `words`.
    sentences: Vec<Sentence>,
    /// Phrases that are a request for the agent and no value, in lower case.
    triggers: Vec<Vec<String>>,
}

#[derive(Debug)]
struct MessageWord {
    lower: String,
    /// The place in the message, in bytes.
    place: Range<usize>,
    is_quoted: bool,
}

#[derive(Debug)]
struct Sentence {
    words: Range<usize>,
    is_question: bool,
}

/// A value that the message supports.
struct Supported<'a> {
    slot: &'a Slot,
    text: String,
    /// The words of the message that support it.
    spans: Vec<Range<usize>>,
}

impl<'a> Evidence<'a> {
    pub(crate) fn new(message: &'a str, triggers: &[String]) -> Self {
        let words = words(message);
        let sentences = sentences(message, &words);
        let triggers = triggers.iter().map(|trigger| lower_words(trigger)).collect();
        Self { message, words, sentences, triggers }
    }

    /// The values that the message supports, by key and in the user's words. The order of `values` decides between two values
    /// that rest on the same words.
    pub(crate) fn supported(&self, values: Vec<ReadValue<'_>>) -> Vec<(String, String)> {
        let mut found: Vec<Supported<'_>> = Vec::new();
        let mut restated = Vec::new();
        for value in values {
            match self.literal(&value) {
                Some(supported) => found.push(supported),
                None if value.may_restate => restated.push(value),
                None => {}
            }
        }
        let mut kept = without_parts(found);
        for value in restated {
            let used: Vec<Range<usize>> = kept.iter().flat_map(|one| one.spans.clone()).collect();
            kept.extend(self.restatement(&value, &used));
        }
        kept.into_iter().map(|one| (one.slot.key.clone(), one.text)).collect()
    }

    /// The value, if the message contains it.
    fn literal<'s>(&self, value: &ReadValue<'s>) -> Option<Supported<'s>> {
        let slot = value.slot;
        if !slot.choices.is_empty() {
            let span = self.in_order(&lower_words(&value.text))?;
            let is_denied = span.start > 0 && NO.contains(&self.words[span.start - 1].lower.as_str());
            if is_denied || self.is_asked(&span) {
                return None;
            }
            return Some(Supported { slot, text: value.text.clone(), spans: vec![span] });
        }
        let spans = match self.span(&value.text) {
            Some(span) => vec![span],
            None => {
                let items = items(&value.text);
                let found: Vec<Range<usize>> = items.iter().filter_map(|item| self.span(item)).collect();
                // One item of a list that is not in the message may be left out. A list that is mostly made up is not one.
                if items.len() < 2 || found.is_empty() || found.len() * 2 < items.len() {
                    return None;
                }
                found
            }
        };
        let text: Vec<&str> = spans.iter().map(|span| self.text(span)).collect();
        Some(Supported { slot, text: text.join("\n"), spans })
    }

    /// Where the message contains the text, regardless of case and punctuation.
    fn span(&self, text: &str) -> Option<Range<usize>> {
        let wanted = lower_words(text);
        if wanted.is_empty() || self.triggers.contains(&wanted) {
            return None;
        }
        let is_here = |at: &usize| {
            self.words[*at..].iter().zip(&wanted).filter(|(word, wanted)| word.lower == **wanted).count()
                == wanted.len()
        };
        let at = (0..self.words.len()).find(is_here)?;
        let span = at..at + wanted.len();
        (!self.is_asked(&span)).then_some(span)
    }

    /// Where the message contains all of the words in this order, perhaps with others between them, within one sentence.
    fn in_order(&self, wanted: &[String]) -> Option<Range<usize>> {
        if wanted.is_empty() {
            return None;
        }
        self.sentences.iter().find_map(|sentence| {
            let mut at = sentence.words.clone();
            let mut places = Vec::new();
            for word in wanted {
                places.push(at.find(|at| stem(&self.words[*at].lower) == stem(word))?);
            }
            Some(*places.first()?..places.last()? + 1)
        })
    }

    /// Whether the span is most of a question that the user asks. Quoted words are no question to the agent.
    fn is_asked(&self, span: &Range<usize>) -> bool {
        let is_quoted = self.words[span.clone()].iter().all(|word| word.is_quoted);
        self.sentences.iter().any(|sentence| {
            let shared = overlap(&sentence.words, span);
            sentence.is_question && !is_quoted && shared * 2 > sentence.words.len()
        })
    }

    /// The sentence that a value restates in other words.
    fn restatement<'s>(&self, value: &ReadValue<'s>, used: &[Range<usize>]) -> Option<Supported<'s>> {
        let words = lower_words(&value.text);
        let wanted = significant(words.iter());
        if words.len() <= MAX_ATOMIC_WORDS || wanted.len() < MIN_RESTATED_WORDS {
            return None;
        }
        let is_free = |sentence: &&Sentence| {
            let is_used = used.iter().any(|span| overlap(span, &sentence.words) * 2 > sentence.words.len());
            !sentence.is_question && (!is_used || sentence.words.len() > MAX_SINGLE_ANSWER_WORDS)
        };
        let share = |sentence: &Sentence| {
            let has = significant(self.words[sentence.words.clone()].iter().map(|word| &word.lower));
            let shared = wanted.intersection(&has).count();
            #[expect(clippy::cast_precision_loss, reason = "a message has few words")]
            let share = shared as f64 / wanted.len() as f64;
            share
        };
        let (best, sentence) = self
            .sentences
            .iter()
            .filter(is_free)
            .map(|sentence| (share(sentence), sentence))
            .max_by(|(left, _), (right, _)| left.total_cmp(right))?;
        let words: Vec<String> =
            self.words[sentence.words.clone()].iter().map(|word| word.lower.clone()).collect();
        if best < MIN_RESTATED_SHARE || self.triggers.contains(&words) {
            return None;
        }
        let text = self.text(&sentence.words).to_owned();
        Some(Supported { slot: value.slot, text, spans: vec![sentence.words.clone()] })
    }

    /// The message from the first to the last word of the span.
    fn text(&self, span: &Range<usize>) -> &'a str {
        let (first, last) = (&self.words[span.start], &self.words[span.end - 1]);
        &self.message[first.place.start..last.place.end]
    }
}

/// Leaves out values that only repeat a part of a short value, or the words of an earlier one.
fn without_parts(found: Vec<Supported<'_>>) -> Vec<Supported<'_>> {
    let is_part = |at: usize| {
        let is_of = |span: &Range<usize>, (other, one): (usize, &Supported<'_>)| {
            one.spans.iter().any(|whole| {
                let is_inside = whole.start <= span.start && span.end <= whole.end;
                let is_same = whole == span;
                let is_short = whole.len() <= MAX_ATOMIC_WORDS;
                other != at && is_inside && if is_same { other < at } else { is_short }
            })
        };
        found[at].slot.choices.is_empty()
            && found[at].spans.iter().all(|span| {
                let others = found.iter().enumerate();
                others.filter(|(_, one)| one.slot.choices.is_empty()).any(|other| is_of(span, other))
            })
    };
    let parts: Vec<bool> = (0..found.len()).map(is_part).collect();
    found.into_iter().zip(parts).filter(|(_, is_part)| !is_part).map(|(one, _)| one).collect()
}

fn overlap(left: &Range<usize>, right: &Range<usize>) -> usize {
    left.end.min(right.end).saturating_sub(left.start.max(right.start))
}

fn significant<'a>(words: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    let says =
        |word: &&String| !INSIGNIFICANT.contains(&word.as_str()) && !word.chars().all(|c| c.is_ascii_digit());
    words.filter(says).map(|word| stem(word)).collect()
}

/// The items of a list: one in each line, or separated by commas or semicolons. Numbers and bullets before an item are left out.
fn items(text: &str) -> Vec<&str> {
    let separators: &[char] = if text.trim().contains('\n') { &['\n'] } else { &[',', ';'] };
    let bare = |item: &'_ str| item.trim().trim_start_matches(|c: char| c.is_ascii_digit()).len();
    text.split(separators)
        .map(|item| {
            let item = item.trim();
            let rest = &item[item.len() - bare(item)..];
            rest.trim_start_matches(['.', ')', '-', '*', '•']).trim()
        })
        .filter(|item| !item.is_empty())
        .collect()
}

pub(super) fn lower_words(text: &str) -> Vec<String> {
    words(text).into_iter().map(|word| word.lower).collect()
}

fn words(text: &str) -> Vec<MessageWord> {
    let mut words: Vec<MessageWord> = Vec::new();
    let (mut start, mut is_quoted) = (None, false);
    let mut end_word = |from: Option<usize>, to: usize, is_quoted: bool| {
        if let Some(from) = from {
            words.push(MessageWord { lower: text[from..to].to_lowercase(), place: from..to, is_quoted });
        }
    };
    for (at, c) in text.char_indices() {
        if c.is_alphanumeric() {
            start.get_or_insert(at);
            continue;
        }
        // An apostrophe inside a word, as in "don't", belongs to it.
        let is_inside = matches!(c, '\'' | '’')
            && start.is_some()
            && text[at + c.len_utf8()..].starts_with(char::is_alphanumeric);
        if is_inside {
            continue;
        }
        end_word(start.take(), at, is_quoted);
        match c {
            '"' => is_quoted = !is_quoted,
            '“' | '„' | '«' => is_quoted = true,
            '”' | '»' => is_quoted = false,
            _ => {}
        }
    }
    end_word(start, text.len(), is_quoted);
    words
}

/// Sentences end with a period, a question mark, an exclamation mark or the line. The period of a number such as `1.` ends none.
fn sentences(text: &str, words: &[MessageWord]) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    let mut first = 0;
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map_or(text.len(), |next| next.place.start);
        let between = &text[word.place.end..next];
        let is_last = at + 1 == words.len();
        let is_number = word.lower.chars().all(|c| c.is_ascii_digit());
        let has_space = between.contains(char::is_whitespace);
        let is_end = between.contains('\n')
            || has_space && between.contains(['?', '!'])
            || has_space && between.contains('.') && !is_number;
        if is_end || is_last {
            sentences.push(Sentence { words: first..at + 1, is_question: between.contains('?') });
            first = at + 1;
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(key: &str, choices: &[&str]) -> Slot {
        let choices = choices.iter().map(ToString::to_string).collect();
        Slot { key: key.to_owned(), ask: String::new(), choices, required: true }
    }

    /// The supported values, each as `key=text`. Keys in capitals may be restated.
    fn check(message: &str, values: &[(&str, &str)]) -> Vec<String> {
        let slots: Vec<Slot> = values.iter().map(|(key, _)| slot(key, &[])).collect();
        let read = slots.iter().zip(values).map(|(slot, (key, text))| {
            let may_restate = key.chars().all(char::is_uppercase);
            ReadValue { slot, text: (*text).to_owned(), may_restate }
        });
        let evidence = Evidence::new(message, &["create a skill".to_owned()]);
        evidence.supported(read.collect()).into_iter().map(|(key, text)| format!("{key}={text}")).collect()
    }

    #[test]
    fn only_words_of_the_message_count() {
        let message = "The order number is R-1001 and the article is the kettle.";
        let read = [("order", "r-1001"), ("article", "The Kettle"), ("reason", "it is broken")];
        assert_eq!(check(message, &read), ["order=R-1001", "article=the kettle"]);
        assert!(
            check("create a skill", &[("name", "create a skill"), ("P", "A new skill to help")]).is_empty()
        );
        assert!(check("", &[("name", "")]).is_empty());
    }

    #[test]
    fn items_of_lists_are_checked_one_by_one() {
        let message = "People say \"write a bug report\" or \"report this bug\", but not \"fix this bug\".";
        let read = [("t", "1. write a bug report, report this bug, file it"), ("n", "fix this bug")];
        assert_eq!(check(message, &read), ["t=write a bug report\nreport this bug", "n=fix this bug"]);
        assert!(check(message, &[("t", "open a ticket\nclose it\nreport this bug")]).is_empty());
    }

    #[test]
    fn questions_are_not_values() {
        let weather = "What is the weather like today?";
        assert!(check(weather, &[("t", weather), ("N", "The weather is like today")]).is_empty());
        assert_eq!(check("Can you please call it Pager?", &[("name", "Pager")]), ["name=Pager"]);
        let quoted = "They ask \"what are the action items?\"";
        assert_eq!(check(quoted, &[("t", "what are the action items")]), ["t=what are the action items"]);
    }

    #[test]
    fn parts_of_a_short_value_are_not_values() {
        let message = "Call it Meeting Summary.";
        assert_eq!(
            check(message, &[("name", "Meeting Summary"), ("t", "Meeting, summary")]),
            ["name=Meeting Summary"]
        );
        assert_eq!(
            check(message, &[("name", "Meeting Summary"), ("t", "meeting summary")]),
            ["name=Meeting Summary"]
        );
        let long = "Make a skill named Bug Report that turns remarks into reports.";
        assert_eq!(check(long, &[("p", long), ("name", "Bug Report")]).len(), 2);
    }

    #[test]
    fn restated_sentence_is_taken_in_the_words_of_the_user() {
        let message = "I want a skill that turns meeting notes into a short summary for managers. Thanks!";
        let read = "To convert meeting notes into a concise summary for managers.";
        let sentence = "I want a skill that turns meeting notes into a short summary for managers";
        assert_eq!(check(message, &[("P", read)]), [format!("P={sentence}")]);
        assert!(check(message, &[("p", read)]).is_empty(), "only where it is allowed");
        assert!(check(message, &[("P", "1. Collect notes from the users of the tool")]).is_empty());
        assert!(check(message, &[("P", "Meeting Note Summary")]).is_empty(), "a name is not a sentence");
        let steps = "Steps: 1. read the notes, 2. write bullets.";
        assert_eq!(check(steps, &[("s", steps), ("P", "To read notes and write bullets")]).len(), 1);
    }

    #[test]
    fn words_of_a_choice_may_be_apart() {
        let evidence = Evidence::new("A refund, and please pick it up. It arrived damaged.", &[]);
        let holds = |choice: &str| {
            let slot = slot("k", &["pick-up", "drop-off", "arrived damaged"]);
            let read = ReadValue { slot: &slot, text: choice.to_owned(), may_restate: false };
            evidence.supported(vec![read]).len() == 1
        };
        assert!(holds("pick-up") && holds("arrived damaged"));
        assert!(!holds("drop-off"));
    }
}
