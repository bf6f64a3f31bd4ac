//! The files of the documentation folders, and what was read of them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use baton_core::{TenantId, ToolError};

use super::index::{Index, IndexedDocument};
use crate::documents::{self, DocumentReader};
use crate::offload::Abandoned;
use crate::search_docs::DocFolders;

/// Of a text file, and of the text of a document.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;
pub const MAX_FILES: usize = 20_000;
/// The index takes about as much memory as the text it was made from. A document counts with at most 1 MiB.
const MAX_TOTAL_BYTES: u64 = 128 * 1024 * 1024;
const MAX_DEPTH: usize = 16;
const TEXT_EXTENSIONS: &[&str] = &["md", "markdown", "mdx", "txt", "text", "rst", "adoc"];

#[derive(Debug)]
pub struct Corpus {
    dirs: Vec<PathBuf>,
    /// Files and folders that are no documents, wherever the folders are.
    protected: Vec<PathBuf>,
    reader: DocumentReader,
    /// Held while files are read, so that two questions at once read them only once.
    state: Mutex<CorpusState>,
}

#[derive(Debug, Default)]
struct CorpusState {
    stamps: BTreeMap<PathBuf, FileStamp>,
    index: Arc<Index>,
}

/// What changes when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    modified: Option<SystemTime>,
    bytes: u64,
}

/// A file as the walk found it.
struct FoundFile {
    source: String,
    stamp: FileStamp,
}

#[derive(Default)]
struct FolderWalk {
    /// Without links, as the paths of the walk are.
    protected: Vec<PathBuf>,
    found: BTreeMap<PathBuf, FoundFile>,
    bytes: u64,
    left_out: usize,
}

/// The documents of all tenants, each folder read once however many tools search it.
#[derive(Debug, Clone)]
pub struct Corpora {
    shared: Arc<Corpus>,
    tenants: BTreeMap<TenantId, Arc<Corpus>>,
}

impl Corpora {
    /// Leaves out what is at or below the protected paths. Nothing is read before the first question.
    pub fn new(docs: DocFolders, protected: &[PathBuf], reader: &DocumentReader) -> Self {
        let corpus = |dirs| Arc::new(Corpus::new(dirs, protected.to_vec(), reader.clone()));
        let tenants = docs.tenants.into_iter().map(|(tenant, dirs)| (tenant, corpus(dirs)));
        Self { tenants: tenants.collect(), shared: corpus(docs.shared) }
    }

    pub fn of(&self, tenant: &TenantId) -> &Arc<Corpus> {
        self.tenants.get(tenant).unwrap_or(&self.shared)
    }

    /// Tenants with documents of their own.
    pub fn tenants(&self) -> impl Iterator<Item = &TenantId> {
        self.tenants.keys()
    }
}

impl Corpus {
    pub fn new(dirs: Vec<PathBuf>, protected: Vec<PathBuf>, reader: DocumentReader) -> Self {
        Self { dirs, protected, reader, state: Mutex::default() }
    }

    /// The index as of now. Only files that changed since the last call are read. Blocks.
    pub fn refresh(&self, abandoned: &Abandoned) -> Result<Arc<Index>, ToolError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let walk = self.walk(abandoned)?;
        let is_same = walk.left_out == state.index.left_out
            && walk.found.len() == state.stamps.len()
            && walk.found.iter().all(|(path, found)| state.stamps.get(path) == Some(&found.stamp));
        if !is_same {
            *state = state.updated(walk, &self.reader, abandoned);
            // What was read until then is kept, so that the next call gets further.
            abandoned.check()?;
        }
        Ok(state.index.clone())
    }

    fn walk(&self, abandoned: &Abandoned) -> Result<FolderWalk, ToolError> {
        let protected = self.protected.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let mut walk = FolderWalk { protected, ..FolderWalk::default() };
        for dir in &self.dirs {
            // The last part is enough to recognise the folder, and shows nothing of the machine.
            let name = dir.file_name().map(|name| name.to_string_lossy().into_owned());
            let Ok(dir) = dir.canonicalize() else { continue };
            walk.folder(&dir, &name.unwrap_or_default(), 0, abandoned)?;
        }
        Ok(walk)
    }
}

impl FolderWalk {
    fn folder(
        &mut self,
        dir: &Path,
        shown: &str,
        depth: usize,
        abandoned: &Abandoned,
    ) -> Result<(), ToolError> {
        abandoned.check()?;
        let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
        let mut entries: Vec<_> = entries.flatten().collect();
        // Limits cut off the same files every time.
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            // Of the entry itself: links are neither folders nor files here.
            let Ok(kind) = entry.file_type() else { continue };
            let shown = if shown.is_empty() { name.clone() } else { format!("{shown}/{name}") };
            if name.starts_with('.') || self.protected.contains(&entry.path()) {
                continue;
            }
            if kind.is_dir() && depth < MAX_DEPTH {
                self.folder(&entry.path(), &shown, depth + 1, abandoned)?;
            } else if kind.is_file() && has_extension(&name, TEXT_EXTENSIONS) {
                self.file(&entry, shown, MAX_FILE_BYTES);
            } else if kind.is_file() && has_extension(&name, documents::EXTENSIONS) {
                self.file(&entry, shown, documents::MAX_FILE_BYTES);
            }
        }
        Ok(())
    }

    fn file(&mut self, entry: &fs::DirEntry, source: String, max_bytes: u64) {
        let Ok(metadata) = entry.metadata() else { return };
        let bytes = metadata.len();
        let of_text = bytes.min(MAX_FILE_BYTES);
        let fits = bytes <= max_bytes && self.bytes + of_text <= MAX_TOTAL_BYTES;
        if !fits || self.found.len() >= MAX_FILES {
            self.left_out += 1;
            return;
        }
        self.bytes += of_text;
        let stamp = FileStamp { modified: metadata.modified().ok(), bytes };
        self.found.insert(entry.path(), FoundFile { source, stamp });
    }
}

impl CorpusState {
    fn updated(&self, walk: FolderWalk, reader: &DocumentReader, abandoned: &Abandoned) -> Self {
        let mut next = Self::default();
        let mut index = Index { documents: BTreeMap::new(), left_out: walk.left_out };
        for (path, FoundFile { source, stamp }) in walk.found {
            let known = self.stamps.get(&path).filter(|known| **known == stamp);
            let document = match known.and_then(|_| self.index.documents.get(&path)) {
                Some(document) => document.clone(),
                None if abandoned.is_set() => continue,
                None => match indexed(&path, source, reader, abandoned) {
                    Some(document) => Arc::new(document),
                    None => continue,
                },
            };
            next.stamps.insert(path.clone(), stamp);
            index.documents.insert(path, document);
        }
        next.index = Arc::new(index);
        next
    }
}

fn has_extension(name: &str, extensions: &[&str]) -> bool {
    let extension = Path::new(name).extension().unwrap_or_default().to_string_lossy().to_lowercase();
    extensions.contains(&extension.as_str())
}

/// A file as search knows it; `None` when it cannot be read. A document that cannot be read is known without text, so that it is
/// not read again before it changes.
fn indexed(
    path: &Path,
    source: String,
    reader: &DocumentReader,
    abandoned: &Abandoned,
) -> Option<IndexedDocument> {
    if !has_extension(&source, documents::EXTENSIONS) {
        return Some(IndexedDocument::new(source, &read(path)?));
    }
    let mut text = match reader.read(File::open(path).ok()?, abandoned) {
        Ok(text) => text,
        Err(documents::DocumentError::Cancelled) => return None,
        Err(error) => {
            tracing::warn!(document = source, %error, "a document cannot be searched");
            String::new()
        }
    };
    let most = usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX);
    text.truncate(text.floor_char_boundary(most));
    let mut document = IndexedDocument::new(source, &text);
    document.text = Some(text.into());
    Some(document)
}

/// The same bytes give the same text, so ranges of the index hold for it. `None` when it cannot be read.
pub fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
