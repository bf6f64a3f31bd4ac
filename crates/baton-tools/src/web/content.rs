//! Bytes from the web as text.

use super::fetch::Page;
use super::html::reduce;

/// How a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
}

/// The page as text, or the type that is not text.
pub fn text(page: &Page) -> Result<String, String> {
    let declared = page.content_type.as_deref().unwrap_or_default();
    let kind = kind(declared, &page.bytes).ok_or_else(|| declared.to_owned())?;
    let text = decode(declared, &page.bytes);
    match kind {
        Kind::Html => Ok(reduce(&text, Some(&page.url))),
        Kind::Text => Ok(text),
    }
}

fn kind(declared: &str, bytes: &[u8]) -> Option<Kind> {
    let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Some(Kind::Html),
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/yaml"
        | "application/toml"
        | "application/x-yaml"
        | "application/x-ndjson" => Some(Kind::Text),
        other if other.starts_with("text/") || other.ends_with("+json") || other.ends_with("+xml") => {
            Some(Kind::Text)
        }
        "" => guessed(bytes),
        _ => None,
    }
}

/// A server that does not say: text has no zero bytes, and pages begin with a tag.
fn guessed(bytes: &[u8]) -> Option<Kind> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]).to_ascii_lowercase();
    let is_page = start.contains("<!doctype html") || start.contains("<html");
    match () {
        () if bytes.contains(&0) => None,
        () if is_page => Some(Kind::Html),
        () => Some(Kind::Text),
    }
}

/// UTF-8, and the one other encoding that old pages still use. In all else, letters beyond ASCII are lost.
fn decode(declared: &str, bytes: &[u8]) -> String {
    let declared = declared.to_ascii_lowercase();
    let is_latin = ["iso-8859-1", "windows-1252", "latin1"].iter().any(|name| declared.contains(name));
    if is_latin {
        bytes.iter().map(|byte| char::from(*byte)).collect()
    } else {
        String::from_utf8_lossy(bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        for (declared, expected) in [
            ("text/html; charset=utf-8", Some(Kind::Html)),
            ("application/ld+json", Some(Kind::Text)),
            ("TEXT/PLAIN", Some(Kind::Text)),
            ("image/png", None),
            ("application/octet-stream", None),
            ("application/pdf", None),
        ] {
            assert_eq!(kind(declared, b"x"), expected, "{declared}");
        }
        assert_eq!(kind("", b"\0\x01"), None);
        assert_eq!(kind("", b"<!DOCTYPE html>"), Some(Kind::Html));
        assert_eq!(kind("", b"plain"), Some(Kind::Text));
        assert_eq!(decode("text/plain; charset=ISO-8859-1", b"caf\xe9"), "café");
    }
}
