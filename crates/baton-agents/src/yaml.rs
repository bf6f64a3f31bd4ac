//! YAML as a tree of nodes that know where they stand.
//!
//! The event parser is used directly instead of through serde: a typed reader stops at the first mistake and
//! forgets positions, and both are what authors need. Limits are checked while events arrive, so a hostile
//! file costs no more than the limit.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use crate::source::Span;

pub const MAX_NODES: usize = 10_000;
pub const MAX_DEPTH: usize = 48;
/// All text together, counting what aliases repeat: far above any head, whose own text is shorter.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub struct YamlNode {
    pub span: Span,
    pub value: YamlValue,
}

#[derive(Debug, Clone, PartialEq)]
pub enum YamlValue {
    Scalar(Scalar),
    List(Vec<YamlNode>),
    Map(Vec<YamlEntry>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    pub text: String,
    /// Written without quotes, so that `true`, `3` and `null` mean what they look like.
    pub plain: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct YamlEntry {
    pub key: String,
    pub key_span: Span,
    pub value: YamlNode,
}

/// Why a text could not be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlFailure {
    pub kind: FailureKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureKind {
    Syntax(String),
    TooDeep,
    TooManyNodes,
    TooMuchText,
    KeyIsNotText,
    SeveralDocuments,
}

impl YamlNode {
    pub fn scalar(&self) -> Option<&Scalar> {
        match &self.value {
            YamlValue::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        self.scalar()
            .is_some_and(|s| s.plain && matches!(s.text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// What the value is, in a word for error messages.
    pub fn describe(&self) -> &'static str {
        match &self.value {
            YamlValue::List(_) => "a list",
            YamlValue::Map(_) => "a map",
            YamlValue::Scalar(_) if self.is_null() => "empty",
            YamlValue::Scalar(scalar) if scalar.as_bool().is_some() => "true or false",
            YamlValue::Scalar(scalar) if scalar.as_number().is_some() => "a number",
            YamlValue::Scalar(_) => "text",
        }
    }

    /// The same value as JSON; numbers and booleans follow the YAML core schema.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            YamlValue::List(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            YamlValue::Map(entries) => {
                Json::Object(entries.iter().map(|e| (e.key.clone(), e.value.to_json())).collect())
            }
            YamlValue::Scalar(_) if self.is_null() => Json::Null,
            YamlValue::Scalar(scalar) => match (scalar.as_bool(), scalar.as_number()) {
                (Some(flag), _) => Json::Bool(flag),
                (None, Some(number)) => Json::Number(number),
                (None, None) => Json::String(scalar.text.clone()),
            },
        }
    }

    /// The node that a JSON pointer leads to, or the last one on the way that exists.
    pub fn at_pointer(&self, pointer: &str) -> &Self {
        let mut node = self;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let next = match &node.value {
                YamlValue::Map(entries) => entries.iter().find(|e| e.key == token).map(|e| &e.value),
                YamlValue::List(items) => token.parse::<usize>().ok().and_then(|index| items.get(index)),
                YamlValue::Scalar(_) => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }
}

impl Scalar {
    pub fn as_bool(&self) -> Option<bool> {
        match self.text.as_str() {
            "true" | "True" | "TRUE" if self.plain => Some(true),
            "false" | "False" | "FALSE" if self.plain => Some(false),
            _ => None,
        }
    }

    /// A number of the YAML core schema. Infinity and not-a-number are none: nothing here can mean them.
    pub fn as_number(&self) -> Option<serde_json::Number> {
        if !self.plain {
            return None;
        }
        let text = self.text.as_str();
        if let Some(hex) = text.strip_prefix("0x") {
            return whole(hex, 16);
        }
        if let Some(octal) = text.strip_prefix("0o") {
            return whole(octal, 8);
        }
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let digits = unsigned.strip_prefix('.').unwrap_or(unsigned);
        let looks_numeric = digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'-' | b'+'));
        if !looks_numeric {
            return None;
        }
        if unsigned.bytes().all(|b| b.is_ascii_digit()) {
            let integer = text.strip_prefix('+').unwrap_or(text);
            let read =
                integer.parse::<u64>().map(Into::into).or_else(|_| integer.parse::<i64>().map(Into::into));
            if let Ok(number) = read {
                return Some(number);
            }
        }
        text.parse().ok().and_then(serde_json::Number::from_f64)
    }
}

fn whole(digits: &str, radix: u32) -> Option<serde_json::Number> {
    // A sign is fine for the parser and not in YAML.
    let all_digits = digits.chars().all(|c| c.is_digit(radix));
    u64::from_str_radix(digits, radix).ok().filter(|_| all_digits).map(Into::into)
}

/// Reads one document. Spans are byte offsets into `text`, plus `offset`.
pub fn parse(text: &str, offset: usize) -> Result<Option<YamlNode>, YamlFailure> {
    let mut builder = Builder { bytes: ByteOffsets::of(text, offset), ..Builder::default() };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| builder.syntax(&error))?;
        let span = builder.bytes.span(span.start.index(), span.end.index());
        if matches!(event, Event::StreamEnd) {
            break;
        }
        builder.take(event, span)?;
    }
    Ok(builder.root)
}

/// Collections that are not closed yet, innermost last.
#[derive(Default)]
struct Builder {
    bytes: ByteOffsets,
    open: Vec<OpenNode>,
    anchors: HashMap<usize, (YamlNode, Size)>,
    total: Size,
    root: Option<YamlNode>,
}

/// What a node costs to keep or to copy.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
}

impl Size {
    fn of(node: &YamlNode) -> Self {
        match &node.value {
            YamlValue::Scalar(scalar) => Self::of_text(&scalar.text),
            YamlValue::List(items) => items.iter().map(Self::of).fold(Self::of_text(""), Self::plus),
            YamlValue::Map(entries) => {
                let entries = entries.iter().map(|e| Self::of_text(&e.key).plus(Self::of(&e.value)));
                entries.fold(Self::of_text(""), Self::plus)
            }
        }
    }

    fn of_text(text: &str) -> Self {
        Self { nodes: 1, bytes: text.len() }
    }

    fn plus(self, other: Self) -> Self {
        Self { nodes: self.nodes + other.nodes, bytes: self.bytes + other.bytes }
    }
}

struct OpenNode {
    node: YamlNode,
    anchor: usize,
    /// In a map: the key whose value comes next.
    key: Option<(String, Span)>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlFailure> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let scalar = Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain };
                self.place(YamlNode { span, value: YamlValue::Scalar(scalar) }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.open(YamlValue::List(Vec::new()), span, anchor),
            Event::MappingStart(anchor, _) => self.open(YamlValue::Map(Vec::new()), span, anchor),
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Alias(anchor) => {
                // Only finished nodes are anchors, so an alias can never contain itself. A copy is counted before
                // it is made, which defuses bombs made of aliases.
                let Some((_, size)) = self.anchors.get(&anchor) else {
                    let text = "an alias refers to the node it stands in".to_owned();
                    return Err(YamlFailure { kind: FailureKind::Syntax(text), span });
                };
                self.count(*size, span)?;
                let value = self.anchors[&anchor].0.value.clone();
                self.insert(YamlNode { span, value })
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(YamlFailure { kind: FailureKind::SeveralDocuments, span })
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, value: YamlValue, span: Span, anchor: usize) -> Result<(), YamlFailure> {
        if self.open.len() == MAX_DEPTH {
            return Err(YamlFailure { kind: FailureKind::TooDeep, span });
        }
        self.open.push(OpenNode { node: YamlNode { span, value }, anchor, key: None });
        Ok(())
    }

    fn close(&mut self, span: Span) -> Result<(), YamlFailure> {
        let Some(OpenNode { mut node, anchor, .. }) = self.open.pop() else { return Ok(()) };
        // A block collection is closed by the line after it; its last child ends where it really ends.
        let last_child = match &node.value {
            YamlValue::List(items) => items.last().map(|item| item.span.end),
            YamlValue::Map(entries) => entries.last().map(|entry| entry.value.span.end),
            YamlValue::Scalar(_) => None,
        };
        let closed_by_bracket = span.end > span.start;
        let end = if closed_by_bracket { span.end } else { last_child.unwrap_or(span.end) };
        node.span = Span::new(node.span.start, end);
        self.place(node, anchor)
    }

    /// Takes a node that was read, with the children it already has.
    fn place(&mut self, node: YamlNode, anchor: usize) -> Result<(), YamlFailure> {
        let own = node.scalar().map_or("", |scalar| &scalar.text);
        self.count(Size::of_text(own), node.span)?;
        if anchor != 0 {
            // What aliases may copy is kept as a copy itself.
            let size = Size::of(&node);
            self.count(size, node.span)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        self.insert(node)
    }

    fn insert(&mut self, node: YamlNode) -> Result<(), YamlFailure> {
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match (&mut parent.node.value, parent.key.take()) {
            (YamlValue::List(items), _) => items.push(node),
            (YamlValue::Map(entries), Some((key, key_span))) => {
                entries.push(YamlEntry { key, key_span, value: node });
            }
            (YamlValue::Map(_), None) => match node.value {
                YamlValue::Scalar(scalar) => parent.key = Some((scalar.text, node.span)),
                _ => return Err(YamlFailure { kind: FailureKind::KeyIsNotText, span: node.span }),
            },
            (YamlValue::Scalar(_), _) => unreachable!("a scalar is never open"),
        }
        Ok(())
    }

    fn count(&mut self, size: Size, span: Span) -> Result<(), YamlFailure> {
        self.total = self.total.plus(size);
        let kind = match self.total {
            Size { nodes, .. } if nodes > MAX_NODES => FailureKind::TooManyNodes,
            Size { bytes, .. } if bytes > MAX_TEXT_BYTES => FailureKind::TooMuchText,
            _ => return Ok(()),
        };
        Err(YamlFailure { kind, span })
    }

    fn syntax(&self, error: &ScanError) -> YamlFailure {
        let at = error.marker().index();
        let span = self.bytes.span(at, at);
        // The parser has limits of its own, which it reports as text.
        let kind = match error.info() {
            info if info.contains("recursion limit") => FailureKind::TooDeep,
            info => FailureKind::Syntax(info.to_owned()),
        };
        YamlFailure { kind, span }
    }
}

/// The parser counts characters; files are sliced by bytes.
#[derive(Default)]
struct ByteOffsets {
    offset: usize,
    len: usize,
    /// Empty when the text is ASCII and both counts are the same.
    of_char: Vec<usize>,
}

impl ByteOffsets {
    fn of(text: &str, offset: usize) -> Self {
        let of_char =
            if text.is_ascii() { Vec::new() } else { text.char_indices().map(|(at, _)| at).collect() };
        Self { offset, len: text.len(), of_char }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        let byte = |index: usize| {
            if self.of_char.is_empty() {
                index.min(self.len)
            } else {
                self.of_char.get(index).copied().unwrap_or(self.len)
            }
        };
        Span::new(self.offset + byte(start), self.offset + byte(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(text: &str) -> YamlNode {
        parse(text, 0).unwrap().unwrap()
    }

    fn failure(text: &str) -> FailureKind {
        parse(text, 0).unwrap_err().kind
    }

    #[test]
    fn spans_are_bytes() {
        let text = "näme: «x»\nlist:\n  - one\n  - two  # note\nflow: [a, b]\n";
        let YamlValue::Map(entries) = root(text).value else { panic!() };
        let shown: Vec<_> =
            entries.iter().map(|e| (&text[e.key_span.range()], &text[e.value.span.range()])).collect();
        assert_eq!(shown, [("näme", "«x»"), ("list", "- one\n  - two"), ("flow", "[a, b]")]);
    }

    #[test]
    fn scalars_mean_what_they_look_like() {
        let json = root("a: 1\nb: '1'\nc: true\nd: ~\ne: off\nf: 1.5\ng: -3\n").to_json();
        assert_eq!(
            json,
            serde_json::json!({"a": 1, "b": "1", "c": true, "d": null, "e": "off", "f": 1.5, "g": -3})
        );
    }

    #[test]
    fn numbers_of_the_core_schema() {
        let number = |text: &str| Scalar { text: text.into(), plain: true }.as_number();
        for (text, expected) in [
            ("0x1F", 31.into()),
            ("0o17", 15.into()),
            ("+1", 1.into()),
            ("007", 7.into()),
            ("-3", (-3).into()),
            ("18446744073709551615", u64::MAX.into()),
            (".5", serde_json::Number::from_f64(0.5).unwrap()),
            ("-.5", serde_json::Number::from_f64(-0.5).unwrap()),
            ("1e3", serde_json::Number::from_f64(1000.0).unwrap()),
            ("5.", serde_json::Number::from_f64(5.0).unwrap()),
        ] {
            assert_eq!(number(text), Some(expected), "{text}");
        }
        let not_numbers = [
            ".inf", "-.inf", ".nan", "inf", "nan", "1e999", "0x", "0x+1", "0xg", "0o8", "1.2.3", "1-2", "+",
            ".", "",
        ];
        for text in not_numbers {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn aliases_work_and_bombs_do_not() {
        assert_eq!(root("a: &x [1]\nb: *x\n").to_json(), serde_json::json!({"a": [1], "b": [1]}));
        assert!(matches!(failure("a: &x [*x]\n"), FailureKind::Syntax(_)));
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..20 {
            let previous = format!("*a{}, ", level - 1).repeat(10);
            bomb += &format!("a{level}: &a{level} [{previous}]\n");
        }
        assert_eq!(failure(&bomb), FailureKind::TooManyNodes);
    }

    #[test]
    fn copies_are_counted_by_nodes_and_by_bytes() {
        let aliases =
            |count: usize| format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(45_000), "*a,".repeat(count));
        assert!(parse(&aliases(20), 0).is_ok());
        assert_eq!(failure(&aliases(40)), FailureKind::TooMuchText);
        // Every anchor around a list copies the list, also without any alias to it.
        let items = "x,".repeat(1_000);
        let anchors: String = (0..40).map(|level| format!("&b{level} [")).collect();
        assert_eq!(failure(&format!("{anchors}{items}{}", "]".repeat(40))), FailureKind::TooManyNodes);
        let keys: String = (0..40).map(|at| format!("{}{at}: x\n", "k".repeat(900))).collect();
        let maps = format!("a: &a\n  {}\nb: [{}]\n", keys.replace('\n', "\n  "), "*a,".repeat(30));
        assert_eq!(failure(&maps), FailureKind::TooMuchText, "keys are text too");
    }

    #[test]
    fn nesting_is_limited() {
        assert_eq!(failure(&"[".repeat(10_000)), FailureKind::TooDeep);
        let block: String = (0..10_000).map(|level| format!("{}a:\n", " ".repeat(level.min(200)))).collect();
        assert!(parse(&block, 0).is_err());
        let blocks: String = (0..100).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        assert_eq!(failure(&blocks), FailureKind::TooDeep);
    }

    #[test]
    fn odd_documents() {
        assert_eq!(parse("", 0), Ok(None));
        assert_eq!(failure("? [x]\n: y\n"), FailureKind::KeyIsNotText);
        assert_eq!(failure("a: 1\n---\nb: 2\n"), FailureKind::SeveralDocuments);
    }
}
