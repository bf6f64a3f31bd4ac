//! Where something stands in a file.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::ser::SerializeStruct;

/// A file as it was read.
#[derive(Debug)]
pub struct SourceFile {
    pub path: PathBuf,
    pub text: String,
    /// Byte offset at which each line starts.
    line_starts: Vec<usize>,
}

impl SourceFile {
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Arc<Self> {
        let text = text.into();
        let after_newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(after_newlines).collect();
        Arc::new(Self { path: path.into(), text, line_starts })
    }

    /// A place in this file. Positions that come from other parsers can lie past the end or inside a character.
    pub fn locate(self: &Arc<Self>, span: Span) -> Location {
        let boundary = |at| self.text.floor_char_boundary(at);
        Location { source: Arc::clone(self), span: Span::new(boundary(span.start), boundary(span.end)) }
    }

    /// The same file with these parts made unreadable. Every position stays: a character becomes one of the same
    /// length, and lines end where they did.
    pub fn masked(&self, spans: &[Span]) -> Arc<Self> {
        let mut spans = spans.to_vec();
        spans.sort_by_key(|span| span.start);
        let mut text = String::with_capacity(self.text.len());
        let mut done = 0;
        for span in spans {
            let boundary = |at: usize| self.text.floor_char_boundary(at).max(done);
            let (start, end) = (boundary(span.start), boundary(span.end));
            text += &self.text[done..start];
            text.extend(self.text[start..end].chars().map(star));
            done = end;
        }
        text += &self.text[done..];
        Arc::new(Self { path: self.path.clone(), text, line_starts: self.line_starts.clone() })
    }

    /// Line and column from 1; columns count characters, as editors do.
    pub fn position(&self, offset: usize) -> SourcePosition {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        SourcePosition { line, column: self.text[start..offset].chars().count() + 1 }
    }

    /// The byte at which a line (from 1) starts; the end of the text for lines past it.
    pub fn line_start(&self, line: usize) -> usize {
        self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len())
    }
}

/// A sign as many bytes long as the character it stands for.
fn star(c: char) -> char {
    match c {
        '\n' | '\r' => c,
        _ => ['*', '·', '•', '🞄'][c.len_utf8() - 1],
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourcePosition {
    pub line: usize,
    pub column: usize,
}

/// A range of bytes in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end: end.max(start) }
    }

    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// A span together with its file: enough to print `file:line:col` and an excerpt.
#[derive(Debug, Clone)]
pub struct Location {
    pub source: Arc<SourceFile>,
    pub span: Span,
}

impl Location {
    pub fn path(&self) -> &Path {
        &self.source.path
    }

    pub fn start(&self) -> SourcePosition {
        self.source.position(self.span.start)
    }

    pub fn end(&self) -> SourcePosition {
        self.source.position(self.span.end)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SourcePosition { line, column } = self.start();
        write!(f, "{}:{line}:{column}", self.path().display())
    }
}

impl Serialize for Location {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (start, end) = (self.start(), self.end());
        let mut location = serializer.serialize_struct("Location", 5)?;
        location.serialize_field("file", &self.path().to_string_lossy())?;
        location.serialize_field("line", &start.line)?;
        location.serialize_field("column", &start.column)?;
        location.serialize_field("end_line", &end.line)?;
        location.serialize_field("end_column", &end.column)?;
        location.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        let source = SourceFile::new("a.md", "äb\ncd\n");
        assert_eq!(source.position(0), SourcePosition { line: 1, column: 1 });
        assert_eq!(source.position(2), SourcePosition { line: 1, column: 2 });
        assert_eq!(source.position(4), SourcePosition { line: 2, column: 1 });
        assert_eq!(source.position(999), SourcePosition { line: 3, column: 1 });
        assert_eq!(source.line_start(2), 4);
    }

    #[test]
    fn masking_moves_nothing() {
        let source = SourceFile::new("a.md", "k: aä€🎷\n  b\r\n!\n");
        let masked = source.masked(&[Span::new(16, 19), Span::new(3, 13), Span::new(5, 9)]);
        assert_eq!(masked.text, "k: *·•🞄\n  *\r\n!\n");
        for at in 0..=source.text.len() {
            assert_eq!(masked.position(at), source.position(at), "{at}");
        }
    }
}
