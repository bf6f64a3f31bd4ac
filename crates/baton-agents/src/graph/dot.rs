//! The graph for Graphviz.

use std::fmt::Write as _;

use super::Graph;

pub(super) fn render(graph: &Graph) -> String {
    let mut out = String::from(
        "digraph baton {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n",
    );
    for node in &graph.agents {
        let mut style = vec!["rounded"];
        if Some(&node.id) == graph.main.as_ref() {
            style.push("bold");
        }
        let color = if node.problems.is_empty() { "" } else { ", color=red, fontcolor=red" };
        let sides = match (node.remote, node.terminal) {
            (true, _) => ", shape=box3d",
            (false, true) => ", peripheries=2",
            (false, false) => "",
        };
        let _ = writeln!(
            out,
            "  {} [label={}, style={}{sides}{color}];",
            quote(node.id.as_str()),
            quote(&node.display_name),
            quote(&style.join(","))
        );
    }
    for missing in graph.missing() {
        let _ = writeln!(
            out,
            "  {} [label={}, color=red, fontcolor=red];",
            quote(missing),
            quote(&format!("{missing}?"))
        );
    }
    for line in &graph.edges {
        let style = if line.kind.passes_baton() { "" } else { ", style=dashed" };
        let color = if line.problem.is_some() { ", color=red, fontcolor=red" } else { "" };
        let (from, to, verb) = (quote(line.from.as_str()), quote(&line.to), quote(line.kind.verb()));
        let _ = writeln!(out, "  {from} -> {to} [label={verb}{style}{color}];");
    }
    out += "}\n";
    out
}

fn quote(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
    format!("\"{text}\"")
}
