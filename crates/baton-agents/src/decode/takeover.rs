//! `accepts_handoff` and `workflow`.

use std::collections::BTreeSet;

use baton_core::agent::{AcceptsHandoff, Slot, StateName, ToolPattern, Workflow, WorkflowStep};
use baton_core::permission::Permission;

use super::AgentDecoder;
use super::section::FrontmatterMap;
use crate::names::{nearest, shortened};
use crate::problem::{Diagnostic, Rule, Severity};
use crate::source::Span;
use crate::yaml::{YamlNode, YamlValue};

/// States that an error names when none is near.
const MAX_LISTED: usize = 12;
/// Unknown states for which a near one is looked for.
const MAX_SUGGESTED: usize = 50;

/// A way from one state to another, as the file states it.
struct Transition {
    from: StateName,
    to: StateName,
    span: Span,
}

impl<'a> AgentDecoder<'a> {
    pub(super) fn accepts_handoff(&mut self, head: &FrontmatterMap<'a>) -> Option<AcceptsHandoff> {
        const KEYS: &[&str] = &[
            "triggers",
            "trigger_mode",
            "permission",
            "exclusive",
            "max_session",
            "return",
            "resume",
            "exit_words",
        ];
        let defaults = AcceptsHandoff::default();
        let node = head.get("accepts_handoff")?;
        if !matches!(node.value, YamlValue::Map(_)) {
            return self.flag(node)?.then_some(defaults);
        }
        let section = self.section(node, "`accepts_handoff`", KEYS)?;
        Some(AcceptsHandoff {
            triggers: section.get("triggers").map(|n| self.texts(n)).unwrap_or_default(),
            trigger_mode: section
                .get("trigger_mode")
                .and_then(|n| self.choice(n))
                .unwrap_or(defaults.trigger_mode),
            permission: section.get("permission").and_then(|n| self.permission(n)),
            exclusive: section.get("exclusive").and_then(|n| self.flag(n)).unwrap_or(true),
            max_session: section
                .get("max_session")
                .and_then(|n| self.duration(n))
                .unwrap_or(defaults.max_session),
            returns: section.get("return").and_then(|n| self.choice(n)).unwrap_or(defaults.returns),
            resume: section.get("resume").and_then(|n| self.flag(n)).unwrap_or(true),
            exit_words: section.get("exit_words").map_or(defaults.exit_words, |n| self.texts(n)),
        })
    }

    fn permission(&mut self, node: &YamlNode) -> Option<Permission> {
        let text = self.text(node, "a permission, such as `skill:create`")?;
        match Permission::parse(&text) {
            Ok(permission) => Some(permission),
            Err(error) => {
                self.report(
                    Rule::InvalidPermission,
                    node.span,
                    error.to_string(),
                    "write for example `skill:create`",
                );
                None
            }
        }
    }

    pub(super) fn workflow(&mut self, head: &FrontmatterMap<'a>) -> Option<Workflow> {
        let node = head.get("workflow")?;
        let section = self.section(node, "`workflow`", &["states"])?;
        let Some(states) = section.get("states") else {
            let help = "add `states:` with a list of at least one `- name: …`";
            self.report(Rule::MissingKey, node.span, "the workflow has no states", help);
            return None;
        };
        let mut read: Vec<(WorkflowStep, Span)> = Vec::new();
        let mut transitions: Vec<Transition> = Vec::new();
        for item in Self::items(states) {
            let Some((state, span)) = self.state(item, &mut transitions) else { continue };
            match read.iter().find(|(other, _)| other.name == state.name) {
                Some((_, first)) => self.duplicate_state(&state.name, span, *first),
                None => read.push((state, span)),
            }
        }
        self.link(&mut read, &transitions, states);
        Some(Workflow { states: read.into_iter().map(|(state, _)| state).collect() })
    }

    fn state(
        &mut self,
        node: &'a YamlNode,
        transitions: &mut Vec<Transition>,
    ) -> Option<(WorkflowStep, Span)> {
        const KEYS: &[&str] = &["name", "collect", "run", "on_failure", "confirm", "next"];
        let section = self.section(node, "a workflow state", KEYS)?;
        let Some(name) = section.get("name") else {
            self.report(
                Rule::MissingKey,
                node.span,
                "this state has no name",
                "add `name:`, such as `name: testing`",
            );
            return None;
        };
        let span = name.span;
        let name = self.state_name(name)?;
        let on_failure = section.get("on_failure");
        if let Some(target) =
            on_failure.filter(|_| section.get("run").is_none() && section.get("confirm").is_none())
        {
            let message =
                "`on_failure` has no effect: the state neither runs a tool nor asks for a confirmation";
            let problem = Diagnostic::new(
                Rule::WrongType,
                self.document.locate(target.span),
                message,
                "add `run:` or remove it",
            );
            self.problems.push(problem.with_severity(Severity::Warning));
        }
        // A target that cannot be read is reported and left out; the state itself stays.
        let mut lead = |decoder: &mut Self, target: &'a YamlNode| {
            let to = decoder.state_name(target)?;
            transitions.push(Transition { from: name.clone(), to: to.clone(), span: target.span });
            Some(to)
        };
        let next = section.get("next").map(Self::items).unwrap_or_default();
        let next = next.iter().filter_map(|target| lead(self, target)).collect();
        let on_failure = on_failure.and_then(|target| lead(self, target));
        let state = WorkflowStep {
            name,
            collect: section.get("collect").map(|n| self.slots(n)).unwrap_or_default(),
            run: section.get("run").and_then(|n| self.workflow_tool(n)),
            on_failure,
            confirm: section.get("confirm").and_then(|n| self.text(n, "the question to ask")),
            next,
        };
        Some((state, span))
    }

    fn state_name(&mut self, node: &YamlNode) -> Option<StateName> {
        let text = self.text(node, "the name of a state")?;
        let is_name = !text.is_empty()
            && text.len() <= 64
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
        if !is_name {
            let text = shortened(&text);
            let message = format!("`{text}` is not a state name: lower-case letters, digits, `_` and `-`");
            self.report(Rule::InvalidName, node.span, message, "write for example `gathering_requirements`");
        }
        is_name.then_some(StateName(text))
    }

    fn slots(&mut self, node: &'a YamlNode) -> Vec<Slot> {
        let mut slots: Vec<Slot> = Vec::new();
        for item in Self::items(node) {
            let Some(slot) = self.slot(item) else { continue };
            if slots.iter().any(|other| other.key == slot.key) {
                let message = format!("`{}` is collected twice in this state", slot.key);
                self.report(Rule::DuplicateKey, item.span, message, "remove one of them");
            } else {
                slots.push(slot);
            }
        }
        slots
    }

    fn slot(&mut self, node: &'a YamlNode) -> Option<Slot> {
        let section = self.section(node, "an entry of `collect`", &["key", "ask", "choices", "required"])?;
        let (Some(key), Some(ask)) = (section.get("key"), section.get("ask")) else {
            let help = "write for example `{ key: purpose, ask: \"What should it do?\" }`";
            self.report(Rule::MissingKey, node.span, "an entry of `collect` needs `key` and `ask`", help);
            return None;
        };
        Some(Slot {
            key: self.text(key, "a key")?,
            ask: self.text(ask, "a question")?,
            choices: section.get("choices").map(|n| self.texts(n)).unwrap_or_default(),
            required: section.get("required").and_then(|n| self.flag(n)).unwrap_or(true),
        })
    }

    /// A tool that does not exist would stop the person in the middle of the walk: an error, unlike in `tools:`.
    fn workflow_tool(&mut self, node: &YamlNode) -> Option<String> {
        let text = self.text(node, "the name of a tool")?;
        let (rule, message, help) = match ToolPattern::parse(&text) {
            Err(error) => (Rule::InvalidGlob, error.to_string(), "write the name of one tool".to_owned()),
            Ok(pattern) if !pattern.is_exact() => {
                let message = format!("`{text}` means several tools, and a state runs one");
                (Rule::InvalidGlob, message, "write the name of one tool".to_owned())
            }
            Ok(pattern) => match pattern.mcp_server() {
                Some(server) if self.knows_server(server) => return Some(text),
                Some(server) => {
                    let message = format!("no MCP server is called `{server}`");
                    (Rule::UnknownServer, message, Self::server_help(server))
                }
                None if self.known.tools.contains(&text) => return Some(text),
                None => (
                    Rule::UnknownTool,
                    format!("no tool is called `{}`", shortened(&text)),
                    self.tool_help(&text),
                ),
            },
        };
        let problem = Diagnostic::new(rule, self.document.locate(node.span), message, help);
        self.problems.push(problem.with_severity(Severity::Error));
        None
    }

    /// Fills in where each state leads by default, and looks for states that lead nowhere or that none leads to.
    fn link(&mut self, states: &mut [(WorkflowStep, Span)], transitions: &[Transition], list: &YamlNode) {
        let names: Vec<StateName> = states.iter().map(|(state, _)| state.name.clone()).collect();
        let shown = names.iter().take(MAX_LISTED).map(|name| format!("`{name}`"));
        let more = (names.len() > MAX_LISTED).then(|| "…".to_owned());
        let listed = shown.chain(more).collect::<Vec<_>>().join(", ");
        let known: BTreeSet<&StateName> = names.iter().collect();
        let unknown = transitions.iter().filter(|transition| !known.contains(&transition.to));
        for (nth, Transition { from, to, span }) in unknown.enumerate() {
            // Comparing each with each takes long where there are thousands, and helps nobody there.
            let candidates = names.iter().map(|name| name.0.as_str()).filter(|_| nth < MAX_SUGGESTED);
            let near = nearest(&to.0, candidates, |_| 3);
            let help = near
                .first()
                .map_or_else(|| format!("the states are {listed}"), |near| format!("did you mean `{near}`?"));
            let message = format!("`{from}` leads to `{to}`, which is not a state of this workflow");
            self.report(Rule::UnknownState, *span, message, help);
        }
        for (at, (state, _)) in states.iter_mut().enumerate() {
            if state.next.is_empty() {
                state.next.extend(names.get(at + 1).cloned());
            }
        }
        if states.is_empty() {
            let help = "add at least one `- name: …`";
            self.report(Rule::MissingKey, list.span, "the workflow has no states", help);
            return;
        }
        let workflow = Workflow { states: states.iter().map(|(state, _)| state.clone()).collect() };
        for name in workflow.unreachable() {
            let span =
                states.iter().find(|(state, _)| state.name == *name).map_or(list.span, |(_, span)| *span);
            let help = format!("let another state lead to it with `next: {name}`, or remove it");
            self.report(Rule::UnreachableState, span, format!("no state leads to `{name}`"), help);
        }
    }

    fn duplicate_state(&mut self, name: &StateName, span: Span, first: Span) {
        let problem = Diagnostic::new(
            Rule::DuplicateState,
            self.document.locate(span),
            format!("two states are called `{name}`"),
            "give each state a name of its own",
        );
        self.problems.push(problem.with_related("first here", self.document.locate(first)));
    }
}
