//! `tools`, `disallowed_tools`, `approvals`, `mcp_servers`, `skills`.

use baton_core::AgentName;
use baton_core::agent::{ApprovalRules, McpServer, SkillName, Skills, StdioAccess, ToolAccess, ToolPattern};
use indexmap::IndexMap;

use super::AgentDecoder;
use super::foreign::{Foreign, ForeignTool};
use super::prompt::split_outside_parentheses;
use super::section::FrontmatterMap;
use crate::format::FileFormat;
use crate::graph::EdgeKind;
use crate::names::{nearest, shortened};
use crate::problem::{Diagnostic, Rule, Severity};
use crate::source::Span;
use crate::yaml::{YamlNode, YamlValue};

/// Tools that the file names, and agents that another tool's syntax names among them.
#[derive(Default)]
pub(super) struct NamedTools {
    pub(super) access: ToolAccess,
    pub(super) agents: Vec<AgentName>,
}

/// One name in a tool list, with where it stands.
struct ToolMention<'a> {
    text: &'a str,
    span: Span,
}

impl<'a> AgentDecoder<'a> {
    pub(super) fn tools(&mut self, head: &FrontmatterMap<'a>, foreign: &Foreign) -> NamedTools {
        let mut tools = NamedTools {
            access: ToolAccess { read_only: foreign.read_only, ..ToolAccess::default() },
            ..NamedTools::default()
        };
        if let Some(node) = head.get("tools") {
            let (allowed, denied) = self.mentions(node);
            for mention in &allowed {
                self.allow(mention, &mut tools);
            }
            tools.access.deny.extend(denied.iter().flat_map(|mention| self.patterns(mention)));
        }
        if let Some(node) = head.get("disallowed_tools") {
            let (denied, _) = self.mentions(node);
            tools.access.deny.extend(denied.iter().flat_map(|mention| self.patterns(mention)));
        }
        tools.access.allow.dedup();
        tools
    }

    /// A list, a comma-separated text, or opencode's map of names to true or false.
    fn mentions(&mut self, node: &'a YamlNode) -> (Vec<ToolMention<'a>>, Vec<ToolMention<'a>>) {
        match &node.value {
            YamlValue::Map(entries) => {
                let (mut allowed, mut denied) = (Vec::new(), Vec::new());
                for entry in entries {
                    let mention = ToolMention { text: &entry.key, span: entry.key_span };
                    match self.flag(&entry.value) {
                        Some(true) => allowed.push(mention),
                        Some(false) => denied.push(mention),
                        None => {}
                    }
                }
                (allowed, denied)
            }
            YamlValue::Scalar(scalar) => {
                // Where the text stands in the file as it is, each part has a place of its own.
                let verbatim = self.document.source.text[node.span.range()] == scalar.text;
                (comma_separated(&scalar.text, node.span, verbatim), Vec::new())
            }
            YamlValue::List(items) => {
                let mut allowed = Vec::new();
                for item in items {
                    match item.scalar() {
                        Some(scalar) => {
                            allowed.push(ToolMention { text: scalar.text.trim(), span: item.span });
                        }
                        None => self.wrong_type(item, "the name of a tool"),
                    }
                }
                (allowed, Vec::new())
            }
        }
    }

    fn allow(&mut self, mention: &ToolMention<'_>, tools: &mut NamedTools) {
        if let Some(agents) = super::foreign::agents_in(mention.text) {
            let named = agents.split(',').map(str::trim).filter(|name| !name.is_empty());
            tools
                .agents
                .extend(named.filter_map(|name| self.refer(name, mention.span, EdgeKind::Call, None)));
            return;
        }
        if self.is_unusable(mention.text) {
            self.report(
                Rule::UnusedKey,
                mention.span,
                format!("the tool `{}` of another program cannot be used in Baton", shortened(mention.text)),
                "nothing to do; an MCP server may offer one",
            );
            return;
        }
        for pattern in self.patterns(mention) {
            if self.exists(&pattern, mention.span) {
                tools.access.allow.push(pattern);
            }
        }
    }

    /// Whether a tool of another program has a name that no tool of Baton can have.
    fn is_unusable(&self, text: &str) -> bool {
        let name = match super::foreign::tool(text, self.known) {
            ForeignTool::Native => text.to_owned(),
            ForeignTool::Same(name) => name,
            ForeignTool::Unused => return false,
        };
        self.format == FileFormat::Foreign && ToolPattern::parse(&name).is_err()
    }

    /// What a mention means here: itself, or what another tool's word for it stands for.
    fn patterns(&mut self, mention: &ToolMention<'_>) -> Vec<ToolPattern> {
        let text = match super::foreign::tool(mention.text, self.known) {
            ForeignTool::Native => mention.text.to_owned(),
            ForeignTool::Same(name) => {
                self.no_arguments(mention, &name);
                name
            }
            ForeignTool::Unused => {
                self.report(
                    Rule::UnusedKey,
                    mention.span,
                    format!("the tool `{}` of another program has no counterpart in Baton", mention.text),
                    "nothing to do; an MCP server may offer one",
                );
                return Vec::new();
            }
        };
        match ToolPattern::parse(&text) {
            Ok(pattern) => vec![pattern],
            Err(error) => {
                let help = "write a tool name, `mcp:<server>/<tool>`, or a glob such as `mcp:github/*`";
                self.report(Rule::InvalidGlob, mention.span, error.to_string(), help);
                Vec::new()
            }
        }
    }

    /// `Bash(git:*)` grants less in Claude Code than `shell` does here, which must not go unnoticed.
    fn no_arguments(&mut self, mention: &ToolMention<'_>, name: &str) {
        if mention.text.contains('(') {
            let message =
                format!("Baton does not limit a tool by its arguments: the whole tool `{name}` is granted");
            let help = format!(
                "remove the tool, or let a person decide about each call: `approvals: {{ask: [{name}]}}`"
            );
            let problem = Diagnostic::new(Rule::UnusedKey, self.document.locate(mention.span), message, help);
            self.problems.push(problem.with_severity(Severity::Warning));
        }
    }

    /// Whether the pattern can match something. A server that is not configured yet may be later; a built-in tool is
    /// there or is not.
    fn exists(&mut self, pattern: &ToolPattern, span: Span) -> bool {
        match pattern.mcp_server() {
            Some(server) => {
                if !self.knows_server(server) {
                    self.unknown_server(server, span);
                }
                true
            }
            None if self.known.tools.iter().any(|tool| pattern.matches(tool)) => true,
            None => {
                let help = self.tool_help(pattern.as_str());
                let message = format!("no tool is called `{pattern}`; it is left out");
                self.report_foreign(Rule::UnknownTool, span, message, help);
                false
            }
        }
    }

    /// A server of the configuration or of this very file.
    pub(super) fn knows_server(&self, server: &str) -> bool {
        server.contains('*') || self.known.mcp_servers.contains(server) || self.servers.contains(server)
    }

    pub(super) fn unknown_server(&mut self, server: &str, span: Span) {
        let message = format!("no MCP server is called `{server}`");
        self.report_foreign(Rule::UnknownServer, span, message, Self::server_help(server));
    }

    /// What is a warning in a file of Baton is a note in one of another program.
    fn report_foreign(&mut self, rule: Rule, span: Span, message: String, help: String) {
        let problem = Diagnostic::new(rule, self.document.locate(span), message, help);
        let is_foreign = self.format == FileFormat::Foreign;
        let severity = if is_foreign { Severity::Note } else { problem.severity };
        self.problems.push(problem.with_severity(severity));
    }

    pub(super) fn server_help(server: &str) -> String {
        format!("add it to `.mcp.json`, or as `[mcp.servers.{server}]` to baton.toml")
    }

    pub(super) fn tool_help(&self, text: &str) -> String {
        match nearest(text, self.known.tools.iter().map(String::as_str), |_| 3).first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let all: Vec<&str> = self.known.tools.iter().map(String::as_str).collect();
                format!(
                    "built-in tools are {}; tools of MCP servers are `mcp:<server>/<tool>`",
                    all.join(", ")
                )
            }
        }
    }

    pub(super) fn approvals(&mut self, head: &FrontmatterMap<'a>, foreign: ApprovalRules) -> ApprovalRules {
        let Some(section) = head
            .get("approvals")
            .and_then(|node| self.section(node, "`approvals`", &["ask", "deny", "auto"]))
        else {
            return foreign;
        };
        let mut globs = |key: &str| {
            let (mentions, _) = section.get(key).map(|node| self.mentions(node)).unwrap_or_default();
            mentions.iter().flat_map(|mention| self.patterns(mention)).collect::<Vec<_>>()
        };
        let mut approvals = ApprovalRules { ask: globs("ask"), deny: globs("deny"), auto: globs("auto") };
        approvals.ask.extend(foreign.ask);
        approvals.deny.extend(foreign.deny);
        approvals.auto.extend(foreign.auto);
        approvals
    }

    pub(super) fn skills(&mut self, head: &FrontmatterMap<'a>) -> Skills {
        let Some(node) = head.get("skills") else { return Skills::default() };
        if node.scalar().is_some_and(|scalar| scalar.text == "all") {
            return Skills::All;
        }
        let (mentions, _) = self.mentions(node);
        let mut names = Vec::new();
        for mention in mentions {
            match SkillName::parse(mention.text) {
                Ok(name) => names.push(name),
                Err(error) => self.report(
                    Rule::InvalidName,
                    mention.span,
                    error.to_string(),
                    "write the skill's folder name",
                ),
            }
        }
        Skills::Named(names)
    }

    /// Names of configured servers, or servers described in place.
    pub(super) fn mcp_servers(&mut self, head: &FrontmatterMap<'a>) -> IndexMap<String, McpServer> {
        let mut servers = IndexMap::new();
        let Some(node) = head.get("mcp_servers") else { return servers };
        // Claude Code writes a list whose entries are names or one-entry maps; others write one map.
        for item in Self::items(node) {
            if let YamlValue::Map(entries) = &item.value {
                for entry in entries {
                    let Some(server) = self.mcp_server(&entry.value) else { continue };
                    self.servers.insert(entry.key.clone());
                    servers.insert(entry.key.clone(), server);
                }
            } else if let Some(name) = self.text(item, "the name of an MCP server") {
                if !self.known.mcp_servers.contains(&name) {
                    self.unknown_server(&name, item.span);
                }
                servers.insert(name, McpServer::Configured);
            }
        }
        servers
    }

    fn mcp_server(&mut self, node: &'a YamlNode) -> Option<McpServer> {
        const KEYS: &[&str] = &[
            "type", "command", "args", "env", "url", "http_url", "headers", "tools", "timeout", "trust",
            "cwd",
        ];
        if node.is_null() {
            return Some(McpServer::Configured);
        }
        let section = self.section(node, "an MCP server", KEYS)?;
        for key in ["tools", "timeout", "trust", "cwd"] {
            if let Some(value) = section.get(key) {
                let message = format!("`{key}` of an MCP server has no effect in Baton");
                self.report(
                    Rule::UnusedKey,
                    value.span,
                    message,
                    "list tools under `tools:` as `mcp:<server>/<tool>`",
                );
            }
        }
        let command = section.get("command").and_then(|n| self.text(n, "a command"));
        let url = section.get("url").or(section.get("http_url")).and_then(|n| self.text(n, "a URL"));
        match (command, url) {
            (Some(command), None) => Some(McpServer::Stdio {
                command,
                args: section.get("args").map(|n| self.texts(n)).unwrap_or_default(),
                env: section.get("env").map(|n| self.text_map(n)).unwrap_or_default(),
                access: StdioAccess::default(),
            }),
            (None, Some(url)) => Some(McpServer::Http {
                url,
                headers: section.get("headers").map(|n| self.text_map(n)).unwrap_or_default(),
            }),
            _ => {
                let message = "an MCP server has either `command` or `url`";
                let problem = Diagnostic::new(
                    Rule::MissingKey,
                    self.document.locate(node.span),
                    message,
                    "write one of them",
                );
                self.problems.push(problem.with_severity(Severity::Error));
                None
            }
        }
    }

    fn text_map(&mut self, node: &'a YamlNode) -> IndexMap<String, String> {
        let YamlValue::Map(entries) = &node.value else {
            self.wrong_type(node, "a map of names to texts");
            return IndexMap::new();
        };
        entries
            .iter()
            .filter_map(|entry| Some((entry.key.clone(), self.text(&entry.value, "text")?)))
            .collect()
    }
}

/// Splits at commas outside parentheses: `Read, Agent(a, b), mcp__x__*`. Parts of a text that does not stand
/// verbatim in the file share its span.
fn comma_separated(text: &str, span: Span, verbatim: bool) -> Vec<ToolMention<'_>> {
    let mentions = split_outside_parentheses(text).into_iter().filter_map(|(at, part)| {
        let start = span.start + at + (part.len() - part.trim_start().len());
        let text = part.trim();
        let span = if verbatim { Span::new(start, start + text.len()) } else { span };
        (!text.is_empty()).then_some(ToolMention { text, span })
    });
    mentions.collect()
}
