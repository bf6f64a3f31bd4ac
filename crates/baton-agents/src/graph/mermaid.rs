//! The graph as a Mermaid flowchart, which GitHub and most wikis draw.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Graph;

pub(super) fn render(graph: &Graph) -> String {
    let mut out = String::from("flowchart LR\n");
    // Ids of our own: agent names may be Mermaid's reserved words.
    let mut ids: BTreeMap<&str, String> = BTreeMap::new();
    for (at, node) in graph.agents.iter().enumerate() {
        ids.insert(node.id.as_str(), format!("a{at}"));
        let label = escape(&node.display_name);
        // A stadium owns the answer, a box does not, a double box is elsewhere.
        let (open, close) = match (node.remote, node.terminal) {
            (true, _) => ("[[", "]]"),
            (false, true) => ("([", "])"),
            (false, false) => ("[", "]"),
        };
        let class = if node.problems.is_empty() { "" } else { ":::problem" };
        let _ = writeln!(out, "  a{at}{open}\"{label}\"{close}{class}");
    }
    for (at, missing) in graph.missing().into_iter().enumerate() {
        let _ = writeln!(out, "  m{at}[\"{}?\"]:::problem", escape(missing));
        ids.insert(missing, format!("m{at}"));
    }
    for line in &graph.edges {
        let arrow = if line.kind.passes_baton() { "-->" } else { "-.->" };
        let mark = if line.problem.is_some() { "✗ " } else { "" };
        let _ = writeln!(
            out,
            "  {} {arrow}|\"{mark}{}\"| {}",
            ids[line.from.as_str()],
            line.kind.verb(),
            ids[line.to.as_str()]
        );
    }
    out += "  classDef problem stroke:#dc2626,stroke-width:2px,color:#dc2626\n";
    if let Some(id) = graph.main.as_ref().and_then(|main| ids.get(main.as_str())) {
        let _ = writeln!(out, "  style {id} stroke-width:3px");
    }
    out
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => escaped += "#quot;",
            '#' => escaped += "#35;",
            '<' => escaped += "#lt;",
            '>' => escaped += "#gt;",
            '\n' | '\r' => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
