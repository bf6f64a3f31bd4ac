//! Finds the built web page (`ui/dist`, or the folder that `BATON_UI_DIST` names) and writes a table of its files, which
//! `src/ui/embedded.rs` includes. Without a built page the table is empty and the build succeeds.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{env, fs};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

const VARIABLE: &str = "BATON_UI_DIST";
/// What every built page has. A folder without it is a build that was interrupted.
const INDEX: &str = "index.html";
/// Bytes of the SHA-256 that make an `ETag`.
const ETAG_BYTES: usize = 12;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let dist = dist()?;
    if !dist.exists() {
        // Where the sources are read-only, cargo runs this script on every build.
        let _ = create_old(&dist);
    }
    println!("cargo::rerun-if-changed={}", dist.display());
    let files = if dist.join(INDEX).is_file() { files(&dist)? } else { Vec::new() };
    let table = PathBuf::from(env::var("OUT_DIR")?).join("ui_files.rs");
    fs::write(table, source(&dist, &files)?)?;
    Ok(())
}

fn dist() -> Result<PathBuf, Box<dyn Error>> {
    let own = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let named = env::var_os(VARIABLE).filter(|named| !named.is_empty());
    // A relative path is meant as seen from the root of the repository.
    let root = own.join("../..");
    Ok(match named {
        Some(named) => root.join(named),
        None => root.join("ui/dist"),
    })
}

/// Creates an empty folder for cargo to watch: it runs a build script every time if a watched path does not exist, and notices no
/// new files in a folder that it does not watch. Git ignores the folder. It must be older than this run of the script, or cargo
/// takes it for a change.
fn create_old(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::File::open(folder)?.set_modified(SystemTime::UNIX_EPOCH)
}

/// The files below a folder as paths with `/`, in order. Hidden ones, and those that only compress another, are left out.
fn files(dist: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(dist.join(&folder))? {
            let entry = entry?;
            let name = entry
                .file_name()
                .into_string()
                .map_err(|name| format!("`{}` is not UTF-8", name.display()))?;
            if name.starts_with('.') {
                continue;
            }
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    let is_original = |path: &&String| {
        let original = path.strip_suffix(".br").or_else(|| path.strip_suffix(".gz"));
        original.is_none_or(|original| found.binary_search_by(|known| known.as_str().cmp(original)).is_err())
    };
    Ok(found.iter().filter(is_original).cloned().collect())
}

fn source(dist: &Path, files: &[String]) -> Result<String, Box<dyn Error>> {
    let mut text = String::from("&[\n");
    for path in files {
        let file = dist.join(path);
        let etag = HEXLOWER.encode(&Sha256::digest(fs::read(&file)?)[..ETAG_BYTES]);
        let compressed = |suffix: &str| {
            let file = dist.join(format!("{path}{suffix}"));
            if file.is_file() { format!("Some({})", include(&file)) } else { "None".to_owned() }
        };
        writeln!(
            text,
            "    UiFile {{ path: {:?}, etag: {etag:?}, identity: {}, br: {}, gzip: {} }},",
            format!("/{path}"),
            include(&file),
            compressed(".br"),
            compressed(".gz"),
        )?;
    }
    text.push_str("]\n");
    Ok(text)
}

fn include(file: &Path) -> String {
    format!("include_bytes!({:?})", file.display().to_string())
}
