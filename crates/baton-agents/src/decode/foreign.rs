//! Words of Claude Code, Copilot and VS Code, Gemini CLI, opencode and Cursor, in Baton's terms.

use baton_core::agent::{ApprovalRules, ToolPattern};
use baton_core::duration::HumanDuration;

use super::AgentDecoder;
use super::section::FrontmatterMap;
use super::settings::ForeignLimits;
use crate::known::KnownNames;
use crate::names::shortened;
use crate::problem::{Diagnostic, Rule, Severity};
use crate::yaml::{YamlEntry, YamlNode, YamlValue};

/// What other tools' keys say, for the parts of an agent they belong to.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    pub(super) limits: ForeignLimits,
    pub(super) approvals: ApprovalRules,
    pub(super) read_only: bool,
    /// Only people may start it, never another agent.
    pub(super) people_only: bool,
    /// Only other agents use it.
    pub(super) hidden: bool,
}

impl<'a> AgentDecoder<'a> {
    pub(super) fn foreign(&mut self, head: &FrontmatterMap<'a>) -> Foreign {
        let mut flag = |key: &str| head.get(key).and_then(|node| self.flag(node));
        let mut foreign = Foreign {
            read_only: flag("readonly") == Some(true),
            people_only: flag("disable_model_invocation") == Some(true) || flag("infer") == Some(false),
            hidden: flag("hidden") == Some(true) || flag("user_invocable") == Some(false),
            ..Foreign::default()
        };
        foreign.limits.max_turns = head.get("max_turns").and_then(|node| self.count(node, 1..=u32::MAX));
        let minutes: Option<u32> = head.get("timeout_mins").and_then(|node| self.count(node, 1..=100_000));
        foreign.limits.timeout = minutes.map(|minutes| HumanDuration::from_mins(minutes.into()));
        if let Some(node) = head.get("disable").filter(|node| self.flag(node) == Some(true)) {
            let message = "`disable: true` of opencode has no effect: Baton loads every agent of its folders";
            let problem = Diagnostic::new(
                Rule::UnusedKey,
                self.document.locate(node.span),
                message,
                "move the file elsewhere",
            );
            self.problems.push(problem.with_severity(Severity::Warning));
        }
        if let Some(node) = head.get("mode") {
            foreign.people_only |= node.scalar().is_some_and(|mode| mode.text == "primary");
        }
        if let Some(node) = head.get("permission_mode") {
            self.permission_mode(node, &mut foreign);
        }
        if let Some(node) = head.get("permission") {
            self.permission_map(node, &mut foreign.approvals);
        }
        foreign
    }

    /// Claude Code's `plan` only reads. Its other modes describe its own prompts.
    fn permission_mode(&mut self, node: &YamlNode, foreign: &mut Foreign) {
        match node.scalar().map(|scalar| scalar.text.as_str()) {
            Some("plan") => foreign.read_only = true,
            _ => self.report(
                Rule::UnusedKey,
                node.span,
                "this permission mode of Claude Code has no effect in Baton",
                "use `approvals:` to say which tools wait for a person",
            ),
        }
    }

    /// opencode's `permission: {edit: ask, bash: {"git *": allow, "*": deny}}`, or one answer for all tools. Patterns
    /// inside a tool are finer than Baton's: such a tool is denied if every pattern is, and asks otherwise.
    fn permission_map(&mut self, node: &'a YamlNode, approvals: &mut ApprovalRules) {
        match &node.value {
            YamlValue::Scalar(_) => {
                let all = ToolPattern::parse("*").expect("a glob");
                self.answer(all, node, approvals);
            }
            YamlValue::Map(entries) => {
                for entry in entries {
                    if let Some(pattern) = self.permitted(entry) {
                        self.answer(pattern, &entry.value, approvals);
                    }
                }
            }
            YamlValue::List(_) => self.wrong_type(node, "a map of tools to `allow`, `ask` or `deny`"),
        }
    }

    /// The tools that an entry of `permission` is about. Some of its words are about other things.
    fn permitted(&mut self, entry: &YamlEntry) -> Option<ToolPattern> {
        let name = match tool(&entry.key, self.known) {
            ForeignTool::Same(name) => Some(name),
            ForeignTool::Native => Some(entry.key.clone()),
            ForeignTool::Unused => None,
        };
        let pattern = name.and_then(|name| ToolPattern::parse(&name).ok()).filter(|pattern| {
            !pattern.is_exact()
                || pattern.mcp_server().is_some()
                || self.known.tools.contains(pattern.as_str())
        });
        if pattern.is_none() {
            let message = format!("the permission `{}` has no counterpart in Baton", shortened(&entry.key));
            self.report(Rule::UnusedKey, entry.key_span, message, "nothing to do");
        }
        pattern
    }

    fn answer(&mut self, pattern: ToolPattern, node: &YamlNode, approvals: &mut ApprovalRules) {
        let answer = match &node.value {
            YamlValue::Scalar(scalar) => scalar.text.as_str(),
            YamlValue::Map(patterns) => {
                let denied = |node: &YamlNode| node.scalar().is_some_and(|answer| answer.text == "deny");
                if patterns.iter().all(|pattern| denied(&pattern.value)) { "deny" } else { "ask" }
            }
            YamlValue::List(_) => "",
        };
        match answer {
            "allow" => approvals.auto.push(pattern),
            "ask" => approvals.ask.push(pattern),
            "deny" => approvals.deny.push(pattern),
            _ => self.wrong_type(node, "`allow`, `ask` or `deny`"),
        }
    }
}

/// What a tool name of another program is here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ForeignTool {
    /// Not foreign at all.
    Native,
    Same(String),
    Unused,
}

/// Lower-case names of others' built-in tools, and ours for the same thing.
const TOOLS: &[(&str, Option<&str>)] = &[
    ("agent", None),
    ("askuserquestion", Some("ask_user")),
    ("bash", Some("shell")),
    ("codebase", None),
    ("edit", Some("write_file")),
    ("edit_file", Some("write_file")),
    ("editfiles", Some("write_file")),
    ("execute", Some("shell")),
    ("exitplanmode", None),
    ("fetch", Some("web_fetch")),
    ("glob", Some("list_files")),
    ("google_web_search", Some("web_search")),
    ("grep", None),
    ("grep_search", None),
    ("list", Some("list_files")),
    ("list_directory", Some("list_files")),
    ("ls", Some("list_files")),
    ("lsp", None),
    ("multiedit", Some("write_file")),
    ("notebookedit", None),
    ("patch", Some("write_file")),
    ("problems", None),
    ("read", Some("read_file")),
    ("read_many_files", Some("read_file")),
    ("replace", Some("write_file")),
    ("run_shell_command", Some("shell")),
    ("runcommands", Some("shell")),
    ("save_memory", None),
    ("search", None),
    ("search_file_content", None),
    ("skill", None),
    ("task", None),
    ("todo", None),
    ("todoread", None),
    ("todowrite", None),
    ("usages", None),
    ("vscode", None),
    ("web", Some("web_fetch")),
    ("webfetch", Some("web_fetch")),
    ("websearch", Some("web_search")),
    ("write", Some("write_file")),
    ("write_todos", None),
];

pub(crate) fn tool(text: &str, known: &KnownNames) -> ForeignTool {
    if known.tools.contains(text) || text.starts_with("mcp:") {
        return ForeignTool::Native;
    }
    if let Some(mcp) = mcp_tool(text, known) {
        return ForeignTool::Same(mcp);
    }
    // Claude Code limits a tool by arguments, `Bash(git:*)`; Baton's approvals do that job.
    let bare = text.split_once('(').map_or(text, |(bare, _)| bare).to_lowercase();
    // Copilot groups its own tools: `search/codebase`, `read/readFile`.
    let group = bare.split_once('/').map_or(bare.as_str(), |(group, _)| group);
    match TOOLS.iter().find(|(name, _)| *name == bare || *name == group) {
        Some((_, Some(same))) => ForeignTool::Same((*same).to_owned()),
        Some((_, None)) => ForeignTool::Unused,
        None => match bare.split_once('/') {
            Some((server, tool)) if !server.is_empty() && !tool.is_empty() => {
                ForeignTool::Same(format!("mcp:{}", text.trim()))
            }
            _ => ForeignTool::Native,
        },
    }
}

/// `mcp__server__tool` of Claude Code and `mcp_server_tool` of Gemini CLI.
fn mcp_tool(text: &str, known: &KnownNames) -> Option<String> {
    if let Some(rest) = text.strip_prefix("mcp__") {
        let (server, tool) = rest.split_once("__").unwrap_or((rest, "*"));
        return Some(format!("mcp:{server}/{tool}"));
    }
    let rest = text.strip_prefix("mcp_")?;
    if rest == "*" {
        return Some("mcp:*/*".to_owned());
    }
    // The server's own name may hold underscores; a configured one is recognised whole.
    let configured = known
        .mcp_servers
        .iter()
        .filter_map(|server| Some((server.as_str(), rest.strip_prefix(server.as_str())?.strip_prefix('_')?)));
    let (server, tool) =
        configured.max_by_key(|(server, _)| server.len()).or_else(|| rest.split_once('_'))?;
    Some(format!("mcp:{server}/{tool}"))
}

/// `Agent(researcher, writer)` and `Task(…)` of Claude Code name agents that may be called.
pub(super) fn agents_in(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("Agent(").or_else(|| text.strip_prefix("Task("))?;
    inner.strip_suffix(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_tools() {
        let known = KnownNames { mcp_servers: ["my_srv".to_owned()].into(), ..KnownNames::default() };
        let same = |text: &str| match tool(text, &known) {
            ForeignTool::Same(name) => name,
            ForeignTool::Native => "native".into(),
            ForeignTool::Unused => "unused".into(),
        };
        for (theirs, ours) in [
            ("Read", "read_file"),
            ("Bash(git:*)", "shell"),
            ("webfetch", "web_fetch"),
            ("Grep", "unused"),
            ("search/codebase", "unused"),
            ("github/create_issue", "mcp:github/create_issue"),
            ("mcp__github__*", "mcp:github/*"),
            ("mcp__github", "mcp:github/*"),
            ("mcp_my_srv_do_it", "mcp:my_srv/do_it"),
            ("mcp_other_do_it", "mcp:other/do_it"),
            ("mcp_*", "mcp:*/*"),
            ("search_docs", "native"),
            ("whatever", "native"),
        ] {
            assert_eq!(same(theirs), ours, "{theirs}");
        }
        assert_eq!(agents_in("Agent(a, b)"), Some("a, b"));
        assert!(TOOLS.is_sorted());
    }
}
