//! The path and parameters of a SQLite file.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default time that a write waits for another program's lock.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseFile {
    pub(crate) path: PathBuf,
    pub(super) patience: Duration,
    /// Maximum number of pages; `None` is unlimited.
    pub(super) pages: Option<u32>,
}

impl DatabaseFile {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path, patience: PATIENCE, pages: None }
    }

    /// Parses `file?busy_timeout=100&max_page_count=50`. The error is the parameter that is not understood.
    pub(crate) fn parse<'t>(text: &'t str, base: &Path) -> Result<Self, &'t str> {
        let (path, parameters) = text.split_once('?').unwrap_or((text, ""));
        let mut file = Self::at(base.join(path));
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').ok_or(parameter)?;
            let number: u32 = value.parse().map_err(|_| parameter)?;
            match name {
                "busy_timeout" => file.patience = Duration::from_millis(number.into()),
                "max_page_count" => file.pages = Some(number),
                _ => return Err(parameter),
            }
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters() {
        let parse = |text| DatabaseFile::parse(text, Path::new("/project"));
        assert_eq!(parse("a.db"), Ok(DatabaseFile::at("/project/a.db".into())));
        let file = parse("a.db?busy_timeout=20&max_page_count=7").unwrap();
        assert_eq!((file.patience, file.pages), (Duration::from_millis(20), Some(7)));
        assert_eq!(parse("a.db?cache=shared"), Err("cache=shared"));
        assert_eq!(parse("a.db?busy_timeout=soon"), Err("busy_timeout=soon"));
    }
}
