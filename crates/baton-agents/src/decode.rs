//! From frontmatter to [`Agent`]: every key checked, every reference resolved, every mistake reported.
//!
//! A key that cannot be read keeps its default, so that the rest of the file and of the roster is still
//! looked at. One file below this one per group of keys.

pub(crate) mod foreign;
mod guardrails;
mod patterns;
mod prompt;
mod remote;
mod section;
mod settings;
mod takeover;
mod template;
mod tools;
mod values;

use std::collections::BTreeSet;

use baton_core::AgentName;
use baton_core::agent::{Agent, AgentKind, Badge, Grounding, PlanningStrategy};

use crate::format::FileFormat;
use crate::frontmatter::AgentDocument;
use crate::graph::{Edge, EdgeKind, EdgeTarget};
use crate::known::KnownNames;
use crate::names::{AgentIdentity, Resolver, Unresolved, shortened};
use crate::problem::{self, Diagnostic, Rule, Severity};
use crate::source::Span;
use crate::yaml::{YamlNode, YamlValue};

use section::FrontmatterMap;

/// What one file came to.
#[derive(Debug)]
pub struct Decoded {
    pub agent: Agent,
    pub edges: Vec<Edge>,
    pub problems: Vec<Diagnostic>,
    pub spans: KeySpans,
    /// Where `agents` holds `*`: every other agent may be called. Who that is shows when all files are read.
    everyone: Option<Span>,
}

/// Where the keys stand that checks across keys and agents point at.
#[derive(Debug, Default)]
pub struct KeySpans(Vec<(String, Span)>);

impl KeySpans {
    /// The span of a top-level key, by its canonical name.
    pub fn get(&self, key: &str) -> Option<Span> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, span)| *span)
    }

    /// All top-level keys, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Span)> {
        self.0.iter().map(|(name, span)| (name.as_str(), *span))
    }
}

/// Everything a key may need to be understood.
struct AgentDecoder<'a> {
    document: &'a AgentDocument,
    format: FileFormat,
    identity: &'a AgentIdentity,
    resolver: &'a Resolver<'a>,
    known: &'a KnownNames,
    problems: Vec<Diagnostic>,
    edges: Vec<Edge>,
    /// MCP servers that the file itself describes.
    servers: BTreeSet<String>,
    everyone: Option<Span>,
}

pub fn decode(
    document: &AgentDocument,
    identity: &AgentIdentity,
    resolver: &Resolver<'_>,
    known: &KnownNames,
) -> Decoded {
    let (problems, edges, servers) = (Vec::new(), Vec::new(), BTreeSet::new());
    let format = identity.format;
    let mut decoder = AgentDecoder {
        document,
        format,
        identity,
        resolver,
        known,
        problems,
        edges,
        servers,
        everyone: None,
    };
    let mut head = decoder.head();
    let kind = decoder.kind(&mut head);
    let spans = KeySpans(head.spans());
    let agent = decoder.agent(&head, kind);
    let AgentDecoder { edges, mut problems, everyone, .. } = decoder;
    problem::limit_per_file(&mut problems);
    Decoded { agent, edges, problems, spans, everyone }
}

/// Gives agents with `agents: ["*"]` (VS Code) all others that may be called.
pub fn call_everyone(decoded: &mut [Decoded], documents: &[(AgentDocument, AgentIdentity)]) {
    let open: BTreeSet<AgentName> = decoded
        .iter()
        .filter(|decoded| decoded.agent.can_be_orchestrated)
        .map(|decoded| decoded.agent.name.clone())
        .collect();
    for (decoded, (document, _)) in decoded.iter_mut().zip(documents) {
        let Some(span) = decoded.everyone else { continue };
        let location = document.locate(span);
        // Each with each is the square of their number.
        if open.len() > MAX_EVERYONE {
            let message =
                format!("`*` would be {} agents, and stands for at most {MAX_EVERYONE}", open.len());
            let help = "list the agents that it may call";
            decoded.problems.push(Diagnostic::new(Rule::OutOfRange, location, message, help));
            continue;
        }
        let agent = &mut decoded.agent;
        let others = open.iter().filter(|name| **name != agent.name && !agent.agents.contains(name));
        let others: Vec<AgentName> = others.cloned().collect();
        decoded.edges.extend(others.iter().map(|name| Edge {
            from: agent.name.clone(),
            to: EdgeTarget::Agent(name.clone()),
            kind: EdgeKind::Call,
            label: None,
            location: location.clone(),
        }));
        agent.agents.extend(others);
    }
}

const MAX_EVERYONE: usize = 256;
/// Characters of a description that is made of the body.
const MAX_DERIVED: usize = 200;

impl<'a> AgentDecoder<'a> {
    fn agent(&mut self, head: &FrontmatterMap<'a>, kind: AgentKind) -> Agent {
        let foreign = self.foreign(head);
        let router = self.router(head);
        let mcp_servers = self.mcp_servers(head);
        let tools = self.tools(head, &foreign);
        let model = self.models(head);
        let prompt = self.prompt(&kind);
        Agent {
            name: self.identity.id.clone(),
            display_name: self.identity.display_name.clone(),
            description: self.description(head),
            version: self.version(head),
            limits: self.limits(head, &foreign.limits, &model),
            model,
            sampling: self.sampling(head),
            planning_strategy: self.choice_at(head, "planning_strategy", PlanningStrategy::NativeReact),
            grounding: self.choice_at(head, "grounding", Grounding::Optional),
            input_schema: self.schema_at(head, "input_schema"),
            output_schema: self.schema_at(head, "output_schema"),
            mcp_servers,
            skills: self.skills(head),
            approvals: self.approvals(head, foreign.approvals),
            guardrails: self.guardrails(head),
            agents: self.callable(head, tools.agents, router.as_ref()),
            tools: tools.access,
            delegation: self.delegation(head),
            advisors: self.advisors(head),
            team: self.team(head),
            handoff: self.handoff(head),
            collaborations: self.collaborations(head, &kind),
            accepts_handoff: self.accepts_handoff(head),
            workflow: self.workflow(head),
            can_be_orchestrated: self.flag_at(head, "can_be_orchestrated", !foreign.people_only),
            visible: head.get("visible").and_then(|node| self.flag(node)),
            history: self.history(head),
            sanitize: self.sanitize(head),
            badge: self.badge(head, foreign.hidden),
            handoffs: self.buttons(head),
            prompt: prompt.text,
            literal_prompt: prompt.is_literal,
            kind,
            router,
        }
    }

    /// `sanitize: false` has an effect only where the operator allows it.
    fn sanitize(&mut self, head: &FrontmatterMap<'a>) -> bool {
        let sanitize = self.flag_at(head, "sanitize", true);
        if !sanitize && !self.known.may_unmask(&self.identity.id) {
            let span = head.get("sanitize").map(|node| node.span).unwrap_or_default();
            let message = "`sanitize: false` has no effect: the operator has not allowed it for this agent";
            let help = format!("add `{}` to `allow_unmasked` in `[agents]` of baton.toml", self.identity.id);
            self.report(Rule::UnmaskedRefused, span, message, help);
            return true;
        }
        sanitize
    }

    fn badge(&mut self, head: &FrontmatterMap<'a>, hidden: bool) -> Badge {
        let color = self.text_at(head, "color");
        let icon = self.text_at(head, "icon");
        Badge { color: color.unwrap_or_else(|| Badge::derived_color(&self.identity.id)), icon, hidden }
    }

    fn description(&mut self, head: &FrontmatterMap<'a>) -> String {
        let node =
            head.get("description").filter(|node| node.scalar().is_none_or(|s| !s.text.trim().is_empty()));
        let Some(node) = node else {
            if let Some(description) = self.derived_description() {
                return description;
            }
            self.problems.push(Diagnostic::new(
                Rule::MissingKey,
                self.document.top(),
                "the agent has no `description`",
                "add `description:` and say in one sentence what the agent is for; routers and callers choose by it",
            ));
            return String::new();
        };
        self.text(node, "text").unwrap_or_default()
    }

    /// Other programs do without a description: `metadata.description` stands for it, or else the first line of the body.
    fn derived_description(&mut self) -> Option<String> {
        if self.format != FileFormat::Foreign {
            return None;
        }
        if let Some(description) = self.metadata_description() {
            return Some(description);
        }
        let is_mark = |c: char| c.is_whitespace() || "#>*-".contains(c);
        let mut lines = self.document.body().lines().map(|line| line.trim_matches(is_mark));
        let line = lines.find(|line| line.contains(char::is_alphabetic))?;
        let message = "the agent has no `description`; the first line of its prompt is used";
        let help = "add `description:`; routers and callers choose by it";
        let problem = Diagnostic::new(Rule::MissingKey, self.document.top(), message, help);
        self.problems.push(problem.with_severity(Severity::Warning));
        Some(baton_core::text::head(line, MAX_DERIVED))
    }

    fn metadata_description(&self) -> Option<String> {
        let metadata = self.document.entries().find(|entry| entry.key == "metadata")?;
        let YamlValue::Map(entries) = &metadata.value.value else { return None };
        let text = entries.iter().find(|entry| entry.key == "description")?.value.scalar()?.text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn report(&mut self, rule: Rule, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Diagnostic::new(rule, self.document.locate(span), message, help));
    }

    /// Resolves a reference and records it as an edge, also when it leads nowhere.
    fn refer(&mut self, text: &str, span: Span, kind: EdgeKind, label: Option<&str>) -> Option<AgentName> {
        let resolved = self.resolver.resolve(text);
        let target = match &resolved {
            Ok(id) => EdgeTarget::Agent(id.clone()),
            Err(_) => EdgeTarget::Unknown(text.to_owned()),
        };
        self.edges.push(Edge {
            from: self.identity.id.clone(),
            to: target,
            kind,
            label: label.map(str::to_owned),
            location: self.document.locate(span),
        });
        match resolved {
            Ok(id) => Some(id),
            Err(unresolved) => {
                self.unresolved(text, span, &unresolved);
                None
            }
        }
    }

    fn unresolved(&mut self, text: &str, span: Span, why: &Unresolved) {
        let quoted =
            |ids: &[AgentName]| ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(" or ");
        let text = shortened(text);
        let (rule, message, help) = match why {
            Unresolved::Ambiguous(ids) => (
                Rule::AmbiguousAgent,
                format!("`{text}` could mean several agents"),
                format!("write the id: {}", quoted(ids)),
            ),
            Unresolved::Unknown { nearest } => {
                let help = match nearest.as_slice() {
                    [] => "write the name of an agent of this roster (`baton agents list` prints them), or add its file".to_owned(),
                    ids => format!("did you mean {}?", quoted(ids)),
                };
                (Rule::UnknownAgent, format!("no agent is called `{text}`"), help)
            }
        };
        let problem = Diagnostic::new(rule, self.document.locate(span), message, help);
        // A file of a collection names agents that were not copied with it.
        let is_foreign = self.format == FileFormat::Foreign;
        let severity = if is_foreign { Severity::Warning } else { problem.severity };
        self.problems.push(problem.with_severity(severity));
    }

    /// A list item or value that has to be the name of an agent.
    fn agent_name(&mut self, node: &YamlNode, kind: EdgeKind, label: Option<&str>) -> Option<AgentName> {
        let text = self.text(node, "the name of an agent")?;
        self.refer(&text, node.span, kind, label)
    }
}

/// Whether keys that only a local agent needs have a meaning.
fn is_local(kind: &AgentKind) -> bool {
    !kind.is_remote()
}
