//! Problems as people, programs and code-scanning services want them.

pub mod sarif;
pub mod text;

use baton_agents::{Problem, Severity};
use serde::Serialize;
use serde::ser::SerializeStruct;

/// Everything a validation found.
#[derive(Debug, Default)]
pub struct Report {
    pub files: usize,
    pub problems: Vec<Problem>,
}

impl Report {
    pub fn add(&mut self, files: usize, problems: impl IntoIterator<Item = Problem>) {
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

impl Serialize for Report {
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
