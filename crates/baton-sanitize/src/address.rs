//! Passwords in addresses: `postgres://user:password@host`.

use super::{Found, is_marked, plain, run};

pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    let mut at = 0;
    while let Some(start) = text[at..].find("://") {
        let start = at + start + 3;
        let end = run(text.as_bytes(), start, is_authority);
        if let Some(password) = password(&text[start..end]) {
            found.push(Found::secret(start + password.start..start + password.end));
        }
        at = end;
    }
}

fn is_authority(byte: u8) -> bool {
    !byte.is_ascii_whitespace()
        && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\')
}

/// A password that should have been escaped may hold an `@` itself.
fn password(authority: &str) -> Option<std::ops::Range<usize>> {
    let end = authority.rfind('@')?;
    let start = authority[..end].find(':')? + 1;
    let password = &authority[start..end];
    let is_kept = password.is_empty() || is_marked(password) || plain::is_reference(password);
    (!is_kept).then_some(start..end)
}
