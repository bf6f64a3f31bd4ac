//! What commands say. Problems as people ([`text`]), programs and code-scanning services ([`sarif`]) want them; what was kept as
//! a [`table`], a [`tree`] or a [`conversation`], with [`figures`] that people can read; [`notices`] beside what agents say.

pub mod conversation;
pub mod figures;
pub mod notices;
pub mod sarif;
pub mod table;
pub mod text;
pub mod tree;

use std::io::Write as _;

use baton_agents::{Diagnostic, RosterDraft, Severity};
use serde::Serialize;
use serde::ser::SerializeStruct;

use crate::progress;

/// Text as a terminal may get it: control characters, marks of direction and invisible characters are shown as escapes, so that
/// the text reads as what it is. Lines stay lines.
pub fn visible(text: &str) -> String {
    if !text.contains(is_hidden) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether a character is not seen but changes what is read. The web page escapes the same ones.
fn is_hidden(c: char) -> bool {
    let is_invisible = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    is_invisible || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Text without what a terminal would obey. Models repeat what they read, and not everything they read means well.
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// Writes beside the result. It contains nothing that the exit code does not say.
pub fn tell(text: &str) {
    progress::aside(|| {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    });
}

/// Prints the errors of a draft. Whether there are any.
pub fn errors_of(draft: &RosterDraft) -> bool {
    let errors: Vec<_> = draft.problems().iter().filter(|problem| problem.is_error()).cloned().collect();
    if errors.is_empty() {
        return false;
    }
    let mut found = ValidationReport::default();
    found.add(draft.files(), errors);
    let _ = write!(anstream::stderr(), "{}", text::render(&found));
    true
}

/// Everything a validation found.
#[derive(Debug, Default)]
pub struct ValidationReport {
    pub files: usize,
    pub problems: Vec<Diagnostic>,
}

impl ValidationReport {
    pub fn add(&mut self, files: usize, problems: impl IntoIterator<Item = Diagnostic>) {
        self.files += files;
        self.problems.extend(problems);
    }

    pub fn errors(&self) -> usize {
        self.count(Severity::Error)
    }

    pub fn count(&self, severity: Severity) -> usize {
        self.problems.iter().filter(|problem| problem.severity == severity).count()
    }
}

impl Serialize for ValidationReport {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut report = serializer.serialize_struct("Report", 5)?;
        report.serialize_field("files", &self.files)?;
        report.serialize_field("errors", &self.errors())?;
        report.serialize_field("warnings", &self.count(Severity::Warning))?;
        report.serialize_field("notes", &self.count(Severity::Note))?;
        report.serialize_field("problems", &self.problems)?;
        report.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped() {
        for c in [
            '\u{0}',
            '\u{1b}',
            '\u{7f}',
            '\u{9b}',
            '\u{ad}',
            '\u{61c}',
            '\u{180e}',
            '\u{200b}',
            '\u{200e}',
            '\u{200f}',
            '\u{2028}',
            '\u{202e}',
            '\u{2060}',
            '\u{206f}',
            '\u{feff}',
            '\u{fff9}',
            '\u{fffb}',
            '\u{e0000}',
            '\u{e007f}',
        ] {
            assert_eq!(visible(&format!("a{c}b")), format!("a{}b", c.escape_unicode()));
        }
        assert_eq!(visible("rm \u{202e}txt.a\u{202c} -rf\r"), r"rm \u{202e}txt.a\u{202c} -rf\r");
    }

    #[test]
    fn ordinary_text_stays() {
        // Joiners make words of some scripts and emoji.
        let text = "one\n\ttwo — ‘three’… 中文 עברית می\u{200c}خواهم 👩\u{200d}💻";
        assert_eq!(visible(text), text);
    }
}
