//! Finding and reading agent files, within limits.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::problem::{Diagnostic, Rule};
use crate::source::{SourceFile, Span};

/// Far above any prompt; far below what would hurt to read.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Deeper folders are somebody else's tree.
const MAX_DEPTH: usize = 16;
/// A folder that holds this file is a project of its own, with its own agents.
pub const PROJECT_FILE: &str = "baton.toml";
const READABLE: &str = "make it readable for the user Baton runs as";
/// Markdown that stands beside agents without being one.
const NOT_AGENTS: &[&str] = &[
    "readme.md",
    "agents.md",
    "claude.md",
    "gemini.md",
    "skill.md",
    "changelog.md",
    "contributing.md",
    "license.md",
];

/// All agent files below `dirs`, sorted, so that every load sees the same order. A file given by name is
/// taken as it is. Folders in different spellings are one.
pub fn discover(dirs: &[PathBuf], problems: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in dirs {
        if dir.is_file() {
            found.push(dir.clone());
        } else {
            let help = "check `agents.dirs` in baton.toml, or create the folder";
            walk(dir, 0, help, &mut found, problems);
        }
    }
    found.sort();
    let mut places = Places::default();
    found.retain(|path| places.is_new(path));
    found
}

/// Where files really are: a name in a folder, whatever the spelling of the way there. A link and what it leads to are
/// two files.
#[derive(Default)]
struct Places {
    folders: HashMap<PathBuf, PathBuf>,
    seen: HashSet<PathBuf>,
}

impl Places {
    fn is_new(&mut self, path: &Path) -> bool {
        let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        let real = self
            .folders
            .entry(parent.to_owned())
            .or_insert_with(|| parent.canonicalize().unwrap_or_else(|_| parent.to_owned()));
        self.seen.insert(real.join(path.file_name().unwrap_or_default()))
    }
}

/// What cannot be read is reported, and the rest goes on.
fn walk(dir: &Path, depth: usize, help: &str, found: &mut Vec<PathBuf>, problems: &mut Vec<Diagnostic>) {
    // The current folder is written as an empty path, so that what is found in it is shown without `./`.
    let here = if dir == Path::new("") { Path::new(".") } else { dir };
    let entries = match fs::read_dir(here) {
        Ok(entries) => entries,
        Err(error) => return problems.push(unreadable(dir, &error, help)),
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return problems.push(unreadable(dir, &error, help)),
        };
        let path = dir.join(entry.file_name());
        let name = entry.file_name().to_string_lossy().to_lowercase();
        // Links to folders are not followed: they can lead out of the tree or in circles.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let is_other =
                name.starts_with('.') || name == "node_modules" || path.join(PROJECT_FILE).is_file();
            if depth < MAX_DEPTH && !is_other {
                walk(&path, depth + 1, READABLE, found, problems);
            }
        } else if is_agent_file(&name) && path.is_file() {
            found.push(path);
        }
    }
}

/// Whether a file of this (lower-case) name is read as an agent.
pub fn is_agent_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "md")
        && !name.starts_with('.')
        && !NOT_AGENTS.contains(&name)
}

/// What an agent in this file is called unless it says otherwise: the name without `.md`, `.agent.md` or
/// `.chatmode.md`.
pub fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.strip_suffix(".agent").or_else(|| stem.strip_suffix(".chatmode")).unwrap_or(&stem);
    stem.to_owned()
}

/// Reads one file. Size is checked before a byte is read.
pub fn read(path: &Path) -> Result<Arc<SourceFile>, Diagnostic> {
    let help = READABLE;
    let size = fs::metadata(path).map_err(|error| unreadable(path, &error, help))?.len();
    if size > MAX_FILE_BYTES {
        return Err(too_large(path, size));
    }
    let bytes = fs::read(path).map_err(|error| unreadable(path, &error, help))?;
    String::from_utf8(bytes).map(|text| SourceFile::new(path, text)).map_err(|error| not_utf8(path, &error))
}

fn too_large(path: &Path, size: u64) -> Diagnostic {
    Diagnostic::new(
        Rule::TooLarge,
        SourceFile::new(path, "").locate(Span::default()),
        format!("the file has {size} bytes, and an agent file has at most {MAX_FILE_BYTES}"),
        "move long reference text into files that the agent reads with `search_docs` or `read_file`",
    )
}

fn not_utf8(path: &Path, error: &std::string::FromUtf8Error) -> Diagnostic {
    // The valid part is kept so that the position can be shown.
    let valid = error.utf8_error().valid_up_to();
    let text = String::from_utf8_lossy(&error.as_bytes()[..valid]);
    let source = SourceFile::new(path, text);
    Diagnostic::new(
        Rule::NotUtf8,
        source.locate(Span::new(valid, valid)),
        format!("the file is not UTF-8: byte {} cannot be read", valid + 1),
        "save the file as UTF-8",
    )
}

fn unreadable(path: &Path, error: &io::Error, help: &str) -> Diagnostic {
    let location = SourceFile::new(path, "").locate(Span::default());
    Diagnostic::new(Rule::Unreadable, location, format!("cannot be read: {error}"), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems() {
        assert_eq!(stem(Path::new("x/planner.md")), "planner");
        assert_eq!(stem(Path::new("x/planner.agent.md")), "planner");
        assert_eq!(stem(Path::new("Old Mode.chatmode.md")), "Old Mode");
    }
}
