//! Which paths are the page's, which are files of it, and which are neither.

/// Longer paths are neither: routes of the page are a word and an id.
const MAX_BYTES: usize = 1024;
const ASSETS: &str = "/assets/";
/// First segments of protocols, also where this server has no such route (yet). Their clients expect a problem, not HTML.
const PROTOCOLS: [&str; 5] = ["api", "v1", "a2a", "agui", "mcp"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PagePath {
    /// Served from the table of files, or not found.
    File,
    /// A route that the page knows itself, such as `/threads/…`.
    Page,
}

impl PagePath {
    /// `None`: neither. `is_api` says whether a first segment is that of a described route.
    pub fn of(path: &str, is_api: impl Fn(&str) -> bool) -> Option<Self> {
        if path == "/" {
            return Some(Self::Page);
        }
        let segments = path.strip_prefix('/').filter(|_| path.len() <= MAX_BYTES)?;
        let segments = segments.strip_suffix('/').unwrap_or(segments);
        let segments: Vec<String> = segments.split('/').map(decoded).collect::<Option<_>>()?;
        let root = segments.first()?.to_ascii_lowercase();
        if PROTOCOLS.contains(&root.as_str()) || is_api(&root) {
            return None;
        }
        let has_extension = segments.last().is_some_and(|last| last.contains('.'));
        Some(if has_extension || is_asset(path) { Self::File } else { Self::Page })
    }
}

pub fn is_asset(path: &str) -> bool {
    path.starts_with(ASSETS)
}

/// A segment without percent-encoding. `None` for what no route of the page has: nothing, a hidden name (so also `.` and `..`), a
/// separator, a control character, or bytes that are no text.
fn decoded(segment: &str) -> Option<String> {
    let bytes = segment.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'%' {
            let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
            let value = digit(at + 1)? * 16 + digit(at + 2)?;
            decoded.push(u8::try_from(value).ok()?);
            at += 3;
        } else {
            decoded.push(byte);
            at += 1;
        }
    }
    let text = String::from_utf8(decoded).ok()?;
    let is_odd = text.is_empty()
        || text.starts_with('.')
        || text.contains(['/', '\\'])
        || text.contains(char::is_control);
    (!is_odd).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Option<PagePath> {
        PagePath::of(path, |root| matches!(root, "docs" | "livez" | "openapi.json"))
    }

    #[test]
    fn client_routes_are_the_page() {
        for path in [
            "/",
            "/threads/8a6e0804",
            "/agents",
            "/health",
            "/skills/a%20b",
            "/Runs",
            "/agents/",
            "/v1x",
            "/apiary",
        ] {
            assert_eq!(of(path), Some(PagePath::Page), "{path}");
        }
    }

    #[test]
    fn paths_with_an_extension_and_assets_are_files() {
        for path in ["/favicon.svg", "/assets/app.js", "/assets/app", "/index.html", "/deep/er.txt"] {
            assert_eq!(of(path), Some(PagePath::File), "{path}");
        }
    }

    #[test]
    fn api_paths_are_never_the_page() {
        for path in [
            "/api",
            "/api/v1/nothing",
            "/API/v1/threads",
            "/%61pi/v1",
            "/v1/chat/completions",
            "/a2a/x",
            "/agui/x",
            "/mcp",
            "/docs/x",
            "/livez",
            "/openapi.json",
            "/.well-known/agent-card.json",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn hostile_paths_are_nothing() {
        let long = format!("/{}", "a".repeat(MAX_BYTES));
        for path in [
            "",
            "*",
            "//",
            "//evil.example",
            "/a//b",
            "/threads//",
            "/..",
            "/assets/../x",
            "/%2e%2e/x",
            "/assets/%2E./x",
            "/%00",
            "/a%0ab",
            "/%2fapi",
            "/a%5cb",
            "/a\\b",
            "/%",
            "/%2",
            "/%zz",
            "/%+1",
            "/%ff",
            "/.git/config",
            &long,
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
