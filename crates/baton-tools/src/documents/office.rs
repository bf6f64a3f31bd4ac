//! Word, Excel, PowerPoint and OpenDocument files: ZIP archives with XML inside.

use std::io::{Cursor, Read as _};

use zip::ZipArchive;

mod open_document;
mod sheets;
mod slides;
mod word;

use super::DocumentError;

/// Of all parts of one document that are read, decompressed.
const MAX_XML_BYTES: u64 = 96 * 1024 * 1024;
const MAX_PARTS: usize = 2_000;

/// The parts of an archive, read within one limit for all of them.
pub(super) struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    left: u64,
}

pub(super) fn text(bytes: &[u8]) -> Result<String, DocumentError> {
    let damaged = |error: zip::result::ZipError| DocumentError::Damaged(error.to_string());
    let zip = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
    let mut archive = Archive { zip, left: MAX_XML_BYTES };
    if archive.has("word/document.xml") {
        return word::text(&mut archive);
    }
    if archive.has("xl/workbook.xml") {
        return sheets::text(&mut archive);
    }
    if archive.has("ppt/presentation.xml") {
        return slides::text(&mut archive);
    }
    if archive.has("content.xml") && archive.has("META-INF/manifest.xml") {
        return open_document::text(&mut archive);
    }
    Err(DocumentError::Unknown)
}

impl Archive<'_> {
    fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// A part as text; nothing if it does not exist.
    fn part(&mut self, name: &str) -> Result<String, DocumentError> {
        let damaged = |error: std::io::Error| DocumentError::Damaged(format!("{name}: {error}"));
        let Some(index) = self.zip.index_for_name(name) else { return Ok(String::new()) };
        let entry = self.zip.by_index(index).map_err(|error| match error {
            zip::result::ZipError::UnsupportedArchive(zip::result::ZipError::PASSWORD_REQUIRED) => {
                DocumentError::Encrypted
            }
            error => DocumentError::Damaged(error.to_string()),
        })?;
        let mut bytes = Vec::new();
        // One byte more than allowed shows that there is more.
        entry.take(self.left + 1).read_to_end(&mut bytes).map_err(damaged)?;
        let length = bytes.len() as u64;
        if length > self.left {
            return Err(DocumentError::Limits);
        }
        self.left -= length;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The names of parts between two texts, sorted by the number between them.
    fn numbered(&self, before: &str, after: &str) -> Vec<String> {
        let mut found: Vec<(u32, String)> = self
            .zip
            .file_names_raw()
            .filter_map(|name| {
                let name = std::str::from_utf8(name).ok()?;
                let number = name.strip_prefix(before)?.strip_suffix(after)?;
                let number = if number.is_empty() { 0 } else { number.parse().ok()? };
                Some((number, name.to_owned()))
            })
            .take(MAX_PARTS)
            .collect();
        found.sort();
        found.into_iter().map(|(_, name)| name).collect()
    }
}
