//! Who may call, consult, route, hand off and transfer to whom, and who owns the answer.

mod dot;
mod mermaid;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use baton_core::agent::Agent;
use baton_core::{AgentName, choices};
use serde::Serialize;

use crate::problem::Diagnostic;
use crate::roster::RosterDraft;
use crate::source::Location;
use crate::terminal::Owners;

choices! {
    /// How one agent may involve another.
    pub enum EdgeKind {
        /// Calls it and keeps the baton.
        Call = "call",
        /// Consults it before each answer.
        Advise = "advise",
        /// May choose it to handle the request.
        Route = "route",
        /// Leads it in a team.
        Member = "member",
        /// Lets it give the final answer.
        Chain = "handoff",
        /// May pass the baton to it.
        Transfer = "transfer",
        /// Offers the person a button that starts a handoff.
        Button = "button",
    }
}

impl EdgeKind {
    /// The edge as a verb: `assistant` *calls* `knowledge`.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Call => "calls",
            Self::Advise => "consults",
            Self::Route => "routes to",
            Self::Member => "leads",
            Self::Chain => "hands off to",
            Self::Transfer => "may transfer to",
            Self::Button => "offers",
        }
    }

    /// Followed without asking anybody, so a cycle of such edges would never end.
    pub fn is_fixed(self) -> bool {
        matches!(self, Self::Advise | Self::Route | Self::Member | Self::Chain)
    }

    /// Whether the target takes over, instead of reporting back.
    pub(crate) fn passes_baton(self) -> bool {
        matches!(self, Self::Route | Self::Chain | Self::Transfer | Self::Button)
    }
}

/// A reference from one agent to another, as a file states it.
#[derive(Debug, Clone)]
pub struct Edge {
    pub from: AgentName,
    pub to: EdgeTarget,
    pub kind: EdgeKind,
    /// The condition, specialty or caption that stands with it.
    pub label: Option<String>,
    pub location: Location,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdgeTarget {
    Agent(AgentName),
    /// Names no agent of the roster.
    Unknown(String),
}

impl EdgeTarget {
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Agent(name) => Some(name),
            Self::Unknown(_) => None,
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Agent(name) => name.as_str(),
            Self::Unknown(text) => text,
        }
    }
}

/// The picture of a roster, broken or not.
#[derive(Debug, Clone, Serialize)]
pub struct Graph {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main: Option<AgentName>,
    pub agents: Vec<AgentNode>,
    pub edges: Vec<ChainLine>,
}

#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct AgentNode {
    pub id: AgentName,
    pub display_name: String,
    pub description: String,
    pub remote: bool,
    /// May hold a thread across turns.
    pub holds_threads: bool,
    /// Whether its own words are the answer.
    pub terminal: bool,
    /// Whose words can be the answer when this agent is asked: the first of them, by name.
    pub answers: Vec<AgentName>,
    /// Whether more agents than those in `answers` can.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub other_answers: bool,
    /// What happens in one run, in order.
    pub order: Vec<GraphStage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

impl AgentNode {
    /// Whose words can be the answer, for people: `a or b`, and `a, b or others` where there are many.
    pub fn answered_by(&self) -> String {
        let names: Vec<&str> = self.answers.iter().map(AgentName::as_str).collect();
        if self.other_answers { format!("{} or others", names.join(", ")) } else { names.join(" or ") }
    }
}

/// One stage of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphStage {
    pub stage: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentName>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ChainLine {
    pub from: AgentName,
    pub to: String,
    pub kind: EdgeKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Graph {
    pub fn of(draft: &RosterDraft, main: Option<&AgentName>) -> Self {
        let owners = Owners::of(draft);
        let mut problems: BTreeMap<&std::path::Path, Vec<&Diagnostic>> = BTreeMap::new();
        for problem in draft.problems().iter().filter(|problem| problem.is_error()) {
            problems.entry(problem.location.path()).or_default().push(problem);
        }
        let agents = draft.agents().map(|entry| {
            let agent = &entry.agent;
            let answer = owners.of_agent(&agent.name);
            let answers: Vec<AgentName> = answer.named.iter().cloned().collect();
            let problems = problems.get(entry.path()).into_iter().flatten();
            AgentNode {
                id: agent.name.clone(),
                display_name: agent.display_name.clone(),
                description: agent.description.clone(),
                remote: agent.kind.is_remote(),
                holds_threads: agent.accepts_handoff.is_some(),
                terminal: answers == [agent.name.clone()],
                answers,
                other_answers: answer.others,
                order: order(agent),
                problems: problems.map(|problem| problem.message.clone()).collect(),
            }
        });
        let edges = draft.edges().iter().map(|edge| ChainLine {
            from: edge.from.clone(),
            to: edge.to.as_str().to_owned(),
            kind: edge.kind,
            label: edge.label.clone(),
            problem: draft.problem_at(&edge.location).map(|problem| problem.message.clone()),
        });
        Self { main: main.cloned(), agents: agents.collect(), edges: edges.collect() }
    }

    /// The agent and everyone it can involve, directly or not.
    #[must_use]
    pub fn around(&self, agent: &AgentName) -> Self {
        let mut lines: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in &self.edges {
            lines.entry(line.from.as_str()).or_default().push(&line.to);
        }
        let mut reached = BTreeSet::new();
        let mut open = vec![agent.as_str()];
        while let Some(name) = open.pop() {
            if reached.insert(name) {
                open.extend(lines.get(name).into_iter().flatten());
            }
        }
        Self {
            main: self.main.clone(),
            agents: self.agents.iter().filter(|node| reached.contains(node.id.as_str())).cloned().collect(),
            edges: self.edges.iter().filter(|line| reached.contains(line.from.as_str())).cloned().collect(),
        }
    }

    /// Only these agents, and what they do with each other.
    #[must_use]
    pub fn only(&self, is_shown: impl Fn(&AgentName) -> bool) -> Self {
        let node = |node: &AgentNode| {
            let mut node = node.clone();
            node.answers.retain(&is_shown);
            node.order.iter_mut().for_each(|stage| stage.agents.retain(&is_shown));
            node.order.retain(|stage| !stage.agents.is_empty());
            node
        };
        let is_agent = |to: &str| AgentName::parse(to).is_ok_and(|to| is_shown(&to));
        let edges = self.edges.iter().filter(|line| is_shown(&line.from) && is_agent(&line.to));
        Self {
            main: self.main.clone().filter(&is_shown),
            agents: self.agents.iter().filter(|node| is_shown(&node.id)).map(node).collect(),
            edges: edges.cloned().collect(),
        }
    }

    /// Targets that lines lead to and that are no agents.
    pub fn missing(&self) -> BTreeSet<&str> {
        let known: BTreeSet<&str> = self.agents.iter().map(|node| node.id.as_str()).collect();
        self.edges.iter().map(|line| line.to.as_str()).filter(|to| !known.contains(to)).collect()
    }

    /// A tree for people, starting with `first` or else with the main agent.
    pub fn to_text(&self, first: Option<&AgentName>) -> String {
        text::render(self, first.or(self.main.as_ref()))
    }

    pub fn to_mermaid(&self) -> String {
        mermaid::render(self)
    }

    pub fn to_dot(&self) -> String {
        dot::render(self)
    }
}

/// Advisors, then the agent's own session or team, then where it routes, then its chain.
fn order(agent: &Agent) -> Vec<GraphStage> {
    let advisors: Vec<_> = agent.advisors.agents.iter().map(|advisor| advisor.agent.clone()).collect();
    let mut stages = vec![GraphStage { stage: "advisors", agents: advisors }];
    match &agent.team {
        Some(team) => stages.push(GraphStage { stage: "team", agents: team.members.clone() }),
        None => stages.push(GraphStage { stage: "session", agents: vec![agent.name.clone()] }),
    }
    if let Some(router) = &agent.router {
        let agents = router.destinations.iter().chain(&router.fallback).cloned().collect();
        stages.push(GraphStage { stage: "route", agents });
    }
    let chain = agent.handoff.iter().map(|destination| destination.to.clone()).collect();
    stages.push(GraphStage { stage: "handoff", agents: chain });
    stages.retain(|stage| !stage.agents.is_empty());
    stages
}
