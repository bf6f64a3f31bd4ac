//! `read_file`: a text file or document of the work folder, page by page.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::PathBuf;
use std::sync::Arc;

use baton_core::media::sniff;
use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, ProducedFile, TenantId, Tool, ToolError, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::builtin::SKILLS_DIR;
use crate::documents::{self, DocumentError, DocumentReader};
use crate::offload::{Abandoned, offload};
use crate::schema::{arguments, object};
use crate::search_docs::DocFolders;
use crate::work_dir::{PathError, WorkDir};

const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes that tell what a file is.
const HEAD_BYTES: u64 = 64;
const MAX_IMAGE_BYTES: u64 = 8 * 1024 * 1024;
const DEFAULT_LINES: usize = 400;
const MAX_LINES: usize = 2_000;
/// Longer lines are cut: minified files have lines of megabytes.
const MAX_LINE_CHARS: usize = 2_000;
const MAX_PAGE_BYTES: usize = 256 * 1024;

#[derive(Debug)]
pub struct ReadFile {
    spec: ToolSpec,
    protected: Vec<PathBuf>,
    docs: DocFolders,
    /// The folder of the skills that all tenants share.
    skills: Option<PathBuf>,
    reader: DocumentReader,
}

#[derive(Debug, Deserialize)]
struct ReadFileArguments {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

impl Default for ReadFile {
    fn default() -> Self {
        let spec = ToolSpec {
            name: "read_file".to_owned(),
            description: "Reads a text file of the work folder, or the text of a PDF, Word, Excel, PowerPoint or OpenDocument file. \
                          An image is shown to the user and, if you can see images, to you. \
                          Long files come in pages of lines; the first line of the \
                          result says which lines it holds and where to read on. Use list_files first when you do not know \
                          the path. A document that search_docs found is read by the path that it showed. Hidden files, baton.toml \
                          and the agent folders are protected and refused."
                .to_owned(),
            parameters: object(
                json!({
                    "path": {"type": "string", "minLength": 1, "description": "Path of the file, relative to the work folder, such as notes/plan.md"},
                    "offset": {"type": "integer", "minimum": 1, "description": "The first line to read; lines count from 1. Default 1"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LINES, "description": "How many lines to read. Default 400"},
                }),
                &["path"],
            ),
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: HumanDuration::from_secs(60),
        };
        let reader = DocumentReader::default();
        Self { spec, protected: Vec::new(), docs: DocFolders::default(), skills: None, reader }
    }
}

impl ReadFile {
    /// Leaves what is at or below the protected paths alone, beside hidden files and `baton.toml`. Reads shared documents and the
    /// files of shared skills as well.
    pub fn new(protected: Vec<PathBuf>, docs: DocFolders, skills: PathBuf, reader: DocumentReader) -> Self {
        Self { protected, docs, skills: Some(skills), reader, ..Self::default() }
    }
}

impl ReadFile {
    /// The folders that all may read, with their names for models: that which `search_docs` shows, and the usual one of skills.
    fn shared(&self, tenant: &TenantId) -> Vec<(String, PathBuf)> {
        let name = |dir: &PathBuf| Some((dir.file_name()?.to_str()?.to_owned(), dir.clone()));
        let skills = self.skills.iter().map(|dir| (SKILLS_DIR.to_owned(), dir.clone()));
        self.docs.of(tenant).iter().filter_map(name).chain(skills).collect()
    }
}

impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_untrusted(&self) -> bool {
        true
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let protected = self.protected.clone();
        let shared = self.shared(&context.tenant);
        let reader = self.reader.clone();
        Box::pin(async move {
            let wanted: ReadFileArguments = arguments(input)?;
            offload(move |abandoned| {
                let file = WorkDir::of(&context, &protected)?.file(&wanted.path);
                let file = match file {
                    Err(error @ (PathError::Missing(_) | PathError::Protected(_))) => {
                        document(&shared, &protected, &wanted.path).ok_or(error)
                    }
                    file => file,
                };
                let file = file?;
                if documents::is_document(&file) {
                    return read_document(file, &wanted, &reader, abandoned).map(ToolOutput::from);
                }
                match image(&file, &wanted.path)? {
                    Some(output) => Ok(output),
                    None => read(&file, &wanted).map(ToolOutput::from),
                }
            })
            .await
        })
    }
}

/// A shared file by the path that a model knows: that of the folder, and its path below.
fn document(shared: &[(String, PathBuf)], protected: &[PathBuf], path: &str) -> Option<File> {
    shared.iter().find_map(|(name, dir)| {
        let below = path.strip_prefix(name)?.strip_prefix('/')?;
        WorkDir::open(dir, protected).and_then(|dir| dir.file(below)).ok()
    })
}

/// The file itself, if it is an image.
fn image(file: &File, path: &str) -> Result<Option<ToolOutput>, ToolError> {
    let failed = |error: std::io::Error| ToolError::Execution(format!("`{path}`: {error}"));
    let mut bytes = Vec::new();
    let mut reader = file;
    reader.take(HEAD_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    reader.rewind().map_err(failed)?;
    if !sniff(&bytes).is_some_and(|kind| kind.starts_with("image/")) {
        return Ok(None);
    }
    bytes.clear();
    reader.take(MAX_IMAGE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_IMAGE_BYTES {
        return Err(ToolError::Limit(format!("`{path}` is an image of more than {MAX_IMAGE_BYTES} bytes")));
    }
    Ok(Some(ToolOutput::from(format!("{path} is an image.")).with_file(ProducedFile::new(bytes).named(path))))
}

/// The text of a document in pages of lines.
fn read_document(
    file: File,
    wanted: &ReadFileArguments,
    reader: &DocumentReader,
    abandoned: &Abandoned,
) -> Result<String, ToolError> {
    let path = &wanted.path;
    let text = reader.read(file, abandoned).map_err(|error| match error {
        DocumentError::Unknown => ToolError::Execution(format!("`{path}` is not a text file")),
        DocumentError::Cancelled => ToolError::Cancelled,
        DocumentError::TooLarge | DocumentError::Limits => ToolError::Limit(format!("`{path}`: {error}")),
        _ => ToolError::Execution(format!("`{path}`: {error}")),
    })?;
    let mut page = LinePage::new(wanted);
    text.lines().for_each(|line| page.take(line));
    Ok(page.finish(path))
}

fn read(file: &File, wanted: &ReadFileArguments) -> Result<String, ToolError> {
    let failed = |error: std::io::Error| ToolError::Execution(format!("`{}`: {error}", wanted.path));
    let size = file.metadata().map_err(failed)?.len();
    if size > MAX_FILE_BYTES {
        return Err(ToolError::Limit(format!(
            "`{}` has {size} bytes; files up to {MAX_FILE_BYTES} bytes are read",
            wanted.path
        )));
    }
    let mut page = LinePage::new(wanted);
    // The file may grow while it is read.
    let mut reader = BufReader::new(file.take(MAX_FILE_BYTES));
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(failed)? > 0 {
        if line.contains(&0) {
            return Err(ToolError::Execution(format!("`{}` is not a text file", wanted.path)));
        }
        page.take(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(page.finish(&wanted.path))
}

/// The wanted lines, and how many there are in all.
struct LinePage {
    first: usize,
    last: usize,
    total: usize,
    text: String,
    /// The last line that found room.
    shown: usize,
}

impl LinePage {
    fn new(wanted: &ReadFileArguments) -> Self {
        let first = wanted.offset.unwrap_or(1).max(1);
        let lines = wanted.limit.unwrap_or(DEFAULT_LINES).clamp(1, MAX_LINES);
        Self { first, last: first.saturating_add(lines - 1), total: 0, text: String::new(), shown: 0 }
    }

    fn take(&mut self, line: &str) {
        self.total += 1;
        let is_wanted = (self.first..=self.last).contains(&self.total);
        let is_next = self.shown == 0 || self.shown + 1 == self.total;
        if !is_wanted || !is_next || self.text.len() > MAX_PAGE_BYTES {
            return;
        }
        self.shown = self.total;
        let line = line.trim_end_matches(['\n', '\r']);
        match line.char_indices().nth(MAX_LINE_CHARS) {
            None => self.text += line,
            Some((cut, _)) => {
                let more = line[cut..].chars().count();
                self.text += &format!("{} … ({more} more characters in this line)", &line[..cut]);
            }
        }
        self.text.push('\n');
    }

    fn finish(self, path: &str) -> String {
        let Self { first, total, shown, text, .. } = self;
        match (total, shown) {
            (0, _) => format!("{path} is empty."),
            (_, 0) => format!("{path} has {total} lines; there is no line {first}."),
            _ if shown < total => {
                format!(
                    "{path}, lines {first} to {shown} of {total}; read on with offset {}\n\n{text}",
                    shown + 1
                )
            }
            _ => format!("{path}, lines {first} to {shown} of {total}\n\n{text}"),
        }
    }
}
