//! A document cut at its headings.

use std::ops::Range;

/// A section that is longer is cut at the next blank line, so that every hit is a passage and not a book.
const SOFT_BYTES: usize = 4_000;
/// And here in any case.
const HARD_BYTES: usize = 16_000;
const MAX_HEADING_CHARS: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentSection {
    /// From the outermost heading to its own. Empty before the first one.
    pub headings: Vec<String>,
    /// Where it begins, counted from 1: its heading, or the first line of a later part.
    pub line: usize,
    /// Its text without the heading.
    pub range: Range<usize>,
}

/// All sections with text in them, in order.
pub fn split(text: &str) -> Vec<DocumentSection> {
    let mut splitter = Splitter::default();
    let skip = frontmatter_bytes(text);
    let mut at = skip;
    let mut lines = text[skip..].split_inclusive('\n').peekable();
    splitter.number = text[..skip].lines().count();
    splitter.begin(skip, splitter.number + 1);
    while let Some(line) = lines.next() {
        let next = lines.peek().copied().unwrap_or_default();
        splitter.line(text, at, line, next);
        at += line.len();
    }
    splitter.end(text, text.len());
    splitter.sections
}

/// The length of a YAML head, which is no text to read.
fn frontmatter_bytes(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else { return 0 };
    let mut at = text.len() - rest.len();
    for line in rest.split_inclusive('\n').take(500) {
        at += line.len();
        if line.trim_end() == "---" {
            return at;
        }
    }
    0
}

#[derive(Default)]
struct Splitter {
    sections: Vec<DocumentSection>,
    /// The headings that are open, each with its level.
    headings: Vec<(usize, String)>,
    start: usize,
    start_line: usize,
    number: usize,
    /// The characters that close the code block the walk is in.
    fence: Option<String>,
    /// The line just read was the text of an underlined heading.
    is_underline: bool,
    after_blank: bool,
}

impl Splitter {
    fn line(&mut self, text: &str, at: usize, line: &str, next: &str) {
        self.number += 1;
        let end = at + line.len();
        let trimmed = line.trim();
        if std::mem::take(&mut self.is_underline) {
            self.begin(end, self.number - 1);
        } else if self.in_code(trimmed) {
            self.cut(text, end, false);
        } else if let Some((level, title)) = heading(line) {
            self.open(text, at, level, title);
            self.begin(end, self.number);
        } else if let Some(level) = self.underlined(trimmed, next) {
            self.open(text, at, level, trimmed);
            self.is_underline = true;
        } else {
            self.cut(text, end, trimmed.is_empty());
        }
        self.after_blank = trimmed.is_empty() || self.start == end;
    }

    /// Whether a line belongs to a code block, its fences included.
    fn in_code(&mut self, line: &str) -> bool {
        if let Some(fence) = &self.fence {
            let closes = line.starts_with(fence.as_str()) && line.chars().all(|c| fence.contains(c));
            if closes {
                self.fence = None;
            }
            return true;
        }
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'));
        let run: String = line.chars().take_while(|c| Some(*c) == mark).collect();
        if run.len() >= 3 {
            self.fence = Some(run);
        }
        self.fence.is_some()
    }

    /// A heading of one line with `===` or `---` below it.
    fn underlined(&self, line: &str, next: &str) -> Option<usize> {
        let next = next.trim_end();
        let is_run = |mark: char| next.len() >= 3 && next.chars().all(|c| c == mark);
        let stands_alone = self.after_blank || self.number == 1;
        match line {
            "" => None,
            _ if stands_alone && is_run('=') => Some(1),
            _ if stands_alone && is_run('-') => Some(2),
            _ => None,
        }
    }

    fn open(&mut self, text: &str, at: usize, level: usize, title: &str) {
        self.end(text, at);
        self.headings.retain(|(outer, _)| *outer < level);
        self.headings.push((level, title.chars().take(MAX_HEADING_CHARS).collect()));
    }

    fn begin(&mut self, at: usize, line: usize) {
        (self.start, self.start_line) = (at, line);
    }

    fn cut(&mut self, text: &str, end: usize, at_blank: bool) {
        let length = end - self.start;
        if length > HARD_BYTES || (at_blank && length > SOFT_BYTES) {
            self.end(text, end);
            self.begin(end, self.number + 1);
        }
    }

    fn end(&mut self, text: &str, end: usize) {
        let range = self.start..end.max(self.start);
        if text[range.clone()].trim().is_empty() {
            return;
        }
        let headings = self.headings.iter().map(|(_, title)| title.clone()).collect();
        self.sections.push(DocumentSection { headings, line: self.start_line, range });
    }
}

/// `## Title ##` as level and title.
fn heading(line: &str) -> Option<(usize, &str)> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let line = line.trim();
    let level = line.bytes().take_while(|b| *b == b'#').count();
    let title = &line[level..];
    let is_heading = indent < 4 && (1..=6).contains(&level) && title.starts_with([' ', '\t']);
    let title = title.trim().trim_end_matches('#').trim_end();
    (is_heading && !title.is_empty()).then_some((level, title))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(String, usize, &str)> {
        let sections = split(text);
        sections.into_iter().map(|s| (s.headings.join(" › "), s.line, text[s.range].trim())).collect()
    }

    #[test]
    fn headings_nest() {
        let text = "intro\n# A\none\n## B ##\ntwo\n### C\n# D\nthree\n";
        let expected = [("", 1, "intro"), ("A", 2, "one"), ("A › B", 4, "two"), ("D", 7, "three")];
        assert_eq!(shown(text), expected.map(|(h, line, t)| (h.to_owned(), line, t)));
    }

    #[test]
    fn code_and_heads_hold_no_headings() {
        let text = "---\ntitle: x\n---\n# A\n```sh\n# not a heading\n```\n#hashtag\n";
        assert_eq!(shown(text), [("A".to_owned(), 4, "```sh\n# not a heading\n```\n#hashtag")]);
    }

    #[test]
    fn underlined_headings() {
        let text = "Title\n=====\n\none\n\nPart\n----\ntwo\n\n| a |\n|---|\n";
        assert_eq!(
            shown(text),
            [("Title".to_owned(), 1, "one"), ("Title › Part".to_owned(), 6, "two\n\n| a |\n|---|")]
        );
    }

    #[test]
    fn long_texts_are_cut() {
        let paragraph = format!("{}\n\n", "word ".repeat(200));
        let sections = split(&paragraph.repeat(20));
        assert!(sections.len() > 3);
        assert!(sections.iter().all(|s| s.range.len() <= SOFT_BYTES + paragraph.len()));
        assert!(split(&"x\n".repeat(100_000)).iter().all(|s| s.range.len() <= HARD_BYTES + 2));
    }
}
