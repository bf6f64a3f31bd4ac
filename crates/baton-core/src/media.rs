//! Files that tools, models and remote agents produce: their types, and how messages refer to them once they are stored.

mod sniff;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::message::{Image, ImageSource, Part};

pub use sniff::{media_type, sniff};

/// The path of artifacts on a server, up to the id.
pub const ARTIFACTS_PATH: &str = "/api/v1/artifacts/";
/// The type of a file about which nothing is known.
pub const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Bytes of a name, as most file systems allow.
const MAX_NAME_BYTES: usize = 255;
const MAX_MEDIA_TYPE_BYTES: usize = 255;

/// The address of an artifact, relative to the server.
pub fn artifact_uri(artifact: Uuid) -> String {
    format!("{ARTIFACTS_PATH}{artifact}")
}

/// The artifact that an address names. An address has one spelling.
pub fn artifact_in(uri: &str) -> Option<Uuid> {
    let text = uri.strip_prefix(ARTIFACTS_PATH)?;
    Uuid::try_parse(text).ok().filter(|id| id.hyphenated().to_string() == text.to_ascii_lowercase())
}

/// Maximum bytes of one file that a run keeps.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum files of one run.
pub const MAX_RUN_FILES: usize = 64;
/// Maximum bytes of all files of one run.
pub const MAX_RUN_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// A file that was produced and is not stored yet. Clones share its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct ProducedFile {
    /// As its producer calls it. `None` if it has no name.
    pub name: Option<String>,
    /// As its producer claims. [`media_type`] verifies it.
    pub media_type: Option<String>,
    pub bytes: Arc<[u8]>,
    /// Whether it becomes a part of the answer. Others are for the model only.
    pub is_for_user: bool,
}

impl ProducedFile {
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { name: None, media_type: None, bytes: bytes.into(), is_for_user: true }
    }

    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    #[must_use]
    pub fn claimed(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }
}

/// Omits the bytes, which may be megabytes.
impl fmt::Debug for ProducedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, media_type, bytes, .. } = self;
        let mut shown = f.debug_struct("ProducedFile");
        shown.field("name", name).field("media_type", media_type).field("size", &bytes.len());
        shown.finish_non_exhaustive()
    }
}

/// A stored file, as steps, events and tool results refer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    pub artifact_id: Uuid,
    pub name: String,
    pub media_type: String,
    /// In bytes.
    pub size: u64,
    /// Whether it becomes a part of the answer.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub is_for_user: bool,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_yes(flag: &bool) -> bool {
    *flag
}

impl FileRef {
    pub fn uri(&self) -> String {
        artifact_uri(self.artifact_id)
    }

    /// Whether browsers and models show it as a picture. SVG is not: it may contain scripts.
    pub fn is_picture(&self) -> bool {
        is_picture(&self.media_type)
    }

    /// The part of a message that refers to the file.
    pub fn to_part(&self) -> Part {
        let (name, uri, media_type) = (self.name.clone(), self.uri(), self.media_type.clone());
        if self.is_picture() {
            let source = ImageSource::Uri(uri);
            return Part::Image(Image { source, media_type, name: Some(name) });
        }
        Part::File { name, uri, media_type: Some(media_type) }
    }

    /// The line that stands for the file in a text.
    pub fn describe(&self) -> String {
        let Self { name, media_type, size, .. } = self;
        let kind = if self.is_picture() { "image" } else { "file" };
        format!("[{kind} {name}: {media_type}, {size} bytes]")
    }
}

/// Whether a type is a picture without scripts, which pages show and models read.
pub fn is_picture(media_type: &str) -> bool {
    matches!(media_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "image/bmp" | "image/avif")
}

/// The name of a file without folders, control characters and marks that change the direction of text, at most 255 bytes. A long
/// name keeps its end, which tells what the file is.
pub fn clean_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let seen: String = last.chars().filter(|c| !c.is_control() && !is_invisible(*c)).collect();
    let seen = seen.trim().trim_start_matches('.');
    let begin = seen.len().saturating_sub(MAX_NAME_BYTES);
    let begin = (begin..=seen.len()).find(|at| seen.is_char_boundary(*at)).unwrap_or(seen.len());
    match seen[begin..].trim() {
        "" => "file".to_owned(),
        name => name.to_owned(),
    }
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Whether a text has the form `type/subtype`, with parameters or without.
pub fn is_media_type(text: &str) -> bool {
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_token = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    let has_both = essence.trim_end().split_once('/').is_some_and(|(a, b)| is_token(a) && is_token(b));
    let is_written = parameters.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    has_both && is_written && text.len() <= MAX_MEDIA_TYPE_BYTES
}

/// The usual extension of files of a type.
pub fn extension(media_type: &str) -> &'static str {
    match media_type.split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/bmp" => "bmp",
        "image/avif" => "avif",
        "image/svg+xml" => "svg",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "application/zip" => "zip",
        "audio/wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "audio/flac" => "flac",
        "video/mp4" => "mp4",
        "video/webm" => "webm",
        "text/plain" => "txt",
        "text/html" => "html",
        "text/csv" => "csv",
        "text/markdown" => "md",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nobody_astray() {
        for (given, name) in [
            ("report.pdf", "report.pdf"),
            ("Übersicht 2026.xlsx", "Übersicht 2026.xlsx"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\ada\\notes.txt", "notes.txt"),
            ("a\r\nSet-Cookie: x.txt", "aSet-Cookie: x.txt"),
            ("cod\u{202e}fdp.exe", "codfdp.exe"),
            (".bashrc", "bashrc"),
            ("..", "file"),
            ("", "file"),
            ("dir/", "file"),
            (" \t ", "file"),
        ] {
            assert_eq!(clean_name(given), name, "{given:?}");
        }
        let long = clean_name(&format!("{}.pdf", "ä".repeat(300)));
        assert!(long.len() <= MAX_NAME_BYTES && long.ends_with("ä.pdf"), "{long}");
    }

    #[test]
    fn media_types_have_a_shape() {
        for good in ["text/plain", "image/svg+xml", "text/plain; charset=utf-8", "application/vnd.ms-excel"] {
            assert!(is_media_type(good), "{good}");
        }
        let long = format!("text/{}", "x".repeat(300));
        for bad in ["", "text", "text/", "/plain", "text/pl ain", "text/plain;\r\nx: y", "a/b/c", &long] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }

    #[test]
    fn addresses_have_one_spelling() {
        let id = Uuid::new_v4();
        assert_eq!(artifact_in(&artifact_uri(id)), Some(id));
        let (place, plain) = (ARTIFACTS_PATH, id.simple().to_string());
        for bad in
            [format!("{place}{plain}"), format!("{place}{{{id}}}"), format!("{place}{id}/x"), id.to_string()]
        {
            assert_eq!(artifact_in(&bad), None, "{bad}");
        }
    }

    /// D8: a picture is an image with its address, everything else is a file with its download address.
    #[test]
    fn d8_stored_files_become_parts() {
        let file = |media_type: &str| FileRef {
            artifact_id: Uuid::nil(),
            name: "a".to_owned(),
            media_type: media_type.to_owned(),
            size: 3,
            is_for_user: true,
        };
        let uri = artifact_uri(Uuid::nil());
        let image = serde_json::to_value(file("image/png").to_part()).unwrap();
        let expected =
            serde_json::json!({ "type": "image", "uri": uri, "media_type": "image/png", "name": "a" });
        assert_eq!(image, expected);
        for other in ["image/svg+xml", "application/pdf", "text/html"] {
            let part = serde_json::to_value(file(other).to_part()).unwrap();
            let expected =
                serde_json::json!({ "type": "file", "name": "a", "uri": uri, "media_type": other });
            assert_eq!(part, expected);
        }
        assert_eq!(file("image/png").describe(), "[image a: image/png, 3 bytes]");
        assert_eq!(file("text/html").describe(), "[file a: text/html, 3 bytes]");
    }
}
