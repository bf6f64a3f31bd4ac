//! `baton graph`: the picture of a roster.

use std::fmt::Write as _;

use baton_agents::Graph;
use baton_agents::graph::{AgentNode, EdgeKind, GraphStage};
use baton_core::AgentName;
use clap::ValueEnum;

use super::{print, print_json};
use crate::cli::Common;
use crate::exit::Exit;
use crate::report::{tell, visible};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this agent and those it can involve, with the order of a run
    pub agent: Option<String>,
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: GraphFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    Text,
    Mermaid,
    Dot,
    Json,
}

pub fn run(common: &Common, args: &Args) -> anyhow::Result<Exit> {
    let project = super::project(common)?;
    let draft = project.draft();
    let mut graph = Graph::of(&draft, project.main(&draft));
    let mut focus = None;
    if let Some(text) = &args.agent {
        let name = super::agents::find(&draft, text)?;
        graph = graph.around(&name);
        focus = Some(name);
    }
    match args.format {
        GraphFormat::Text => {
            let text = graph.to_text(focus.as_ref()) + &explained(&graph, focus.as_ref());
            print(&painted(&visible(&text)))?;
        }
        GraphFormat::Mermaid => print(&visible(&graph.to_mermaid()))?,
        GraphFormat::Dot => print(&visible(&graph.to_dot()))?,
        GraphFormat::Json => print_json(&graph)?,
    }
    let errors = draft.problems().iter().filter(|problem| problem.is_error()).count();
    if errors > 0 {
        tell(&format!("\nThe agent files have {errors} error(s); `baton validate` explains them."));
        return Ok(Exit::Invalid);
    }
    Ok(Exit::Ok)
}

/// What happens in a run of one agent, or what the marks mean.
fn explained(graph: &Graph, focus: Option<&AgentName>) -> String {
    let Some(node) = focus.and_then(|name| graph.agents.iter().find(|node| node.id == *name)) else {
        return "\n● owns its answer   ○ another agent gives the answer   … shown above\n".to_owned();
    };
    let mut out = String::from("\nOrder of a run:\n");
    for (at, stage) in node.order.iter().enumerate() {
        let _ = writeln!(out, "  {}. {}", at + 1, describe(node, stage));
    }
    let transfers = graph.edges.iter().any(|edge| edge.from == node.id && edge.kind == EdgeKind::Transfer);
    let or_others = if transfers { ", or from the receiver of a transfer" } else { "" };
    let _ = writeln!(out, "The answer comes from {}{or_others}.", node.answered_by());
    out
}

fn describe(node: &AgentNode, stage: &GraphStage) -> String {
    let names =
        |separator: &str| stage.agents.iter().map(AgentName::as_str).collect::<Vec<_>>().join(separator);
    match stage.stage {
        "advisors" => format!("consults {} in parallel", names(", ")),
        "team" => format!("{} leads a team of {}", node.id, names(", ")),
        "route" => format!("routes to {}", names(" or ")),
        "handoff" => format!("hands off to {}", names(" or ")),
        _ => format!("{} works", node.id),
    }
}

/// Problems in red; the terminal decides whether that shows.
fn painted(text: &str) -> String {
    let red = anstyle::AnsiColor::Red.on_default();
    let paint = |line: &str| match line.find('✗') {
        Some(at) => format!("{}{red}{}{red:#}\n", &line[..at], &line[at..]),
        None => format!("{line}\n"),
    };
    text.lines().map(paint).collect()
}
