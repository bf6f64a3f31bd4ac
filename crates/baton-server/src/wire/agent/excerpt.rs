//! The lines of a file around a finding.

use std::collections::HashSet;

use baton_agents::source::Location;
use baton_sanitize::{Mask, sanitize};
use serde::Serialize;
use utoipa::ToSchema;

/// Lines before and after the finding.
const AROUND: usize = 2;
/// Of one that spans many lines, only the first are shown.
const MOST_LINES: usize = 20;
/// Lines before and after the excerpt that are read to find secrets of several lines.
const SURROUNDINGS: usize = 100;
/// In characters.
const LONGEST_LINE: usize = 200;

/// One line of a file.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct LineView {
    /// From 1.
    pub line: usize,
    /// Cut at 200 characters. What may be a secret is masked.
    pub text: String,
}

/// Empty where there is no source. The source of a finding is masked already, as reports quote it too; what looks like a secret in
/// the prompt below the head is masked here.
pub fn excerpt(location: &Location) -> Vec<LineView> {
    let text = location.source.text.as_str();
    if text.is_empty() {
        return Vec::new();
    }
    let first = location.start().line.saturating_sub(AROUND).max(1);
    let last = location.end().line.saturating_add(AROUND);
    let lines = text[location.source.line_start(first)..].lines();
    let nearby = nearby(location, first, last);
    (first..=last)
        .zip(lines)
        .take(MOST_LINES)
        .map(|(line, text)| LineView { line, text: shown(text, &nearby) })
        .collect()
}

/// The lines that stay when the surroundings are masked as a whole: a private key spans many lines, and only its first one looks like a
/// secret by itself.
fn nearby(location: &Location, first: usize, last: usize) -> HashSet<String> {
    let from = location.source.line_start(first.saturating_sub(SURROUNDINGS).max(1));
    let most = last - first + 2 * SURROUNDINGS;
    let around: Vec<&str> = location.source.text[from..].lines().take(most).collect();
    sanitize(&around.join("\n"), Mask::SecretsOnly).lines().map(str::to_owned).collect()
}

fn shown(line: &str, nearby: &HashSet<String>) -> String {
    let masked = sanitize(line, Mask::SecretsOnly);
    let is_part_of_secret = masked == line && !nearby.contains(line);
    let masked = if is_part_of_secret { "[masked]".into() } else { masked };
    masked.chars().take(LONGEST_LINE).map(|c| if c.is_control() && c != '\t' { '·' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use baton_agents::source::{SourceFile, Span};

    use super::*;

    fn at(text: &str, start: usize, end: usize) -> Vec<(usize, String)> {
        let location = SourceFile::new("a.md", text).locate(Span::new(start, end));
        excerpt(&location).into_iter().map(|LineView { line, text }| (line, text)).collect()
    }

    fn lines(numbers: std::ops::RangeInclusive<usize>) -> Vec<(usize, String)> {
        numbers.map(|number| (number, format!("l{number}"))).collect()
    }

    #[test]
    fn a_secret_of_several_lines_is_masked_as_a_whole() {
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE KEY-----";
        let text = format!("a\n{key}\nb\n");
        let shown = at(&text, text.len() - 2, text.len() - 1);
        assert!(shown.iter().all(|(_, line)| !line.contains("BKcw") && !line.contains("MIIE")), "{shown:?}");
        assert_eq!(shown.last(), Some(&(6, "b".to_owned())));
    }

    #[test]
    fn an_excerpt_has_two_lines_around_the_finding() {
        let text: String = (1..=9).map(|number| format!("l{number}\n")).collect();
        assert_eq!(at(&text, 12, 14), lines(3..=7));
        assert_eq!(at(&text, 0, 1), lines(1..=3));
        assert_eq!(at(&text, 24, 26), lines(7..=9));
        assert_eq!(at(&text, 12, 17), lines(3..=8), "all lines of the finding");
        assert_eq!(at("", 0, 0), []);
        let long = format!("{}\u{7}", "ä".repeat(300));
        assert_eq!(at(&long, 0, 0), [(1, "ä".repeat(200))]);
        let many = "x\n".repeat(100);
        assert_eq!(at(&many, 0, 199).len(), MOST_LINES);
        assert_eq!(at("a\u{7}b\r\n", 0, 1), [(1, "a·b".to_owned())]);
        assert!(!at("key: sk-hunter2hunter2hunter2", 0, 1)[0].1.contains("hunter2"));
    }
}
