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

/// Text of a file as a terminal may get it: control characters are shown, not obeyed. Lines stay lines.
pub fn visible(text: &str) -> String {
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_control) {
        return text.to_owned();
    }
    let shown = |c: char| if is_control(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// Text without what a terminal would obey. Models repeat what they read, and not everything they read means well.
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// Writes beside the result. Whoever cannot read it misses nothing that the exit code does not say.
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
