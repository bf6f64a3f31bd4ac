//! Problems in the form that compilers made familiar: what, where, the line with a caret, what to do.

use annotate_snippets::renderer::DEFAULT_TERM_WIDTH;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use baton_agents::{Location, Problem, Severity};

use super::Report;

/// Colours are always written; the output stream drops them where they are not wanted.
pub fn render(report: &Report) -> String {
    let renderer = Renderer::styled().term_width(DEFAULT_TERM_WIDTH);
    let mut out = String::new();
    for problem in &report.problems {
        out += &renderer.render(&groups(problem));
        out += "\n\n";
    }
    out + &summary(report) + "\n"
}

fn groups(problem: &Problem) -> Vec<Group<'_>> {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(&problem.message).id(problem.rule.word());
    let help = Level::HELP.message(&problem.help);
    let main = match excerpt(&problem.location) {
        Some(snippet) => title.element(snippet).element(help),
        None => title.element(Origin::path(problem.location.path().to_string_lossy())).element(help),
    };
    let related = problem.related.iter().filter_map(|related| {
        let snippet = excerpt(&related.location)?;
        Some(Level::NOTE.secondary_title(&related.message).element(snippet))
    });
    std::iter::once(main).chain(related).collect()
}

/// The line on which the problem starts, with the place underlined as far as it stands on that line.
fn excerpt(location: &Location) -> Option<Snippet<'_, annotate_snippets::Annotation<'_>>> {
    let text = location.source.text.as_str();
    if text.is_empty() {
        return None;
    }
    let line = location.start().line;
    let line_start = location.source.line_start(line);
    let rest = &text[line_start..];
    let line_text = rest.lines().next().unwrap_or_default();
    let start = (location.span.start - line_start).min(line_text.len());
    let end = (location.span.end - line_start).clamp(start, line_text.len());
    let annotation = AnnotationKind::Primary.span(start..end);
    let path = location.path().to_string_lossy();
    Some(Snippet::source(line_text).line_start(line).path(path).annotation(annotation))
}

fn summary(report: &Report) -> String {
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
