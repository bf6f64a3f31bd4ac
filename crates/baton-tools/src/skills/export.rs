//! A skill as a folder with its file, for other programs that know Agent Skills.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use baton_core::agent::SkillName;
use uuid::Uuid;

use super::{FILE, read_file};

/// Writes `dir/<name>/SKILL.md` and returns its path. The folder exists as a whole or not at all. Fails if there is one with another
/// file; one with the same file is left as it is. Blocks.
pub fn export(dir: &Path, name: &SkillName, text: &str) -> io::Result<PathBuf> {
    let target = dir.join(name.as_str());
    let file = target.join(FILE);
    if target.exists() {
        let is_same = read_file(&target).is_ok_and(|kept| kept == text);
        let refused = || io::Error::new(ErrorKind::AlreadyExists, "it exists already and is different");
        return is_same.then_some(file).ok_or_else(refused);
    }
    fs::create_dir_all(dir)?;
    let staged = dir.join(format!(".{}", Uuid::new_v4().simple()));
    fs::create_dir(&staged)?;
    let written = write(&staged.join(FILE), text).and_then(|()| fs::rename(&staged, &target));
    written.inspect_err(|_| drop(fs::remove_dir_all(&staged)))?;
    File::open(dir)?.sync_all()?;
    Ok(file)
}

/// Durable when it returns.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
