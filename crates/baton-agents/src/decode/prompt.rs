//! The body: a template, and possibly a line that names collaborators.

use baton_core::agent::{Collaboration, Kind};

use super::values::TEMPLATES;
use super::{Decoder, is_local};
use crate::graph::EdgeKind;
use crate::problem::Rule;
use crate::source::Span;

/// What a template can see.
pub const VARIABLES: &[&str] = &["agent", "agents", "now", "tenant", "thread_id", "user", "workflow"];

impl Decoder<'_> {
    pub(super) fn prompt(&mut self, kind: &Kind) -> String {
        let body = self.document.body();
        if body.is_empty() && is_local(kind) {
            self.problems.push(crate::problem::Problem::new(
                Rule::MissingKey,
                self.document.top(),
                "the agent has no prompt",
                "write below the frontmatter what the agent should do",
            ));
        }
        match TEMPLATES.template_from_str(body) {
            Ok(template) => {
                let is_known = |name: &str| {
                    VARIABLES.contains(&name) || TEMPLATES.globals().any(|(global, _)| global == name)
                };
                let mut unknown: Vec<String> =
                    template.undeclared_variables(false).into_iter().filter(|name| !is_known(name)).collect();
                unknown.sort();
                for name in unknown {
                    self.unknown_variable(&name);
                }
            }
            Err(error) => self.invalid_template(&error),
        }
        body.to_owned()
    }

    fn invalid_template(&mut self, error: &minijinja::Error) {
        let start = self.document.body.start;
        let span = match (error.range(), error.line()) {
            (Some(range), _) => Span::new(start + range.start, start + range.end),
            (None, line) => {
                let first = self.document.source.position(start).line;
                let at = self.document.source.line_start(first + line.unwrap_or(1) - 1).max(start);
                Span::new(at, at)
            }
        };
        let detail = error.detail().unwrap_or("it cannot be read").to_owned();
        self.report(
            Rule::InvalidTemplate,
            span,
            format!("the body is not a valid template: {detail}"),
            "correct it, or put text that is no template between `{% raw %}` and `{% endraw %}`",
        );
    }

    fn unknown_variable(&mut self, name: &str) {
        let body = self.document.body();
        // The first place where it is used; the analysis knows only names.
        let at = body.match_indices(name).map(|(at, _)| at).find(|at| {
            let opened = body[..*at]
                .rfind(['{', '}'])
                .is_some_and(|brace| body[brace..].starts_with('{') || body[brace..].starts_with("{%"));
            let boundary = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
            opened
                && boundary(body[..*at].chars().next_back())
                && boundary(body[at + name.len()..].chars().next())
        });
        let at = self.document.body.start + at.unwrap_or(0);
        let known = VARIABLES.join("`, `");
        let near = crate::names::nearest(name, VARIABLES.iter().copied(), |_| 2);
        let help = near
            .first()
            .map_or_else(|| format!("templates see `{known}`"), |near| format!("did you mean `{near}`?"));
        self.report(
            Rule::UnknownVariable,
            Span::new(at, at + name.len()),
            format!("the template uses `{name}`, which does not exist and prints nothing"),
            help,
        );
    }

    /// Reads lines like `**Collaborations**: SRE Principal (reliability), Security (review)`, outside of code.
    pub(super) fn collaborations_in_body(&mut self) -> Vec<(Collaboration, Span)> {
        let mut found = Vec::new();
        let mut offset = self.document.body.start;
        let mut in_code = false;
        let text = self.document.source.text.as_str();
        for line in text[self.document.body.range()].split_inclusive('\n') {
            in_code ^= line.trim_start().starts_with("```");
            if let Some(list) = collaborations_line(line).filter(|_| !in_code) {
                let at = offset + line.trim_end_matches(['\n', '\r']).len() - list.len();
                found.extend(self.collaborators(list, at));
            }
            offset += line.len();
        }
        found
    }

    fn collaborators(&mut self, list: &str, start: usize) -> Vec<(Collaboration, Span)> {
        let mut found = Vec::new();
        for (at, entry) in split_outside_parentheses(list) {
            let (name, specialty) = match entry.split_once('(') {
                Some((name, rest)) => (name, Some(rest.trim_end().trim_end_matches(['.', ')']).trim())),
                None => (entry.trim_end().trim_end_matches('.'), None),
            };
            let leading = name.len() - name.trim_start().len();
            let name = name.trim().trim_matches(['*', '`']);
            if name.is_empty() {
                continue;
            }
            let from = start + at + leading;
            let span = Span::new(from, from + name.len());
            if let Some(agent) = self.refer(name, span, EdgeKind::Transfer, specialty) {
                found.push((Collaboration { agent, when: specialty.map(str::to_owned) }, span));
            }
        }
        found
    }
}

/// The list after `**Collaborations**:`, if the line is one.
fn collaborations_line(line: &str) -> Option<&str> {
    let rest = line.trim_start().trim_start_matches(['-', '*', ' ']);
    let lower = rest.get(.."collaborations".len())?;
    if !lower.eq_ignore_ascii_case("collaborations") || !line.contains("**") {
        return None;
    }
    let rest = rest["collaborations".len()..].trim_start();
    let rest = rest.strip_prefix("**:").or_else(|| rest.strip_prefix(":**"))?;
    Some(rest.trim_end_matches(['\n', '\r']))
}

/// The parts of a list, each with where it starts; commas in parentheses belong to a part.
pub(super) fn split_outside_parentheses(list: &str) -> Vec<(usize, &str)> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, c) in list.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push((from, &list[from..at]));
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push((from, &list[from..]));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collaborations_line() {
        for line in [
            "**Collaborations**: A (x), B",
            "- **Collaborations**: A (x), B\n",
            "**Collaborations:** A (x), B",
        ] {
            assert_eq!(collaborations_line(line).map(str::trim), Some("A (x), B"), "{line}");
        }
        for line in ["Collaborations: A", "**Collaboration**: A", "We love **collaborations**: yes", ""] {
            assert_eq!(collaborations_line(line), None, "{line}");
        }
        let parts: Vec<_> =
            split_outside_parentheses("A (x, y), B").into_iter().map(|(_, part)| part).collect();
        assert_eq!(parts, ["A (x, y)", " B"]);
    }
}
