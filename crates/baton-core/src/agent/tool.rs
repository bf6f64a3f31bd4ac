//! Which tools an agent has, and which calls require approval.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Tools that come with Baton and that `tools:` may name. Tools of patterns (`call_agent`, `transfer_to_…`) are added by the
/// engine and are not listed.
pub const BUILT_IN_TOOLS: &[&str] = &[
    "ask_user",
    "diff_agent",
    "list_files",
    "python",
    "read_file",
    "read_output",
    "save_agent",
    "save_skill",
    "search_docs",
    "semantic_search",
    "shell",
    "validate_agent",
    "validate_skill",
    "web_fetch",
    "web_search",
    "wiki",
    "write_agent",
    "write_file",
    "write_skill",
];

/// Other names of built-in tools, which lists of tools may use in place of their own.
pub const TOOL_ALIASES: &[(&str, &str)] = &[("file_read", "read_file"), ("file_write", "write_file")];

/// The built-in tool that `name` is another name of, or `name` itself.
fn tool_by_alias(name: &str) -> &str {
    TOOL_ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own)
}

/// Engine tools that an agent has only if `tools:` names them.
pub const ENGINE_TOOLS: &[&str] = &["read_thread", "try_agent"];

/// A tool name in which `*` matches any sequence of characters: `search_docs`, `mcp:github/*`. Another name of a tool becomes its
/// own when it is parsed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolPattern(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidToolPattern {
    #[error(
        "`{0}` is not a tool name or glob: only letters, digits, `_`, `-`, `.` and the wildcard `*` are allowed"
    )]
    Character(String),
    #[error("`{0}` is not an MCP tool: write `mcp:<server>/<tool>`, for all its tools `mcp:<server>/*`")]
    Mcp(String),
}

impl ToolPattern {
    pub fn parse(text: &str) -> Result<Self, InvalidToolPattern> {
        let is_word = |s: &str| {
            !s.is_empty()
                && s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'*'))
        };
        match text.strip_prefix("mcp:") {
            Some(rest) => match rest.split_once('/') {
                Some((server, tool)) if is_word(server) && is_word(tool) => Ok(Self(text.to_owned())),
                _ => Err(InvalidToolPattern::Mcp(text.to_owned())),
            },
            None if is_word(text) => Ok(Self(tool_by_alias(text).to_owned())),
            None => Err(InvalidToolPattern::Character(text.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The server part of `mcp:<server>/<tool>`.
    pub fn mcp_server(&self) -> Option<&str> {
        self.0.strip_prefix("mcp:").and_then(|rest| rest.split_once('/')).map(|(server, _)| server)
    }

    pub fn is_exact(&self) -> bool {
        !self.0.contains('*')
    }

    /// Greedy matching with one backtrack point. The cost is at most the product of both lengths, never exponential.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut p, mut n) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while n < name.len() {
            if p < pattern.len() && pattern[p] == b'*' {
                star = Some((p, n));
                p += 1;
            } else if p < pattern.len() && pattern[p] == name[n] {
                p += 1;
                n += 1;
            } else if let Some((star_p, star_n)) = star {
                star = Some((star_p, star_n + 1));
                p = star_p + 1;
                n = star_n + 1;
            } else {
                return false;
            }
        }
        pattern[p..].iter().all(|b| *b == b'*')
    }
}

impl TryFrom<String> for ToolPattern {
    type Error = InvalidToolPattern;
    fn try_from(text: String) -> Result<Self, InvalidToolPattern> {
        Self::parse(&text)
    }
}

impl From<ToolPattern> for String {
    fn from(pattern: ToolPattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The tools an agent may use. Nothing is inherited from a caller, and `deny` takes precedence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ToolAccess {
    pub allow: Vec<ToolPattern>,
    pub deny: Vec<ToolPattern>,
    /// Only tools without side effects.
    pub read_only: bool,
}

impl ToolAccess {
    pub fn permits(&self, name: &str) -> bool {
        let any = |patterns: &[ToolPattern]| patterns.iter().any(|pattern| pattern.matches(name));
        any(&self.allow) && !any(&self.deny)
    }

    /// Whether the list contains this exact name, as opposed to a glob that matches it.
    pub fn names(&self, name: &str) -> bool {
        self.allow.iter().any(|pattern| pattern.as_str() == name) && self.permits(name)
    }
}

/// Overrides of the server's approval policy, by tool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ApprovalRules {
    pub ask: Vec<ToolPattern>,
    pub deny: Vec<ToolPattern>,
    pub auto: Vec<ToolPattern>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> ToolPattern {
        ToolPattern::parse(text).unwrap()
    }

    #[test]
    fn globs_match_whole_names() {
        for (glob, name, expected) in [
            ("search_docs", "search_docs", true),
            ("search_docs", "search_docs2", false),
            ("*", "anything", true),
            ("write_*", "write_file", true),
            ("*_file", "write_file", true),
            ("*_file", "write_files", false),
            ("mcp:github/*", "mcp:github/create_issue", true),
            ("mcp:github/*", "mcp:gitlab/create_issue", false),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXb", false),
        ] {
            assert_eq!(pattern(glob).matches(name), expected, "{glob} {name}");
        }
    }

    #[test]
    fn bad_globs_are_refused() {
        for bad in ["", "a b", "a[bc]", "a{b,c}", "mcp:github", "mcp:/x", "mcp:a/", "x?"] {
            assert!(ToolPattern::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_denial_wins() {
        let access = ToolAccess { allow: vec![pattern("*")], deny: vec![pattern("sh*")], read_only: false };
        assert!(access.permits("read_file"));
        assert!(!access.permits("shell"));
        assert!(!ToolAccess::default().permits("read_file"));
    }

    #[test]
    fn built_in_names_are_sorted_and_valid() {
        assert!(BUILT_IN_TOOLS.is_sorted());
        for (alias, own) in TOOL_ALIASES {
            assert!(!BUILT_IN_TOOLS.contains(alias) && BUILT_IN_TOOLS.contains(own), "{alias}");
            assert_eq!(pattern(alias).as_str(), *own, "K3");
        }
        assert!(BUILT_IN_TOOLS.iter().all(|name| ToolPattern::parse(name).is_ok_and(|p| p.is_exact())));
    }
}
