//! What a template mentions, and where. minijinja's own analysis knows which variables are undeclared but no places,
//! and finds an unknown filter only when it runs; so the tags of a template that compiles are read once more.

use std::sync::LazyLock;

use minijinja::{Environment, Expression, context};

/// Only used to check: the engine renders with the same built-in filters, tests and functions.
pub(super) static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(Environment::new);

/// A name inside a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TemplateMention<'a> {
    pub(super) name: &'a str,
    pub(super) at: usize,
    pub(super) role: NameRole,
}

/// As what a name is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NameRole {
    /// The first word of `{% … %}`.
    Tag,
    Filter,
    Test,
    Call,
    Variable,
    /// An attribute, an argument's name, an assignment's target or a word of the language.
    Other,
}

/// All names in the tags of a template, in one pass.
pub(super) fn mentions(template: &str) -> Vec<TemplateMention<'_>> {
    let mut reader = Reader { text: template, at: 0, found: Vec::new() };
    while let Some(open) = reader.rest().find('{') {
        reader.at += open + 1;
        match reader.rest().bytes().next() {
            Some(b'#') => reader.skip_past("#}"),
            Some(b'{') => reader.tag("}}"),
            Some(b'%') if reader.opens("raw") => reader.skip_raw(),
            Some(b'%') => reader.tag("%}"),
            _ => {}
        }
    }
    reader.found
}

/// A tag that prints something: `{{ … }}`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output<'a> {
    /// Where its `{{` stands.
    pub(super) at: usize,
    /// What stands between the braces; the rest of the line if nothing closes them.
    pub(super) source: &'a str,
    /// Whether the template language understands it.
    pub(super) is_expression: bool,
}

/// More tags than this, or longer ones, are left to the template language.
const MAX_OUTPUTS: usize = 2_000;
const MAX_OUTPUT_BYTES: usize = 4 * 1024;

/// All tags that print, also those that are no expressions. Behind one of these, reading goes on after its `{{`.
pub(super) fn outputs(template: &str) -> Vec<Output<'_>> {
    let mut reader = Reader { text: template, at: 0, found: Vec::new() };
    let mut outputs = Vec::new();
    while outputs.len() < MAX_OUTPUTS {
        let Some(open) = reader.rest().find('{') else { break };
        let at = reader.at + open;
        reader.at = at + 1;
        match reader.rest().bytes().next() {
            Some(b'#') => reader.skip_past("#}"),
            Some(b'{') => {
                let output = output(template, at);
                reader.at = at + 2 + if output.is_expression { output.source.len() + 2 } else { 0 };
                outputs.push(output);
            }
            Some(b'%') if reader.opens("raw") => reader.skip_raw(),
            Some(b'%') => reader.tag("%}"),
            _ => {}
        }
    }
    outputs
}

fn output(template: &str, at: usize) -> Output<'_> {
    let rest = &template[at + 2..];
    let window = &rest[..rest.floor_char_boundary(MAX_OUTPUT_BYTES)];
    let mut reader = Reader { text: window, at: 0, found: Vec::new() };
    reader.names("}}", Previous::Start);
    let closed = window[..reader.at].strip_suffix("}}");
    let source = closed.unwrap_or_else(|| window.lines().next().unwrap_or_default());
    let inner = source.strip_prefix(['-', '+']).unwrap_or(source);
    let inner = inner.strip_suffix(['-', '+']).unwrap_or(inner);
    let is_expression = closed.is_some() && TEMPLATES.compile_expression(inner).is_ok();
    Output { at, source, is_expression }
}

/// The same as [`mentions`] for an expression, which is the inside of a tag.
pub(super) fn mentions_in_expression(expression: &str) -> Vec<TemplateMention<'_>> {
    let mut reader = Reader { text: expression, at: 0, found: Vec::new() };
    reader.names("", Previous::Start);
    reader.found
}

pub(super) fn is_global(name: &str) -> bool {
    TEMPLATES.globals().any(|(global, _)| global == name)
}

/// minijinja tells through tests of its own what exists.
type ExistenceTest = LazyLock<Expression<'static, 'static>>;

pub(super) fn is_filter(name: &str) -> bool {
    static QUESTION: ExistenceTest = LazyLock::new(|| question("name is filter"));
    is_true(&QUESTION, name)
}

pub(super) fn is_test(name: &str) -> bool {
    static QUESTION: ExistenceTest = LazyLock::new(|| question("name is test"));
    is_true(&QUESTION, name)
}

fn question(text: &'static str) -> Expression<'static, 'static> {
    TEMPLATES.compile_expression(text).expect("a valid expression")
}

fn is_true(question: &Expression<'_, '_>, name: &str) -> bool {
    question.eval(context!(name)).is_ok_and(|answer| answer.is_true())
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    found: Vec<TemplateMention<'a>>,
}

/// What stands before a name decides what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Previous {
    /// The start of `{{`.
    Start,
    /// The start of `{%`.
    Tag,
    Dot,
    /// `|`, or the word `filter` of `{% filter %}`.
    Pipe,
    Is,
    Else,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_past(&mut self, end: &str) {
        self.at += self.rest().find(end).map_or(self.rest().len(), |at| at + end.len());
    }

    /// Whether the `%` here opens a tag of this one word.
    fn opens(&self, word: &str) -> bool {
        let inside = self.rest()[1..].trim_start_matches(['-', '+']).trim_start();
        inside
            .strip_prefix(word)
            .is_some_and(|rest| rest.trim_start().trim_start_matches(['-', '+']).starts_with("%}"))
    }

    fn skip_raw(&mut self) {
        loop {
            self.skip_past("{");
            match self.rest().bytes().next() {
                None => return,
                Some(b'%') if self.opens("endraw") => return self.skip_past("%}"),
                Some(_) => {}
            }
        }
    }

    fn tag(&mut self, end: &str) {
        self.at += 1;
        self.names(end, if end == "%}" { Previous::Tag } else { Previous::Start });
    }

    /// Names up to `end` outside of brackets and texts.
    fn names(&mut self, end: &str, mut previous: Previous) {
        let mut depth = 0_usize;
        while let Some(c) = self.rest().chars().next() {
            if depth == 0 && !end.is_empty() && self.rest().starts_with(end) {
                self.at += end.len();
                return;
            }
            if c.is_alphabetic() || c == '_' {
                previous = self.name(previous);
                continue;
            }
            let skipped = match c {
                '"' | '\'' => text_length(self.rest(), c),
                '0'..='9' => number_length(self.rest()),
                _ => c.len_utf8(),
            };
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            previous = match c {
                '.' => Previous::Dot,
                '|' => Previous::Pipe,
                // `{%-` is the start of a tag as well.
                '-' | '+' if previous == Previous::Tag => previous,
                c if c.is_whitespace() => previous,
                _ => Previous::Else,
            };
            self.at += skipped;
        }
    }

    /// Records the name that starts here, and tells what it is for the next one.
    fn name(&mut self, previous: Previous) -> Previous {
        let at = self.at;
        let length = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        self.at += length(self.rest());
        let word = &self.text[at..self.at];
        // A filter or test may have dots in its name.
        while matches!(previous, Previous::Pipe | Previous::Is) && self.rest().starts_with('.') {
            self.at += 1 + length(&self.rest()[1..]);
        }
        let name = &self.text[at..self.at];
        let next = self.rest().trim_start();
        let role = match previous {
            Previous::Is if word == "not" => return Previous::Is,
            Previous::Tag => NameRole::Tag,
            Previous::Pipe => NameRole::Filter,
            Previous::Is if !is_operator(word) => NameRole::Test,
            Previous::Dot => NameRole::Other,
            _ if is_word(word) => NameRole::Other,
            _ if next.starts_with('(') => NameRole::Call,
            _ if next.starts_with('=') && !next.starts_with("==") => NameRole::Other,
            _ => NameRole::Variable,
        };
        self.found.push(TemplateMention { name, at, role });
        match (previous, word) {
            (Previous::Tag, "filter") => Previous::Pipe,
            (Previous::Start | Previous::Tag | Previous::Dot | Previous::Pipe, _) => Previous::Else,
            (_, "is") => Previous::Is,
            _ => Previous::Else,
        }
    }
}

fn text_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `1e5` and `0xff` hold letters that are no names.
fn number_length(rest: &str) -> usize {
    rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
}

fn is_operator(word: &str) -> bool {
    matches!(word, "and" | "or" | "if" | "else")
}

fn is_word(word: &str) -> bool {
    is_operator(word)
        || matches!(word, "not" | "in" | "is" | "true" | "false" | "none" | "True" | "False" | "None")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_role(template: &str, role: NameRole) -> Vec<&str> {
        mentions(template)
            .into_iter()
            .filter(|mention| mention.role == role)
            .map(|mention| mention.name)
            .collect()
    }

    #[test]
    fn names_by_what_they_are_used_as() {
        let template = "a {{ b }} {# {{ c }} #} {% raw %}{{ d }}{% endraw %} {%- if e.f is not g(h) and i | j(k=l) -%} \
             {{ {'m': n}['o'] ~ \"}} {{ p\" }} { q } {% filter r | s %}{% endfilter %} {{ t(1e5, u is v.w) }} \
             {% set x = y %}{{ a == b }}";
        assert_eq!(of_role(template, NameRole::Tag), ["if", "filter", "endfilter", "set"]);
        assert_eq!(of_role(template, NameRole::Filter), ["j", "r", "s"]);
        assert_eq!(of_role(template, NameRole::Test), ["g", "v.w"]);
        assert_eq!(of_role(template, NameRole::Call), ["t"]);
        assert_eq!(of_role(template, NameRole::Variable), ["b", "e", "h", "i", "l", "n", "u", "y", "a", "b"]);
        let at = mentions(template)[0].at;
        assert_eq!(&template[at..=at], "b");
    }

    #[test]
    fn tags_that_do_not_end() {
        for template in
            ["{{", "{%", "{#", "{% raw %}{%", "{{ 'x", "{{ x", "{", "{{ x |", "{% raw", "{{ x.", "{{ é"]
        {
            let _ = mentions(template);
            let _ = mentions_in_expression(template);
        }
    }

    #[test]
    fn the_environment_knows_its_filters_and_tests() {
        assert!(is_filter("upper") && is_filter("tojson") && !is_filter("uper") && !is_filter("defined"));
        assert!(is_test("defined") && is_test("in") && !is_test("upper_case"));
        assert!(is_global("range") && !is_global("include"));
    }
}
