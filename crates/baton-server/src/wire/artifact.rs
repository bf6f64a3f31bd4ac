//! Files that people sent or agents made: what they may be called, and where they are.

use baton_core::store::Artifact;
use baton_core::{RunId, ThreadId};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use super::schema::moment;

const PLACE: &str = "/api/v1/artifacts/";
/// In bytes, as most file systems have it.
const LONGEST_NAME: usize = 255;
const LONGEST_MEDIA_TYPE: usize = 255;
/// What is known of a file about which nothing is said.
pub const ANY: &str = "application/octet-stream";

/// A file, without its bytes.
#[derive(Debug, Serialize, ToSchema)]
pub struct ArtifactView {
    pub artifact_id: Uuid,
    #[schema(value_type = Uuid)]
    pub thread_id: ThreadId,
    /// The run that made it; absent for a file that a person sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>, nullable = false)]
    pub run_id: Option<RunId>,
    pub name: String,
    pub media_type: String,
    /// In bytes.
    pub size: u64,
    /// Where it can be downloaded, and how messages refer to it.
    pub uri: String,
    #[schema(schema_with = moment)]
    pub created_at: Timestamp,
}

impl From<Artifact> for ArtifactView {
    fn from(artifact: Artifact) -> Self {
        Self {
            artifact_id: artifact.artifact_id,
            thread_id: artifact.thread_id,
            run_id: artifact.run_id,
            name: artifact.name,
            media_type: artifact.media_type,
            size: artifact.size,
            uri: uri(artifact.artifact_id),
            created_at: artifact.created_at,
        }
    }
}

/// What is taken when a file is sent.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "only described: a form is read piece by piece")]
pub struct ArtifactForm {
    /// The thread it is for, which begins if there is none.
    #[schema(value_type = Uuid)]
    thread_id: String,
    /// With its name and media type.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// The bytes of a file, about which a schema has nothing to say.
#[derive(Debug)]
pub struct Contents;

impl PartialSchema for Contents {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
    }
}

impl ToSchema for Contents {}

pub fn uri(artifact: Uuid) -> String {
    format!("{PLACE}{artifact}")
}

/// Which artifact an address names. It has one spelling.
pub fn id_in(uri: &str) -> Option<Uuid> {
    let text = uri.strip_prefix(PLACE)?;
    Uuid::try_parse(text).ok().filter(|id| id.hyphenated().to_string() == text.to_ascii_lowercase())
}

/// The name of a file without anything misleading: no folders, nothing that is not seen or that turns the direction of
/// what is read, not too long. What is left of the end is the end, because that says what it is.
pub fn clean_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let seen: String = last.chars().filter(|c| !c.is_control() && !is_invisible(*c)).collect();
    let seen = seen.trim().trim_start_matches('.');
    let begin = seen.len().saturating_sub(LONGEST_NAME);
    let begin = (begin..=seen.len()).find(|at| seen.is_char_boundary(*at)).unwrap_or(seen.len());
    match seen[begin..].trim() {
        "" => "file".to_owned(),
        name => name.to_owned(),
    }
}

/// Marks that change how what follows is read, and nothing that is read itself.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Scripts and style sheets, which a page of this server could load as its own. Sent as plain text, no browser runs them.
pub fn is_loaded_by_pages(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.contains("javascript")
        || essence.contains("ecmascript")
        || essence.contains("jscript")
        || essence == "text/css"
}

/// `type/subtype`, with parameters or without. It is not verified, because files are not opened here.
pub fn is_media_type(text: &str) -> bool {
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_token = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    let has_both = essence.trim_end().split_once('/').is_some_and(|(a, b)| is_token(a) && is_token(b));
    let is_written = parameters.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    has_both && is_written && text.len() <= LONGEST_MEDIA_TYPE
}

pub fn is_image(media_type: &str) -> bool {
    is_media_type(media_type) && media_type.to_ascii_lowercase().starts_with("image/")
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
        assert!(long.len() <= LONGEST_NAME && long.ends_with("ä.pdf"), "{long}");
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
        assert!(is_image("Image/PNG") && !is_image("imagine/png") && !is_image("image/"));
    }

    #[test]
    fn addresses_have_one_spelling() {
        let id = Uuid::new_v4();
        assert_eq!(id_in(&uri(id)), Some(id));
        let plain = id.simple().to_string();
        for bad in
            [format!("{PLACE}{plain}"), format!("{PLACE}{{{id}}}"), format!("{PLACE}{id}/x"), id.to_string()]
        {
            assert_eq!(id_in(&bad), None, "{bad}");
        }
    }
}
