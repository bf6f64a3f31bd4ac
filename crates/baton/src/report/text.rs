//! Problems in the form that compilers made familiar: what, where, the line with a caret, what to do.
//!
//! What comes from files is made harmless first: control characters are shown instead of sent to the terminal, long lines
//! are cut around the place, and a file with very many problems shows the first ones.

use std::ops::Range;

use annotate_snippets::renderer::DEFAULT_TERM_WIDTH;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use baton_agents::source::SourcePosition;
use baton_agents::{Diagnostic, Location, Severity};

use super::ValidationReport;

/// Problems of one file that are printed.
const MAX_SHOWN: usize = 100;
/// Characters of a line that are printed, and how many of them before the place.
const MAX_LINE: usize = 240;
const BEFORE: usize = 80;

/// Colours are always written; the output stream drops them where they are not wanted.
pub fn render(report: &ValidationReport) -> String {
    let renderer = Renderer::styled().term_width(DEFAULT_TERM_WIDTH);
    let mut out = String::new();
    for file in report.problems.chunk_by(|a, b| a.location.path() == b.location.path()) {
        for problem in file.iter().take(MAX_SHOWN) {
            out += &render_problem(&renderer, problem);
            out += "\n\n";
        }
        if file.len() > MAX_SHOWN {
            let path = shown(&file[0].location.path().to_string_lossy());
            out += &format!("{path}: {} more problems, not shown\n\n", file.len() - MAX_SHOWN);
        }
    }
    out + &summary(report) + "\n"
}

fn render_problem(renderer: &Renderer, problem: &Diagnostic) -> String {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let (message, help) = (shown(&problem.message), shown(&problem.help));
    let related = problem
        .related
        .iter()
        .filter_map(|related| Some((shown(&related.message), Excerpt::of(&related.location)?)));
    let related: Vec<(String, Excerpt)> = related.collect();
    let excerpt = Excerpt::of(&problem.location);
    let title = level.primary_title(&message).id(problem.rule.word());
    let main = match &excerpt {
        Some(excerpt) => title.element(excerpt.snippet()),
        None => title.element(Origin::path(shown(&problem.location.path().to_string_lossy()))),
    };
    let notes = related
        .iter()
        .map(|(message, excerpt)| Level::NOTE.secondary_title(message.as_str()).element(excerpt.snippet()));
    let groups: Vec<Group<'_>> =
        std::iter::once(main.element(Level::HELP.message(&help))).chain(notes).collect();
    let excerpts = excerpt.iter().chain(related.iter().map(|(_, excerpt)| excerpt));
    with_real_columns(&renderer.render(&groups), excerpts)
}

/// Stands behind the path of an excerpt that is cut, whose column the renderer cannot know. For private use, so no
/// text means anything by it.
const CUT: char = '\u{e000}';

fn shown(text: &str) -> String {
    super::visible(text).replace(CUT, "•")
}

fn with_real_columns<'a>(rendered: &str, excerpts: impl Iterator<Item = &'a Excerpt>) -> String {
    let mut parts = rendered.split(CUT);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for (part, excerpt) in parts.zip(excerpts.filter(|excerpt| excerpt.is_cut())) {
        let after = part.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
        out += &format!(":{}:{}{after}", excerpt.line, excerpt.column);
    }
    out
}

/// The line on which a problem starts, with the place underlined as far as it stands on that line.
struct Excerpt {
    path: String,
    line: usize,
    column: usize,
    text: String,
    marked: Range<usize>,
}

impl Excerpt {
    fn of(location: &Location) -> Option<Self> {
        let text = location.source.text.as_str();
        if text.is_empty() {
            return None;
        }
        let SourcePosition { line, column } = location.start();
        let line_start = location.source.line_start(line);
        let line_text = text[line_start..].lines().next().unwrap_or_default();
        let start = (location.span.start - line_start).min(line_text.len());
        let end = (location.span.end - line_start).clamp(start, line_text.len());
        let (text, marked) = cut(line_text, start..end);
        // The renderer shows control characters of ASCII. These are as long as what they stand for.
        let text = text.replace(CUT, "•").replace(|c: char| c.is_control() && !c.is_ascii(), "·");
        let mut path = shown(&location.path().to_string_lossy());
        if text.len() != line_text.len() {
            path.push(CUT);
        }
        Some(Self { path, line, column, text, marked })
    }

    fn is_cut(&self) -> bool {
        self.path.ends_with(CUT)
    }

    fn snippet(&self) -> Snippet<'_, Annotation<'_>> {
        Snippet::source(self.text.as_str())
            .line_start(self.line)
            .path(self.path.as_str())
            .annotation(AnnotationKind::Primary.span(self.marked.clone()))
    }
}

/// A line of bounded length around the marked part, and where that part is in it.
fn cut(line: &str, marked: Range<usize>) -> (String, Range<usize>) {
    let before = line[..marked.start].char_indices().rev().take(BEFORE).last();
    let from = before.map_or(marked.start, |(at, _)| at);
    let to = line[from..].char_indices().nth(MAX_LINE).map_or(line.len(), |(at, _)| from + at);
    let (left, right) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
    // A short line stays whole; most are.
    if line.len() <= MAX_LINE {
        return (line.to_owned(), marked);
    }
    let shift = |at: usize| at.min(to) - from + left.len();
    (format!("{left}{}{right}", &line[from..to]), shift(marked.start)..shift(marked.end))
}

fn summary(report: &ValidationReport) -> String {
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let counts = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")];
    let found: Vec<String> = counts
        .into_iter()
        .map(|(severity, word)| (report.count(severity), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| plural(count, word))
        .collect();
    let found = if found.is_empty() { "no problems".to_owned() } else { found.join(", ") };
    format!("{} checked: {found}", plural(report.files, "file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let line = format!("{}here{}", "é".repeat(500), "x".repeat(500));
        let (text, marked) = cut(&line, 1000..1004);
        assert_eq!(&text[marked], "here");
        assert_eq!(text.chars().count(), MAX_LINE + 2);
        assert!(text.starts_with('…') && text.ends_with('…'));
        let (text, marked) = cut(&line, 0..line.len());
        assert_eq!((marked.start, text.chars().count()), (0, MAX_LINE + 1));
        assert_eq!(cut("short", 1..2), ("short".to_owned(), 1..2));
    }
}
