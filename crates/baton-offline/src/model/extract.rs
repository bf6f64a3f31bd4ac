//! Answers by quotation: the passages that share the most words with the question, with where they come from.

use std::collections::BTreeSet;

use super::words::telling;

const MOST_PASSAGES: usize = 3;
const MOST_CHARS: usize = 700;

/// A passage and the line that names its source.
#[derive(Debug)]
struct Passage<'a> {
    source: &'a str,
    /// Its place among what was found, from 1.
    rank: usize,
    text: &'a str,
    said: BTreeSet<String>,
    heading: BTreeSet<String>,
    /// Of the innermost heading alone: what the passage is about.
    title: BTreeSet<String>,
}

impl Passage<'_> {
    fn mentions(&self, word: &str) -> bool {
        self.said.contains(word) || self.heading.contains(word)
    }
}

/// How much more a word counts that is the agent's own subject.
const SUBJECT: usize = 3;
/// How much more a passage counts that is about the question: a list of everything mentions every word once.
const MEANT: usize = 3;

/// The best passages of `texts`, best first, or `None` when nothing shares a telling word with the question. `subject` is what the
/// agent is there for: of a question with many parts, its part comes first.
pub(super) fn answer(question: &str, subject: &str, texts: &[&str]) -> Option<String> {
    let wanted = telling(question);
    let subject = telling(subject);
    let passages: Vec<Passage<'_>> = texts.iter().flat_map(|text| passages(text)).collect();
    // A word that stands everywhere says little about any one passage.
    let weight = |word: &String| {
        let count = passages.iter().filter(|passage| passage.mentions(word)).count();
        1_000 * if subject.contains(word) { SUBJECT } else { 1 } / count.max(1)
    };
    let weights: Vec<(&String, usize)> = wanted.iter().map(|word| (word, weight(word))).collect();
    let shared = |words: &BTreeSet<String>| {
        weights.iter().filter(|(word, _)| words.contains(*word)).map(|(_, weight)| *weight).sum::<usize>()
    };
    // What a passage says counts, and what it stands under, and the former a little more.
    let mut scored: Vec<(usize, &Passage<'_>)> = passages
        .iter()
        .filter(|passage| shared(&passage.said) > 0)
        .map(|passage| {
            let all = passage.said.union(&passage.heading).cloned().collect();
            let score = 2 * shared(&all) + shared(&passage.said);
            // Whose whole title is asked for is about nothing else. A title of one word says too little for that.
            let is_meant = passage.title.len() > 1 && passage.title.is_subset(&wanted);
            (if is_meant { MEANT * score } else { score }, passage)
        })
        .collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let (best, first) = *scored.first()?;
    let words = |passage: &Passage<'_>| wanted.iter().filter(|word| passage.mentions(word)).count();
    // One word in common is a coincidence when the best passage has several.
    let enough = words(first);
    scored.retain(|(score, passage)| score * 3 >= best * 2 && words(passage) * 2 > enough);
    // An example says little without the prose it belongs to.
    let is_code = |passage: &Passage<'_>| passage.text.starts_with("```");
    let prose: BTreeSet<&str> =
        scored.iter().filter(|(_, passage)| !is_code(passage)).map(|(_, passage)| passage.source).collect();
    scored.retain(|(_, passage)| !is_code(passage) || prose.contains(passage.source));
    // Whoever searched all documents knows better than these few passages what a word is worth.
    scored.sort_by_key(|(score, passage)| std::cmp::Reverse(score * (passage.rank + 1) / passage.rank));
    scored.truncate(MOST_PASSAGES);
    let chosen: Vec<&Passage<'_>> = scored.into_iter().map(|(_, passage)| passage).collect();
    Some(render(&chosen))
}

fn passages(text: &str) -> Vec<Passage<'_>> {
    let (mut rank, mut source) = (1, "");
    let mut found = Vec::new();
    for block in blocks(text) {
        let (named, text) = split_source(block);
        (rank, source) = named.unwrap_or((rank, source));
        if !text.is_empty() && !is_contents(text) {
            let (said, heading, title) = (telling(text), telling(source), telling(title(source)));
            found.push(Passage { source, rank, text, said, heading, title });
        }
    }
    found
}

/// The innermost heading of a source, without its line.
fn title(source: &str) -> &str {
    let headings = source.rsplit_once(" (line ").map_or(source, |(headings, _)| headings);
    headings.rsplit_once(" › ").map_or("", |(_, title)| title)
}

/// Paragraphs: parted by blank lines, except within a code block, which stays whole.
fn blocks(text: &str) -> Vec<&str> {
    let (mut found, mut start, mut offset, mut in_code) = (Vec::new(), 0, 0, false);
    for line in text.split_inclusive('\n') {
        in_code ^= line.trim_start().starts_with("```");
        if line.trim().is_empty() && !in_code {
            found.push(text[start..offset].trim());
            start = offset + line.len();
        }
        offset += line.len();
    }
    found.push(text[start..].trim());
    found.retain(|block| !block.is_empty());
    found
}

/// A table of contents names everything and says nothing.
fn is_contents(text: &str) -> bool {
    text.lines().all(|line| line.trim_start().starts_with("- [") && line.contains("](#"))
}

/// Search results begin with a line such as `[1] docs/limits.md › Rate limits (line 3)`.
fn split_source(block: &str) -> (Option<(usize, &str)>, &str) {
    let (first, rest) = block.split_once('\n').unwrap_or((block, ""));
    let numbered = first.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let ranked = numbered.and_then(|(number, source)| {
        let rank = number.parse::<u16>().ok()?;
        Some((usize::from(rank).max(1), source))
    });
    if ranked.is_some() { (ranked, rest.trim()) } else { (None, block) }
}

fn render(passages: &[&Passage<'_>]) -> String {
    let mut sources: Vec<&str> = Vec::new();
    let mut out = String::from("This is what the sources say:\n");
    for passage in passages {
        let mark = if passage.source.is_empty() {
            String::new()
        } else {
            let at = sources.iter().position(|source| *source == passage.source).unwrap_or_else(|| {
                sources.push(passage.source);
                sources.len() - 1
            });
            format!("[{}]", at + 1)
        };
        out += &format!("\n{}\n", cited(&shortened(passage.text), &mark));
    }
    if !sources.is_empty() {
        out += "\nSources:\n";
        for (at, source) in sources.iter().enumerate() {
            out += &format!("[{}] {source}\n", at + 1);
        }
    }
    out.trim_end().to_owned()
}

/// The text with the number of its source. Behind the closing fence of a code block the number would keep the block open.
fn cited(text: &str, mark: &str) -> String {
    let ends_in_code = text.lines().last().is_some_and(|line| line.trim_start().starts_with("```"));
    let gap = if ends_in_code { "\n\n" } else { " " };
    if mark.is_empty() { text.to_owned() } else { format!("{text}{gap}{mark}") }
}

/// At most `MOST_CHARS` characters. A code block that is cut is closed.
fn shortened(text: &str) -> String {
    let Some((at, _)) = text.char_indices().nth(MOST_CHARS) else { return text.to_owned() };
    let cut = text[..at].trim_end();
    let fences = cut.lines().filter(|line| line.trim_start().starts_with("```")).count();
    let close = if fences % 2 == 1 { "\n```" } else { "" };
    format!("{cut}…{close}")
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn the_fitting_passage_is_quoted_with_its_source() {
        let found = "[1] docs/limits.md › Rate limits (line 3)\nSet requests_per_minute in [limits].\n\n[2] docs/colors.md › Colours (line 1)\nPick any.";
        let answer = answer("How do I configure rate limits?", "", &[found]).unwrap();
        assert!(answer.contains("Set requests_per_minute in [limits]. [1]"), "{answer}");
        assert!(answer.ends_with("Sources:\n[1] docs/limits.md › Rate limits (line 3)"), "{answer}");
    }

    #[test]
    fn a_code_block_is_closed_before_its_source() {
        let found =
            "[1] docs/limits.md › Rate limits (line 3)\nSet the rate limits:\n\n```toml\nrate = 1\n```";
        let answer = answer("How do I configure rate limits?", "", &[found]).unwrap();
        assert!(answer.contains("\n```\n\n[1]\n"), "{answer}");
    }

    #[test]
    fn a_code_block_that_is_cut_is_closed() {
        let long = format!("```toml\nrate limits = 1\n{}\n```", "x = 1\n".repeat(2000));
        let answer = answer("How do I configure rate limits?", "", &[&long]).unwrap();
        assert_eq!(answer.lines().filter(|line| line.starts_with("```")).count() % 2, 0, "{answer}");
    }

    #[test]
    fn a_code_block_stays_whole() {
        let found = "[1] a.md › Limits (line 1)\nRate limits:\n\n```toml\n[limits]\n\nrate = 1\n```\n\nBye.";
        assert_eq!(super::blocks(found).len(), 3);
        let elsewhere = "[1] a.md › Limits (line 1)\nSet rate limits here.\n\n[2] b.md › Limits (line 1)\n```\nrate limits\n```\n\n- [Rate limits](#rate-limits)";
        let said = answer("rate limits", "", &[elsewhere]).unwrap();
        assert!(
            said.contains("Set rate limits here.") && !said.contains("```") && !said.contains("](#"),
            "{said}"
        );
    }

    #[test]
    fn of_a_question_with_several_parts_the_own_part_is_answered() {
        let found = "[1] a.md › Bikes (line 1)\nDemand for bikes grows.\n\n[2] b.md › Bikes (line 1)\nThe range of bikes is short.";
        let about = |subject| answer("Bikes: demand and range?", subject, &[found]).unwrap();
        assert!(!about("You look at demand and prices.").contains("range of bikes"));
        assert!(!about("You look at range and maintenance.").contains("Demand"));
    }

    #[test]
    fn what_was_found_first_counts_more() {
        let found = "[1] a.md › Rate limiting (line 1)\nSet requests_per_minute to limit it.\n\n[2] b.md › Words (line 1)\nA rate, a limit.";
        let said = answer("rate limiting", "", &[found]).unwrap();
        assert!(said.lines().nth(2).unwrap().contains("requests_per_minute"), "{said}");
    }

    /// J1.5: a list of all settings mentions every word of the question; the section is the one about it.
    #[test]
    fn j1_5_the_section_about_it_comes_before_a_list_of_everything() {
        let found = "[1] a.md › Configuration › Rate limiting (line 9)\nTo limit how often somebody may ask, set it.\n\n```toml\n[limits]\n\
                     requests = 6\n```\n\n[2] a.md › Configuration › All keys (line 1)\n| `agents` | who |\n| `limits` | rate |\n\n\
                     [3] b.md › Agents (line 1)\nAn agent answers.\n\n[4] c.md › More (line 1)\nEach agent has its own limits.";
        let said = answer("How do I configure rate limiting for my agent?", "", &[found]).unwrap();
        assert!(said.lines().nth(2).unwrap().starts_with("To limit how often"), "{said}");
        assert!(said.contains("```toml\n[limits]"), "with its example: {said}");
    }

    #[test]
    fn nothing_fits() {
        assert_eq!(
            answer("How tall is the Eiffel Tower?", "", &["[1] a › B (line 1)\nBananas are yellow."]),
            None
        );
        assert_eq!(answer("", "", &[""]), None);
    }
}
