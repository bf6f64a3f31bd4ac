//! The body: a template, and possibly a line that names collaborators.

use std::collections::HashSet;

use baton_core::agent::{AgentKind, Collaboration};

use super::template::{self, NameRole, Output, TEMPLATES, TemplateMention, is_filter, is_global, is_test};
use super::{AgentDecoder, is_local};
use crate::format::FileFormat;
use crate::graph::EdgeKind;
use crate::names::shortened;
use crate::problem::{Diagnostic, Rule, Severity};
use crate::source::Span;

/// What a template can see.
pub const VARIABLES: &[&str] = &["agent", "agents", "now", "tenant", "thread_id", "user", "workflow"];
/// Those of them that are texts and have no attributes.
const TEXTS: &[&str] = &["now", "tenant", "thread_id", "user"];
/// Tags that read other templates, of which there are none.
const OTHER_TEMPLATES: &[&str] = &["extends", "from", "import", "include"];
/// A template with more unknown names than this has one mistake, not many.
const MAX_REPORTED: usize = 20;

/// A body as the engine uses it.
pub(super) struct Prompt {
    pub(super) text: String,
    /// Not a template.
    pub(super) is_literal: bool,
}

impl AgentDecoder<'_> {
    pub(super) fn prompt(&mut self, kind: &AgentKind) -> Prompt {
        let body = self.document.body();
        let literal = || Prompt { text: body.to_owned(), is_literal: true };
        if !is_local(kind) {
            return literal();
        }
        if body.is_empty() {
            self.problems.push(Diagnostic::new(
                Rule::MissingKey,
                self.document.top(),
                "the agent has no prompt",
                "write below the frontmatter what the agent should do",
            ));
        }
        if self.format == FileFormat::Foreign {
            return literal();
        }
        match self.template(body) {
            Some(text) => Prompt { text, is_literal: false },
            None => {
                self.literal_body();
                literal()
            }
        }
    }

    /// The template with every `{{ … }}` escaped that uses no variable of Baton. `None` if the body is no template at all.
    fn template(&mut self, body: &str) -> Option<String> {
        // Without a key of Baton and without its variables, braces are what the prompt is about.
        let may_be_literal = self.format == FileFormat::Common && !uses_variables(body);
        let outputs = template::outputs(body);
        let is_ours = |output: &Output<'_>| self.format == FileFormat::Baton && names_variable(output.source);
        let no_expression = |output: &&Output<'_>| !output.is_expression && !is_ours(output);
        let mut literal: Vec<&Output<'_>> = outputs.iter().filter(no_expression).collect();
        let escaped = Escaped::new(body, &literal);
        let undeclared = match TEMPLATES.template_from_str(&escaped.text) {
            Ok(template) => unknown_variables(&template),
            Err(_) if may_be_literal => return None,
            Err(error) => {
                self.invalid_template(&escaped, &error);
                return Some(body.to_owned());
            }
        };
        let strange = outputs.iter().filter(|output| output.is_expression && is_strange(output, &undeclared));
        literal.extend(strange);
        literal.sort_unstable_by_key(|output| output.at);
        let escaped = Escaped::new(body, &literal);
        let wrong = wrong_names(&escaped.text, &undeclared);
        if may_be_literal && wrong.iter().any(|mention| mention.role != NameRole::Variable) {
            return None;
        }
        self.report_literal(&literal, &undeclared);
        self.unknown_names(&escaped, &wrong);
        Some(escaped.text)
    }

    fn literal_body(&mut self) {
        let span = self.document.top().span;
        let message = "the body is no template of Baton and is used as it is";
        let help = "nothing to do; to write a template, use one of Baton's variables or keys";
        self.report(Rule::LiteralBody, span, message, help);
    }

    /// Tags that stay as they are. One that looks like a misspelt variable is a warning.
    fn report_literal(&mut self, literal: &[&Output<'_>], undeclared: &HashSet<String>) {
        for output in literal.iter().take(MAX_REPORTED) {
            let start = self.document.body.start + output.at;
            let names = template::mentions_in_expression(output.source).into_iter();
            let unknown =
                names.clone().find(|name| undeclared.contains(name.name)).filter(|_| output.is_expression);
            let (span, what) = match unknown {
                Some(name) => {
                    (Span::new(start + 2 + name.at, start + 2 + name.at + name.name.len()), name.name)
                }
                None => (Span::new(start, start + 2 + output.source.len()), ""),
            };
            let near = crate::names::nearest(
                what,
                VARIABLES.iter().copied(),
                |length| if length < 5 { 1 } else { 2 },
            );
            let message = match what {
                "" => "this `{{` opens no expression with a variable of Baton: the text stays as it is"
                    .to_owned(),
                what => format!("`{}` is not a variable of Baton: the text stays as it is", shortened(what)),
            };
            let help = near.first().map_or_else(
                || format!("templates see `{}`", VARIABLES.join("`, `")),
                |near| format!("did you mean `{near}`?"),
            );
            let problem = Diagnostic::new(Rule::UnknownVariable, self.document.locate(span), message, help);
            let severity = if near.is_empty() { Severity::Note } else { Severity::Warning };
            self.problems.push(problem.with_severity(severity));
        }
        if let Some(next) = literal.get(MAX_REPORTED) {
            let start = self.document.body.start + next.at;
            let more = literal.len() - MAX_REPORTED;
            let message = format!("{more} more names are not variables of Baton: the text stays as it is");
            let location = self.document.locate(Span::new(start, start + 2));
            let problem = Diagnostic::new(Rule::UnknownVariable, location, message, "see the ones above");
            self.problems.push(problem.with_severity(Severity::Note));
        }
    }

    /// What a template that compiles would stumble over when it runs, each name once.
    fn unknown_names(&mut self, escaped: &Escaped, wrong: &[TemplateMention<'_>]) {
        for mention in wrong.iter().take(MAX_REPORTED) {
            let mention = TemplateMention { at: escaped.original(mention.at), ..*mention };
            self.unknown_name(&mention);
        }
        if let Some(next) = wrong.get(MAX_REPORTED) {
            let message =
                format!("the template uses {} more names that do not exist", wrong.len() - MAX_REPORTED);
            let next = TemplateMention { at: escaped.original(next.at), ..*next };
            let span = self.in_body(&next);
            self.report(Rule::UnknownVariable, span, message, "correct the ones above first");
        }
    }

    fn unknown_name(&mut self, mention: &TemplateMention<'_>) {
        let name = shortened(mention.name);
        let span = self.in_body(mention);
        let (message, help) = match mention.role {
            NameRole::Variable => return self.unknown_variable(mention.name, span),
            NameRole::Tag => (
                format!("a prompt cannot use `{name}`: there are no other templates"),
                "write the text here, or let the agent read it with a tool",
            ),
            NameRole::Filter => (
                format!("no filter is called `{name}`"),
                "use one of minijinja's filters, such as `upper`, `join` or `default`",
            ),
            NameRole::Test => (
                format!("no test is called `{name}`"),
                "use one of minijinja's tests, such as `defined` or `string`",
            ),
            NameRole::Call | NameRole::Other => (
                format!("no function is called `{name}`"),
                "functions are `range`, `dict`, `namespace`, `debug` and the macros of this prompt",
            ),
        };
        self.report(Rule::InvalidTemplate, span, message, help);
    }

    fn in_body(&self, mention: &TemplateMention<'_>) -> Span {
        let start = self.document.body.start + mention.at;
        Span::new(start, start + mention.name.len())
    }

    fn invalid_template(&mut self, escaped: &Escaped, error: &minijinja::Error) {
        let start = self.document.body.start;
        let span = match (error.range(), error.line()) {
            (Some(range), _) => {
                Span::new(start + escaped.original(range.start), start + escaped.original(range.end))
            }
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

    fn unknown_variable(&mut self, name: &str, span: Span) {
        let known = VARIABLES.join("`, `");
        let near = crate::names::nearest(name, VARIABLES.iter().copied(), |_| 2);
        let help = near
            .first()
            .map_or_else(|| format!("templates see `{known}`"), |near| format!("did you mean `{near}`?"));
        let message =
            format!("the template uses `{}`, which does not exist and prints nothing", shortened(name));
        self.report(Rule::UnknownVariable, span, message, help);
    }

    /// Reads lines like `**Collaborations**: SRE Principal (reliability), Security (review)`, outside of code.
    pub(super) fn collaborations_in_body(&mut self) -> Vec<(Collaboration, Span)> {
        let mut found = Vec::new();
        let mut offset = self.document.body.start;
        let mut fence = None;
        let text = self.document.source.text.as_str();
        for line in text[self.document.body.range()].split_inclusive('\n') {
            fence = fence_after(fence, line);
            if let Some(list) = collaborations_line(line).filter(|_| fence.is_none()) {
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
            // Markup around a name is not part of it.
            let is_around = |c: char| c.is_whitespace() || c == '*' || c == '`';
            let leading = name.len() - name.trim_start_matches(is_around).len();
            let name = name.trim_matches(is_around);
            if name.is_empty() {
                continue;
            }
            let from = start + at + leading;
            let span = Span::new(from, from + name.len());
            if let Some(agent) = self.refer(name, span, EdgeKind::Transfer, specialty) {
                found.push((
                    Collaboration { agent, when: specialty.map(str::to_owned), allow_revisit: 0 },
                    span,
                ));
            }
        }
        found
    }
}

/// Whether a text mentions a variable of Baton where a template would.
fn uses_variables(body: &str) -> bool {
    let is_ours = |mention: &TemplateMention<'_>| {
        mention.role == NameRole::Variable && VARIABLES.contains(&mention.name)
    };
    template::mentions(body).iter().any(is_ours)
}

/// Whether the tag that begins with this text names a variable of Baton.
fn names_variable(source: &str) -> bool {
    let tag = source.split("}}").next().unwrap_or(source);
    let mut names = template::mentions_in_expression(tag).into_iter();
    names.any(|mention| mention.role == NameRole::Variable && VARIABLES.contains(&mention.name))
}

fn unknown_variables(template: &minijinja::Template<'_, '_>) -> HashSet<String> {
    let mut undeclared = template.undeclared_variables(false);
    undeclared.retain(|name| !VARIABLES.contains(&name.as_str()) && !is_global(name));
    undeclared
}

/// Whether an expression uses what Baton does not have: another variable or function, or an attribute of a text.
fn is_strange(output: &Output<'_>, undeclared: &HashSet<String>) -> bool {
    template::mentions_in_expression(output.source).iter().any(|mention| match mention.role {
        NameRole::Variable if TEXTS.contains(&mention.name) => {
            output.source[mention.at + mention.name.len()..].trim_start().starts_with('.')
        }
        NameRole::Variable | NameRole::Call => undeclared.contains(mention.name),
        _ => false,
    })
}

/// Names that do not exist, each once. Errors come first, so that none of them is among those left out.
fn wrong_names<'t>(text: &'t str, undeclared: &HashSet<String>) -> Vec<TemplateMention<'t>> {
    let mut seen = HashSet::new();
    let wrong = template::mentions(text).into_iter().filter(|TemplateMention { name, role, .. }| {
        seen.insert((*role, *name))
            && match role {
                NameRole::Tag => OTHER_TEMPLATES.contains(name),
                NameRole::Filter => !is_filter(name),
                NameRole::Test => !is_test(name),
                NameRole::Call | NameRole::Variable => undeclared.contains(*name),
                NameRole::Other => false,
            }
    });
    let mut wrong: Vec<TemplateMention<'_>> = wrong.collect();
    wrong.sort_by_key(|mention| mention.role == NameRole::Variable);
    wrong
}

/// A template in which some `{{` are printed as they are.
struct Escaped {
    text: String,
    /// Where they stand in the body, in order.
    at: Vec<usize>,
}

const ESCAPED: &str = "{{ \"{{\" }}";

impl Escaped {
    fn new(body: &str, literal: &[&Output<'_>]) -> Self {
        let mut text = String::with_capacity(body.len() + literal.len() * ESCAPED.len());
        let mut done = 0;
        for output in literal {
            text += &body[done..output.at];
            text += ESCAPED;
            done = output.at + 2;
        }
        text += &body[done..];
        Self { text, at: literal.iter().map(|output| output.at).collect() }
    }

    /// Where a place of the text stands in the body.
    fn original(&self, at: usize) -> usize {
        let grown = ESCAPED.len() - 2;
        let before =
            self.at.iter().enumerate().filter(|(nth, start)| **start + nth * grown + ESCAPED.len() <= at);
        at.saturating_sub(before.count() * grown)
    }
}

/// The fence of the code block that is open after this line: its sign and how often it stands there. A block ends with
/// the same sign, at least as often, and nothing else on the line.
fn fence_after(open: Option<(char, usize)>, line: &str) -> Option<(char, usize)> {
    let line = line.trim();
    let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'));
    let length = sign.map_or(0, |sign| line.len() - line.trim_start_matches(sign).len());
    match (open, sign) {
        (None, Some(sign)) if length >= 3 => Some((sign, length)),
        (Some((opened, least)), Some(sign)) if sign == opened && length >= least && length == line.len() => {
            None
        }
        _ => open,
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
    fn code_ends_with_the_fence_it_began_with() {
        let open_after = |lines: &str| lines.lines().fold(None, fence_after).is_some();
        for lines in ["```\nx", "~~~\nx", "````\n```", "~~~\n```", "```\n``` js", "```md"] {
            assert!(open_after(lines), "{lines:?}");
        }
        for lines in ["```\nx\n```", "~~~ x\n~~~~", "``", "````\n```\n````", "x ```"] {
            assert!(!open_after(lines), "{lines:?}");
        }
    }

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
