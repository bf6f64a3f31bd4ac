//! Bytes from the web as text.

use encoding_rs::{Encoding, UTF_8};

use super::fetch::FetchedPage;
use super::html::reduce;

/// How a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentKind {
    Html,
    Text,
}

/// The page as text, or the type that is not text.
pub fn text(page: &FetchedPage) -> Result<String, String> {
    let declared = page.content_type.as_deref().unwrap_or_default();
    let kind = kind(declared, &page.bytes).ok_or_else(|| declared.to_owned())?;
    let text = decode(declared, &page.bytes);
    match kind {
        ContentKind::Html => Ok(reduce(&text, Some(&page.url))),
        ContentKind::Text => Ok(text),
    }
}

/// Whether a declared type is read as text. A server that declares none is assumed to send text.
pub fn is_text(declared: &str) -> bool {
    kind(declared, &[]).is_some()
}

fn kind(declared: &str, bytes: &[u8]) -> Option<ContentKind> {
    let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Some(ContentKind::Html),
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/yaml"
        | "application/toml"
        | "application/x-yaml"
        | "application/x-ndjson" => Some(ContentKind::Text),
        other if other.starts_with("text/") || other.ends_with("+json") || other.ends_with("+xml") => {
            Some(ContentKind::Text)
        }
        "" => guessed(bytes),
        _ => None,
    }
}

/// A server that does not say: text has no zero bytes, and pages begin with a tag.
fn guessed(bytes: &[u8]) -> Option<ContentKind> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]).to_ascii_lowercase();
    let is_page = start.contains("<!doctype html") || start.contains("<html");
    match () {
        () if bytes.contains(&0) => None,
        () if is_page => Some(ContentKind::Html),
        () => Some(ContentKind::Text),
    }
}

/// In the declared encoding, or as UTF-8 if none is declared that browsers know. A byte order mark wins over both.
fn decode(declared: &str, bytes: &[u8]) -> String {
    let encoding = charset(declared).and_then(|label| Encoding::for_label(label.as_bytes()));
    encoding.unwrap_or(UTF_8).decode(bytes).0.into_owned()
}

fn charset(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        for (declared, expected) in [
            ("text/html; charset=utf-8", Some(ContentKind::Html)),
            ("application/ld+json", Some(ContentKind::Text)),
            ("TEXT/PLAIN", Some(ContentKind::Text)),
            ("image/png", None),
            ("application/octet-stream", None),
            ("application/pdf", None),
        ] {
            assert_eq!(kind(declared, b"x"), expected, "{declared}");
        }
        assert_eq!(kind("", b"\0\x01"), None);
        assert_eq!(kind("", b"<!DOCTYPE html>"), Some(ContentKind::Html));
        assert_eq!(kind("", b"plain"), Some(ContentKind::Text));
    }

    #[test]
    fn text_is_read_in_its_declared_encoding() {
        assert_eq!(decode("text/plain; charset=ISO-8859-1", b"caf\xe9"), "café");
        assert_eq!(decode("text/html;Charset=\"windows-1252\"", b"\x80 5"), "€ 5");
        assert_eq!(decode("text/html; charset=shift_jis", b"\x83e\x83X\x83g"), "テスト");
        assert_eq!(decode("text/plain", "größe".as_bytes()), "größe");
        assert_eq!(decode("text/plain; charset=unknown", b"\xff"), "\u{fffd}");
    }
}
