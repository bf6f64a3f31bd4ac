//! The skills of one folder, read once and again only when they change.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use baton_core::agent::SkillName;
use baton_core::{SkillHead, SkillOrigin};

use super::{FILE, head, read_file};

/// More of one folder are not looked at.
const MAX_SKILLS: usize = 2_000;
/// Names that are looked at in one folder, skills or not.
const MAX_ENTRIES: usize = 20_000;
/// A file that was changed this shortly before it was read may change again without its times telling so.
const UNSETTLED: Duration = Duration::from_secs(2);

/// A skill and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSkill {
    pub head: Arc<SkillHead>,
    /// With `SKILL.md` in it.
    pub folder: PathBuf,
}

/// One folder, as it was when it was last looked at; sorted by the names of its folders.
#[derive(Debug, Default)]
pub(super) struct Shelf(Mutex<Arc<Vec<Seen>>>);

#[derive(Debug)]
struct Seen {
    folder: PathBuf,
    stamp: SkillStamp,
    /// Whether the stamp is enough to know that nothing changed.
    is_settled: bool,
    /// `None`: no skill that can be used.
    found: Option<FoundSkill>,
}

/// What changes when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SkillStamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl SkillStamp {
    fn of(file: &Metadata) -> Self {
        Self {
            inode: file.ino(),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    fn is_settled(self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let newest = u64::try_from(self.modified.0.max(self.changed.0)).unwrap_or_default();
        now > Duration::from_secs(newest) + UNSETTLED
    }
}

impl Shelf {
    /// The skills in `dir`, one folder each, sorted by name. Small faults are overlooked; a skill without a description cannot be
    /// chosen and is left out.
    pub(super) fn list(&self, dir: &Path) -> Vec<FoundSkill> {
        let before = Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let seen: Vec<Seen> =
            folders(dir).into_iter().filter_map(|folder| look(folder, &before)).take(MAX_SKILLS).collect();
        let mut found: Vec<FoundSkill> = seen.iter().filter_map(|one| one.found.clone()).collect();
        found.sort_by(|a, b| a.head.name.cmp(&b.head.name));
        found.dedup_by(|a, b| a.head.name == b.head.name);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(seen);
        found
    }
}

/// Visible entries, sorted.
fn folders(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let is_visible = |entry: &fs::DirEntry| !entry.file_name().to_string_lossy().starts_with('.');
    let mut folders: Vec<PathBuf> =
        entries.take(MAX_ENTRIES).flatten().filter(is_visible).map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

fn look(folder: PathBuf, before: &[Seen]) -> Option<Seen> {
    // Reading something else than a file, such as a pipe, might never end.
    let file = fs::metadata(folder.join(FILE)).ok().filter(Metadata::is_file)?;
    let stamp = SkillStamp::of(&file);
    let known = before.binary_search_by(|seen| seen.folder.cmp(&folder)).ok().map(|at| &before[at]);
    let found = match known {
        Some(seen) if seen.is_settled && seen.stamp == stamp => seen.found.clone(),
        _ => load(&folder),
    };
    Some(Seen { is_settled: stamp.is_settled(), folder, stamp, found })
}

fn load(folder: &Path) -> Option<FoundSkill> {
    let text = read_file(folder).ok()?;
    let (head, _) = head::read(&text).ok()?;
    let description = head.text("description").filter(|text| !text.trim().is_empty())?.trim().to_owned();
    let of_folder = folder.file_name().and_then(|name| SkillName::parse(&name.to_string_lossy()).ok());
    let name = of_folder.or_else(|| SkillName::parse(head.text("name")?.trim()).ok())?;
    let origin = SkillOrigin::Shared;
    Some(FoundSkill { head: Arc::new(SkillHead { name, description, origin }), folder: folder.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, name: &str, description: &str) {
        fs::create_dir_all(dir.join(name)).unwrap();
        let text = format!("---\nname: {name}\ndescription: {description}\n---\nBody.\n");
        fs::write(dir.join(name).join(FILE), text).unwrap();
    }

    fn described(shelf: &Shelf, dir: &Path) -> Vec<String> {
        shelf.list(dir).iter().map(|found| found.head.description.clone()).collect()
    }

    #[test]
    fn changes_are_seen_and_the_rest_is_not_read_again() {
        let (dir, shelves) = (tempfile::tempdir().unwrap(), Shelf::default());
        write(dir.path(), "a", "One.");
        assert_eq!(described(&shelves, dir.path()), ["One."]);
        write(dir.path(), "a", "Two.");
        write(dir.path(), "b", "Old.");
        assert_eq!(described(&shelves, dir.path()), ["Two.", "Old."], "just changed, the same size");
        // Once the file has rested, it is the stamp that decides: what is kept is not read again.
        let long_ago = SystemTime::now() - Duration::from_mins(1);
        let shelf: Vec<Seen> = folders(dir.path())
            .into_iter()
            .filter_map(|folder| look(folder, &[]))
            .map(|seen| Seen { is_settled: true, ..seen })
            .collect();
        let kept = look(dir.path().join("a"), &shelf).unwrap().found.unwrap();
        assert!(Arc::ptr_eq(&kept.head, &shelf[0].found.as_ref().unwrap().head));
        let file = fs::File::options().write(true).open(dir.path().join("a").join(FILE)).unwrap();
        file.set_modified(long_ago).unwrap();
        let read = look(dir.path().join("a"), &shelf).unwrap().found.unwrap();
        assert!(!Arc::ptr_eq(&read.head, &kept.head), "another stamp, read again");
        fs::remove_dir_all(dir.path().join("a")).unwrap();
        assert_eq!(described(&shelves, dir.path()), ["Old."]);
        fs::remove_dir_all(dir.path().join("b")).unwrap();
        assert!(described(&shelves, dir.path()).is_empty());
        assert!(shelves.0.lock().unwrap().is_empty(), "nothing is kept of empty folders");
    }
}
