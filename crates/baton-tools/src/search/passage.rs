//! What is shown of a section: the part that has most to do with the question.

use std::collections::{BTreeSet, HashSet};

use baton_core::stem::stem;

use super::words::{stems, words};

/// Enough to answer from, small enough that ten hits fit into a context.
const MAX_BYTES: usize = 900;

/// The run of whole lines with the most different words of the query; the earliest, when several are equal. A section
/// that fits is given whole.
pub fn passage(text: &str, query: &str) -> String {
    let text = text.trim_matches(['\n', '\r']).trim_end();
    if text.len() <= MAX_BYTES {
        return text.to_owned();
    }
    let asked: HashSet<String> = stems(query).into_iter().collect();
    let lines: Vec<&str> = text.lines().collect();
    let found: Vec<BTreeSet<String>> = lines.iter().map(|line| matches(line, &asked)).collect();
    let best = (0..lines.len())
        .map(|start| (window(&lines, &found, start), start))
        .max_by_key(|(score, start)| (*score, std::cmp::Reverse(*start)));
    let start = best.map_or(0, |(_, start)| start);
    shown(&lines, start)
}

fn matches(line: &str, asked: &HashSet<String>) -> BTreeSet<String> {
    words(line).map(|(_, word)| stem(&word.to_lowercase())).filter(|stem| asked.contains(stem)).collect()
}

/// How many different words the lines from `start` on have, as far as they fit.
fn window(lines: &[&str], found: &[BTreeSet<String>], start: usize) -> usize {
    // A passage that begins with nothing is never better than the one that begins a line later.
    if lines[start].trim().is_empty() {
        return 0;
    }
    let mut seen: BTreeSet<&String> = BTreeSet::new();
    let mut bytes = 0;
    for (line, stems) in lines[start..].iter().zip(&found[start..]) {
        bytes += line.len() + 1;
        if bytes > MAX_BYTES {
            break;
        }
        seen.extend(stems);
    }
    seen.len()
}

fn shown(lines: &[&str], start: usize) -> String {
    let mut passage = if start > 0 { "…\n".to_owned() } else { String::new() };
    for (taken, line) in lines[start..].iter().enumerate() {
        if passage.len() + line.len() > MAX_BYTES {
            if taken == 0 {
                passage += &line[..line.floor_char_boundary(MAX_BYTES)];
            }
            return format!("{}\n…", passage.trim_end());
        }
        passage += line;
        passage.push('\n');
    }
    passage.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_matters() {
        let filler = "nothing to see here\n".repeat(60);
        let text = format!("{filler}\nlimits are set\nper tenant\n{filler}");
        let found = passage(&text, "tenant limit");
        assert!(found.starts_with("…\n") && found.ends_with('…'), "{found}");
        assert!(found.contains("limits are set\nper tenant"));
        assert!(found.len() <= MAX_BYTES + 10);
        assert_eq!(passage("\n\nshort\n", "x"), "short");
    }

    #[test]
    fn one_long_line_is_cut() {
        let found = passage(&"ä".repeat(5_000), "x");
        assert!(found.len() <= MAX_BYTES + 10);
        assert!(found.ends_with('…'));
    }
}
