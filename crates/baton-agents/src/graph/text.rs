//! The graph as a tree of lines. `✗` marks what is wrong, `●` who owns the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use baton_core::AgentName;

use super::{AgentNode, ChainLine, Graph};

/// Chains longer than this are cut with a hint; nobody reads deeper on a screen.
const MAX_DEPTH: usize = 12;

pub(super) fn render(graph: &Graph, first: Option<&AgentName>) -> String {
    let mut tree = Tree::new(graph);
    let targets: BTreeSet<&str> = graph.edges.iter().map(|line| line.to.as_str()).collect();
    let is_root = |node: &&AgentNode| !targets.contains(node.id.as_str());
    let first = graph.agents.iter().filter(|node| Some(&node.id) == first);
    // Whoever is nobody's target starts a tree; what is left after that stands in a circle.
    let roots = first.chain(graph.agents.iter().filter(is_root)).chain(&graph.agents);
    for node in roots {
        if !tree.shown.contains(node.id.as_str()) {
            tree.root(node);
        }
    }
    tree.out
}

struct Tree<'a> {
    graph: &'a Graph,
    nodes: BTreeMap<&'a str, &'a AgentNode>,
    lines: BTreeMap<&'a str, Vec<&'a ChainLine>>,
    shown: BTreeSet<&'a str>,
    out: String,
}

impl<'a> Tree<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut lines: BTreeMap<&str, Vec<&ChainLine>> = BTreeMap::new();
        for line in &graph.edges {
            lines.entry(line.from.as_str()).or_default().push(line);
        }
        let nodes = graph.agents.iter().map(|node| (node.id.as_str(), node)).collect();
        Self { graph, nodes, lines, shown: BTreeSet::new(), out: String::new() }
    }

    fn root(&mut self, node: &'a AgentNode) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let main = if Some(&node.id) == self.graph.main.as_ref() { "  (main)" } else { "" };
        let _ = writeln!(self.out, "{}{main}{}", node.id, marks(node));
        self.children(node, "", 1);
    }

    fn children(&mut self, node: &'a AgentNode, indent: &str, depth: usize) {
        self.shown.insert(node.id.as_str());
        let lines = self.lines.get(node.id.as_str()).cloned().unwrap_or_default();
        // What is wrong with a reference is said beside it.
        let beside = |problem: &&String| lines.iter().any(|line| line.problem.as_ref() == Some(problem));
        for problem in node.problems.iter().filter(|problem| !beside(problem)) {
            let _ = writeln!(self.out, "{indent}✗ {problem}");
        }
        for (at, line) in lines.iter().enumerate() {
            let last = at + 1 == lines.len();
            let (branch, below) = if last { ("└── ", "    ") } else { ("├── ", "│   ") };
            let _ = write!(self.out, "{indent}{branch}{} {}", line.kind.verb(), line.to);
            self.target(line, &format!("{indent}{below}"), depth);
        }
    }

    fn target(&mut self, line: &'a ChainLine, indent: &str, depth: usize) {
        let node = self.nodes.get(line.to.as_str()).copied();
        let label = line.label.as_ref().map(|label| format!("  ({label})")).unwrap_or_default();
        let problem = line.problem.as_ref().map(|problem| format!("  ✗ {problem}")).unwrap_or_default();
        let marks = node.map(marks).unwrap_or_default();
        let (again, deeper) = match node {
            Some(node) if self.shown.contains(node.id.as_str()) => {
                (self.lines.contains_key(node.id.as_str()), None)
            }
            Some(node) if depth < MAX_DEPTH => (false, Some(node)),
            Some(node) => (self.lines.contains_key(node.id.as_str()), None),
            None => (false, None),
        };
        let more = if again { " …" } else { "" };
        let _ = writeln!(self.out, "{more}{marks}{label}{problem}");
        if let Some(node) = deeper {
            self.children(node, indent, depth + 1);
        }
    }
}

/// What is special about an agent, behind its name.
fn marks(node: &AgentNode) -> String {
    let mut marks = String::new();
    if node.remote {
        marks += "  [remote]";
    }
    if node.holds_threads {
        marks += "  [may hold the thread]";
    }
    if node.terminal {
        marks += "  ●";
    } else {
        let answered = if node.answers.is_empty() {
            "never answered".into()
        } else {
            format!("answered by {}", node.answered_by())
        };
        let _ = write!(marks, "  ○ {answered}");
    }
    marks
}
