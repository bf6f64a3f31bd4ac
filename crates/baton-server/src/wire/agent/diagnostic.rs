//! What is worth knowing about an agent's file.

use std::path::{Component, Path, PathBuf};

use baton_agents::problem::Severity;
use baton_agents::source::Location;
use baton_agents::{Diagnostic, Rule};
use baton_sanitize::{Mask, sanitize};
use serde::Serialize;
use utoipa::ToSchema;

use super::excerpt::{LineView, excerpt};
use crate::wire::schema::words;

/// A finding, with its place and a way out.
#[derive(Debug, Serialize, ToSchema)]
pub struct DiagnosticView {
    #[schema(schema_with = words::<Severity>)]
    pub severity: Severity,
    /// The word for the rule, which never changes its meaning.
    #[schema(schema_with = words::<Rule>)]
    pub rule: Rule,
    pub message: String,
    /// What to do about it.
    pub help: String,
    #[serde(flatten)]
    pub place: PlaceView,
    /// The lines from two before it to two after it. Absent where there is no file to quote.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub excerpt: Vec<LineView>,
    /// Other places that matter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub related: Vec<RelatedView>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct RelatedView {
    pub message: String,
    #[serde(flatten)]
    pub place: PlaceView,
}

/// Lines and columns count from 1, columns in characters.
#[derive(Debug, Serialize, ToSchema)]
pub struct PlaceView {
    /// Within the project.
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    pub end_column: usize,
}

impl DiagnosticView {
    pub fn of(problem: &Diagnostic, root: &Path) -> Self {
        let related = problem.related.iter().map(|related| RelatedView {
            message: masked(&without(root, &related.message)),
            place: PlaceView::of(&related.location, root),
        });
        Self {
            severity: problem.severity,
            rule: problem.rule,
            message: masked(&without(root, &problem.message)),
            help: masked(&without(root, &problem.help)),
            place: PlaceView::of(&problem.location, root),
            excerpt: excerpt(&problem.location),
            related: related.collect(),
        }
    }
}

/// Messages quote names from files, and a name can be an address with a password.
fn masked(text: &str) -> String {
    sanitize(text, Mask::SecretsOnly).into_owned()
}

impl PlaceView {
    fn of(location: &Location, root: &Path) -> Self {
        let (start, end) = (location.start(), location.end());
        Self {
            file: within(root, location.path()),
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
        }
    }
}

/// A path as seen from the project's folder. Where that folder is on the machine is not revealed, so of a file elsewhere there
/// is only its name.
pub fn within(root: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(root).unwrap_or(path);
    let is_plain = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let shown: PathBuf = if inside.components().all(|part| is_plain(&part)) {
        inside.components().filter(|part| *part != Component::CurDir).collect()
    } else {
        inside.file_name().map(PathBuf::from).unwrap_or_default()
    };
    shown.to_string_lossy().into_owned()
}

/// A sentence that names files, which are named as seen from the project's folder.
fn without(root: &Path, message: &str) -> String {
    if !root.is_absolute() {
        return message.to_owned();
    }
    let root = root.to_string_lossy();
    message.replace(&format!("{}/", root.trim_end_matches('/')), "").replace(&*root, ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_name_files_within_the_project() {
        let said = "no agent files in /srv/team/agents, /srv/team";
        assert_eq!(without(Path::new("/srv/team"), said), "no agent files in agents, .");
        assert_eq!(without(Path::new("."), "a.md and b.md"), "a.md and b.md");
    }

    #[test]
    fn paths_are_those_within_the_project() {
        for (root, path, shown) in [
            ("/srv/team", "/srv/team/agents/a.md", "agents/a.md"),
            ("/srv/team", "/srv/teams/agents/a.md", "a.md"),
            (".", "./agents/a.md", "agents/a.md"),
            (".", "agents/a.md", "agents/a.md"),
            ("", "agents/a.md", "agents/a.md"),
            (".", "/etc/agents/a.md", "a.md"),
            ("team", "team/agents/a.md", "agents/a.md"),
            (".", "../other/a.md", "a.md"),
            ("/srv", "/srv/x/../../etc/a.md", "a.md"),
        ] {
            assert_eq!(within(Path::new(root), Path::new(path)), shown, "{path} in {root}");
        }
    }
}
