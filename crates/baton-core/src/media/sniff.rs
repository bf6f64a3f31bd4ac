//! Media types from content. The type that a producer claims counts only where the content cannot contradict it.

use super::{UNKNOWN_TYPE, is_media_type};

/// Bytes that are searched for the beginning of a document.
const HEAD: usize = 1024;

/// Signatures at the start of a file.
const SIGNATURES: [(&[u8], &str); 15] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (b"II*\0", "image/tiff"),
];

/// The type that the first bytes of a file show, if they do.
pub fn sniff(bytes: &[u8]) -> Option<&'static str> {
    let inside = |from: usize| bytes.get(from..from + 4);
    match (inside(0), inside(8)) {
        (Some(b"RIFF"), Some(b"WEBP")) => return Some("image/webp"),
        (Some(b"RIFF"), Some(b"WAVE")) => return Some("audio/wav"),
        _ => {}
    }
    if inside(4) == Some(b"ftyp") {
        return Some(if inside(8) == Some(b"avif") { "image/avif" } else { "video/mp4" });
    }
    let found = SIGNATURES.iter().find(|(signature, _)| bytes.starts_with(signature));
    // Two letters are no proof: a bitmap has its own size behind them.
    found.filter(|(signature, _)| *signature != b"BM" || is_bitmap(bytes)).map(|(_, kind)| *kind)
}

fn is_bitmap(bytes: &[u8]) -> bool {
    let size = bytes.get(2..6).and_then(|size| size.try_into().ok()).map(u32::from_le_bytes);
    size.is_some_and(|size| usize::try_from(size).is_ok_and(|size| size == bytes.len()))
}

/// The type of a file. What its content shows wins over `claimed`: a claim of an image that is none is not believed.
pub fn media_type(claimed: Option<&str>, bytes: &[u8]) -> String {
    let claimed = claimed.map(str::trim).filter(|text| is_media_type(text)).map(str::to_ascii_lowercase);
    let essence =
        claimed.as_deref().map(|text| text.split(';').next().unwrap_or_default().trim()).unwrap_or_default();
    if let Some(found) = sniff(bytes) {
        let is_refined = match found {
            // Office documents, books and programs are archives.
            "application/zip" => essence.starts_with("application/") && essence != UNKNOWN_TYPE,
            "audio/ogg" | "video/mp4" | "video/webm" => {
                essence.starts_with("audio/") || essence.starts_with("video/")
            }
            _ => false,
        };
        return if is_refined { essence.to_owned() } else { found.to_owned() };
    }
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    match (essence, text) {
        ("image/svg+xml", Some(text)) if contains(text, "<svg") => essence.to_owned(),
        // Raw samples have no signature.
        (essence, None) if essence.starts_with("audio/") => claimed.unwrap_or_default(),
        (essence, _) if is_binary(essence) => text.map_or(UNKNOWN_TYPE, plain_or_page).to_owned(),
        ("", Some(text)) => plain_or_page(text).to_owned(),
        ("", None) => UNKNOWN_TYPE.to_owned(),
        (essence, None) if essence.starts_with("text/") => UNKNOWN_TYPE.to_owned(),
        _ => essence.to_owned(),
    }
}

/// Types whose files have a signature.
fn is_binary(essence: &str) -> bool {
    essence == "application/pdf"
        || ["image/", "audio/", "video/"].iter().any(|kind| essence.starts_with(kind))
}

/// A page is not passed off as plain text.
fn plain_or_page(text: &str) -> &'static str {
    let is_page = contains(text, "<html") || contains(text, "<!doctype html");
    match (contains(text, "<svg"), is_page) {
        (_, true) => "text/html",
        (true, false) => "image/svg+xml",
        (false, false) => "text/plain",
    }
}

fn contains(text: &str, tag: &str) -> bool {
    text[..text.floor_char_boundary(HEAD)].to_ascii_lowercase().contains(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    /// D8: the content decides, not the claim of its producer.
    #[test]
    fn d8_media_types_are_not_believed() {
        for (claimed, bytes, expected) in [
            (Some("image/png"), PNG, "image/png"),
            (Some("text/html"), PNG, "image/png"),
            (None, PNG, "image/png"),
            (Some("image/png"), b"<script>alert(1)</script>", "text/plain"),
            (Some("image/png"), b"<!DOCTYPE html><script>alert(1)</script>", "text/html"),
            (Some("image/png"), b"<svg onload='x()'/>", "image/svg+xml"),
            (Some("image/svg+xml"), b"<?xml version='1.0'?><svg/>", "image/svg+xml"),
            (Some("image/png"), b"\0\x01\x02", UNKNOWN_TYPE),
            (Some("application/pdf"), b"%PDF-1.7", "application/pdf"),
            (Some("application/pdf"), b"MZ\x90\0", UNKNOWN_TYPE),
            (Some("audio/L16;rate=24000"), b"\0\x01\x02\xff", "audio/l16;rate=24000"),
            (Some("audio/ogg"), b"OggS\0", "audio/ogg"),
            (
                Some("application/vnd.oasis.opendocument.text"),
                b"PK\x03\x04",
                "application/vnd.oasis.opendocument.text",
            ),
            (Some("text/plain"), b"PK\x03\x04", "application/zip"),
            (Some("text/csv; charset=utf-8"), b"a,b\n", "text/csv"),
            (Some("text/csv"), b"\xff\0", UNKNOWN_TYPE),
            (Some("not a type"), b"words", "text/plain"),
            (Some("image/bmp"), b"BMW is a car", "text/plain"),
            (None, b"\xff\0", UNKNOWN_TYPE),
        ] {
            assert_eq!(media_type(claimed, bytes), expected, "{claimed:?} {bytes:?}");
        }
        assert_eq!(sniff(b"RIFF\x04\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(sniff(b"\0\0\0\x20ftypavif"), Some("image/avif"));
        assert_eq!(sniff(b""), None);
    }
}
