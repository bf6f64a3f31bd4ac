//! A file's two halves: the YAML head between `---` lines, and the body, which is the prompt.

use std::sync::Arc;

use crate::problem::{Diagnostic, Rule, Severity};
use crate::repair;
use crate::secrets;
use crate::source::{Location, SourceFile, Span};
use crate::yaml::{FailureKind, MAX_DEPTH, MAX_NODES, MAX_TEXT_BYTES, YamlEntry, YamlNode, YamlValue};

pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// A file that could be split and read.
#[derive(Debug)]
pub struct AgentDocument {
    /// The file with secrets masked: values come from nodes, and everything else may be quoted.
    pub source: Arc<SourceFile>,
    pub head: Vec<YamlEntry>,
    /// The body without surrounding blank lines.
    pub body: Span,
}

impl AgentDocument {
    pub fn body(&self) -> &str {
        &self.source.text[self.body.range()]
    }

    /// The top-level entries. Settings may also stand under one key `baton:`, so that other tools can read the same
    /// file; those count as top-level.
    pub fn entries(&self) -> impl Iterator<Item = &YamlEntry> {
        self.head.iter().flat_map(|entry| match &entry.value.value {
            YamlValue::Map(inner) if entry.key == "baton" => inner.as_slice(),
            _ => std::slice::from_ref(entry),
        })
    }

    pub fn locate(&self, span: Span) -> Location {
        self.source.locate(span)
    }

    /// The top of the file, for what is missing and so stands nowhere.
    pub fn top(&self) -> Location {
        let first_line = self.source.text.lines().next().unwrap_or_default();
        self.locate(Span::new(0, first_line.len()))
    }
}

/// Splits and reads `source`. A repaired value is reported and does not prevent reading.
pub fn parse(source: &Arc<SourceFile>, problems: &mut Vec<Diagnostic>) -> Option<AgentDocument> {
    match read(source, problems) {
        Ok(document) => Some(document),
        Err(mut problem) => {
            // Without nodes nobody knows what is a secret; the line that is quoted may be one.
            problem.location.source = secrets::masked_lines(source);
            problems.push(*problem);
            None
        }
    }
}

fn read(source: &Arc<SourceFile>, problems: &mut Vec<Diagnostic>) -> Result<AgentDocument, Box<Diagnostic>> {
    let Split { head, body } = split(source)?;
    if head.end - head.start > MAX_HEAD_BYTES {
        return Err(Box::new(Diagnostic::new(
            Rule::TooLarge,
            source.locate(Span::new(head.start, head.start)),
            format!("the frontmatter is longer than {MAX_HEAD_BYTES} bytes"),
            "keep settings in the frontmatter and move text into the body",
        )));
    }
    let read = repair::parse(&source.text[head.range()], head.start)
        .map_err(|failure| Box::new(explain(&failure.kind, source.locate(failure.span))))?;
    let entries = entries(read.root, source)?;
    let document = AgentDocument { source: secrets::masked(source, head, &entries), head: entries, body };
    problems.extend(read.repaired.iter().map(|span| repaired(&document, source, *span)));
    Ok(document)
}

fn entries(root: Option<YamlNode>, source: &Arc<SourceFile>) -> Result<Vec<YamlEntry>, Box<Diagnostic>> {
    match root {
        None => Ok(Vec::new()),
        Some(YamlNode { value: YamlValue::Map(entries), .. }) => Ok(entries),
        Some(node) if node.is_null() => Ok(Vec::new()),
        Some(node) => Err(Box::new(Diagnostic::new(
            Rule::WrongType,
            source.locate(node.span),
            format!("the frontmatter is {}, and has to be a map", node.describe()),
            "write `key: value` lines, such as `description: Answers questions.`",
        ))),
    }
}

fn repaired(document: &AgentDocument, source: &SourceFile, span: Span) -> Diagnostic {
    let (shown, written) = (&document.source.text[span.range()], &source.text[span.range()]);
    // A masked value is no advice.
    let help = if shown == written {
        format!("write '{}'", written.replace('\'', "''"))
    } else {
        "put the value in quotes".to_owned()
    };
    let message = "a value with a colon has to be quoted; it was read as one text";
    Diagnostic::new(Rule::YamlRepaired, document.locate(span), message, help)
}

struct Split {
    head: Span,
    body: Span,
}

fn split(source: &Arc<SourceFile>) -> Result<Split, Box<Diagnostic>> {
    let problem = |at: usize, message: &str, help: &str| {
        Box::new(Diagnostic::new(Rule::NoFrontmatter, source.locate(Span::new(at, at)), message, help))
    };
    let text = source.text.as_str();
    let bom = text.len() - text.trim_start_matches('\u{feff}').len();
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut offset = bom;
    let mut head_start = None;
    for line in text[bom..].split_inclusive('\n') {
        let (start, end) = (offset, offset + line.len());
        offset = end;
        match head_start {
            None if is_fence(line) => head_start = Some(end),
            None => {
                return Err(problem(
                    start,
                    "the file has no frontmatter",
                    "start the file with a line `---`, the keys (at least `description:`), and another `---`",
                ));
            }
            Some(head) if is_fence(line) => {
                return Ok(Split { head: Span::new(head, start), body: trimmed(text, end) });
            }
            Some(_) => {}
        }
    }
    match head_start {
        Some(_) => Err(problem(bom, "the frontmatter is not closed", "end it with a line `---`")),
        None => Err(problem(0, "the file is empty", "start with a line `---`, the keys, and another `---`")),
    }
}

fn trimmed(text: &str, from: usize) -> Span {
    let body = &text[from..];
    let start = from + body.len() - body.trim_start().len();
    Span::new(start, from + body.trim_end().len())
}

fn explain(kind: &FailureKind, location: Location) -> Diagnostic {
    let (rule, message, help) = match kind {
        FailureKind::Syntax(text) => (
            Rule::YamlSyntax,
            format!("the YAML cannot be read: {text}"),
            "check indentation, brackets and quotes around here; quote values that hold `: ` or start with a special character",
        ),
        FailureKind::TooDeep => (
            Rule::YamlTooComplex,
            format!("the YAML is nested more than {MAX_DEPTH} levels deep"),
            "flatten it; no key of an agent file needs such depth",
        ),
        FailureKind::TooManyNodes => (
            Rule::YamlTooComplex,
            format!("the YAML has more than {MAX_NODES} values, counting what aliases repeat"),
            "write fewer values and no aliases of aliases",
        ),
        FailureKind::TooMuchText => (
            Rule::YamlTooComplex,
            format!("the YAML has more than {MAX_TEXT_BYTES} bytes of text, counting what aliases repeat"),
            "use fewer aliases of long texts",
        ),
        FailureKind::KeyIsNotText => {
            (Rule::YamlSyntax, "a key is not text".to_owned(), "use a plain word as the key")
        }
        FailureKind::SeveralDocuments => (
            Rule::YamlSyntax,
            "the frontmatter holds more than one YAML document".to_owned(),
            "keep one block of keys between the two `---` lines",
        ),
    };
    Diagnostic::new(rule, location, message, help).with_severity(Severity::Error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<AgentDocument>, Vec<Rule>) {
        let mut problems = Vec::new();
        let document = parse(&SourceFile::new("x.md", text), &mut problems);
        (document, problems.into_iter().map(|problem| problem.rule).collect())
    }

    #[test]
    fn head_and_body() {
        for text in [
            "---\na: 1\n---\n\nHello.\n\n",
            "\u{feff}---\r\na: 1\r\n---\r\nHello.\r\n",
            "--- \na: 1\n---\nHello.",
        ] {
            let (document, problems) = read(text);
            let document = document.unwrap();
            assert_eq!((document.body(), document.head.len(), problems.len()), ("Hello.", 1, 0), "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_split() {
        for text in ["", "hello", "---\na: 1\n", " ---\na: 1\n---\n", "---"] {
            assert_eq!(read(text).1, [Rule::NoFrontmatter], "{text:?}");
        }
        assert_eq!(read("---\n- a\n---\n").1, [Rule::WrongType]);
        assert_eq!(read("---\n---\n").1, []);
    }
}
