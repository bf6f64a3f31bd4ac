//! Which program a file was written for. A file of another program is used as far as Baton understands it: its body is plain text,
//! and what has no counterpart here is a note instead of an error.

use std::path::Path;

use baton_core::choice::snake_case;

use crate::frontmatter::AgentDocument;
use crate::keys::{self, AgentKey};
use crate::known::KnownNames;
use crate::source::SourceFile;
use crate::yaml::{YamlNode, YamlValue};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Has a key that only Baton knows.
    Baton,
    /// Has keys, tools, models or a place of another program, and none that only Baton knows.
    Foreign,
    /// Nothing tells: `name` and `description` are keys of every program.
    Common,
}

/// Folders in which other programs keep their agents.
const FOLDERS: &[&str] = &[".claude", ".github", ".opencode", ".cursor", ".gemini", ".codex", "chatmodes"];
/// Endings of file names that other programs use.
const ENDINGS: &[&str] = &[".agent.md", ".chatmode.md", ".prompt.md", ".instructions.md"];
/// Models as other programs name them.
const MODELS: &[&str] = &["sonnet", "opus", "haiku", "inherit", "gpt", "claude", "gemini"];
/// Keys that Baton shares with other programs.
const SHARED: &[&str] = &[
    "agent_card_url",
    "agents",
    "auth",
    "color",
    "description",
    "disallowed_tools",
    "effort",
    "handoffs",
    "icon",
    "kind",
    "max_output_tokens",
    "mcp_servers",
    "model",
    "name",
    "skills",
    "temperature",
    "tools",
    "top_p",
    "version",
];
/// Foreign keys that Baton's own files use as well, as a short form of a key in `limits`, and keys that every program may have.
const UNDECIDED: &[&str] = &["max_turns", "max_steps", "steps", "timeout_mins", "metadata", "hidden"];

/// The format of a file that could be read.
pub fn of(document: &AgentDocument, known: &KnownNames) -> FileFormat {
    let is_own = document.head.iter().any(|entry| entry.key == "baton")
        || document.entries().any(|entry| is_own_key(&entry.key));
    if is_own {
        return FileFormat::Baton;
    }
    let is_foreign = is_foreign_path(&document.source.path)
        || document.entries().any(|entry| {
            let key = snake_case(&entry.key);
            is_foreign_key(&entry.key)
                || (key == "model" && scalars(&entry.value).any(is_foreign_model))
                || (key == "tools" && tool_names(&entry.value).any(|name| is_foreign_tool(name, known)))
                || (key == "name"
                    && scalars(&entry.value).any(|name| name.contains('.') && !name.contains('/')))
        });
    if is_foreign { FileFormat::Foreign } else { FileFormat::Common }
}

/// The format of a file whose head cannot be read, by what its lines look like.
pub fn of_unreadable(source: &SourceFile, known: &KnownNames) -> FileFormat {
    let head = source.text.trim_start_matches('\u{feff}').strip_prefix("---").unwrap_or_default();
    let head = head.split("\n---").next().unwrap_or_default();
    let mut is_foreign = is_foreign_path(&source.path);
    for line in head.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        if is_own_key(key) || key == "baton" {
            return FileFormat::Baton;
        }
        let names = || value.split(|c: char| c == ',' || c.is_whitespace() || "[]'\"".contains(c));
        is_foreign |= is_foreign_key(key)
            || (key == "model" && is_foreign_model(value.trim()))
            || (key == "tools" && names().any(|name| is_foreign_tool(name, known)));
    }
    if is_foreign { FileFormat::Foreign } else { FileFormat::Common }
}

fn is_own_key(key: &str) -> bool {
    let key = snake_case(key);
    matches!(keys::lookup(&key), Some(AgentKey::Own(_) | AgentKey::Renamed { .. }))
        && !SHARED.contains(&&*key)
}

fn is_foreign_key(key: &str) -> bool {
    let key = snake_case(key);
    let is_known = matches!(keys::lookup(&key), Some(AgentKey::Foreign(_) | AgentKey::Unused { .. }));
    is_known && !UNDECIDED.contains(&&*key)
}

fn is_foreign_path(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_in = |folder: &&str| path.iter().any(|part| *part == **folder);
    ENDINGS.iter().any(|ending| name.ends_with(ending)) || FOLDERS.iter().any(is_in)
}

/// A name without a provider that begins as those of other programs do, such as `sonnet` or `GPT-4.1`.
fn is_foreign_model(text: &str) -> bool {
    let lower = text.to_lowercase();
    !text.contains('/') && MODELS.iter().any(|model| lower.starts_with(model))
}

fn is_foreign_tool(text: &str, known: &KnownNames) -> bool {
    use crate::decode::foreign::{ForeignTool, tool};
    text.starts_with("mcp__") || (!text.is_empty() && tool(text, known) != ForeignTool::Native)
}

fn scalars(node: &YamlNode) -> impl Iterator<Item = &str> {
    let items = match &node.value {
        YamlValue::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    items.iter().filter_map(YamlNode::scalar).map(|scalar| scalar.text.as_str())
}

fn tool_names(node: &YamlNode) -> impl Iterator<Item = &str> {
    let keys = match &node.value {
        YamlValue::Map(entries) => entries.as_slice(),
        _ => &[],
    };
    let listed = scalars(node).flat_map(|text| text.split(',')).map(str::trim);
    keys.iter().map(|entry| entry.key.as_str()).chain(listed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontmatter;

    fn format(path: &str, head: &str) -> FileFormat {
        let source = SourceFile::new(path, format!("---\n{head}\n---\nHelp.\n"));
        let known = KnownNames::default();
        match frontmatter::parse(&source, &mut Vec::new()) {
            Some(document) => of(&document, &known),
            None => of_unreadable(&source, &known),
        }
    }

    #[test]
    fn formats_by_keys_values_and_places() {
        for head in [
            "tools: Read, Bash",
            "tools: {write: false}",
            "model: sonnet",
            "model: ['GPT-4.1']",
            "mode: subagent",
            "argument-hint: x",
            "name: speckit.plan",
            "tools: Read, [",
            "model: opus\nx: [1",
        ] {
            assert_eq!(format("a.md", head), FileFormat::Foreign, "{head}");
        }
        for path in ["x.agent.md", "X.chatmode.md", ".claude/agents/x.md", "a/.github/agents/x.md"] {
            assert_eq!(format(path, "description: x"), FileFormat::Foreign, "{path}");
            assert_eq!(format(path, "limits: {}"), FileFormat::Baton, "{path}");
        }
        for head in ["sanitize: false", "tools: Read\nteam: {}", "baton: {}", "handoff: b\nx: ["] {
            assert_eq!(format("a.md", head), FileFormat::Baton, "{head}");
        }
        for head in [
            "name: a",
            "max_turns: 3",
            "tools: search_docs",
            "model: anthropic/claude",
            "x: [",
            "tools: \"*\"",
        ] {
            assert_eq!(format("a.md", head), FileFormat::Common, "{head}");
        }
    }
}
