//! Handoff, router, advisors and team edges never lead back to where they started.

use crate::check::walk::walk;
use crate::graph::{Edge, EdgeKind};
use crate::problem::{Diagnostic, Rule};
use crate::roster::RosterDraft;

/// A path longer than this is shortened in the message.
const MAX_SHOWN: usize = 12;

pub(super) fn check(draft: &RosterDraft, problems: &mut Vec<Diagnostic>) {
    for cycle in walk(draft).cycles {
        problems.push(explain(&cycle));
    }
}

fn explain(cycle: &[&Edge]) -> Diagnostic {
    // Shown from the alphabetically first agent, so that the message does not depend on where the walk began.
    let first = cycle.iter().enumerate().min_by_key(|(_, edge)| &edge.from).map_or(0, |(at, _)| at);
    let cycle: Vec<&Edge> = cycle[first..].iter().chain(&cycle[..first]).copied().collect();
    let mut path: Vec<&str> = cycle.iter().map(|edge| edge.from.as_str()).collect();
    path.push(cycle[0].from.as_str());
    if path.len() > MAX_SHOWN {
        path.splice(MAX_SHOWN / 2..path.len() - MAX_SHOWN / 2, ["…"]);
    }
    let path = path.join(" → ");
    let back = cycle[cycle.len() - 1];
    let is_role = |edge: &&Edge| matches!(edge.kind, EdgeKind::Member | EdgeKind::Advise);
    let (rule, message) = if cycle.iter().all(is_role) {
        let role = if back.kind == EdgeKind::Member { "a team member" } else { "an advisor" };
        (Rule::OwnAncestor, format!("`{}` would be {role} of itself: {path}", back.to.as_str()))
    } else {
        (Rule::Cycle, format!("agents lead to each other in a circle: {path}"))
    };
    let help = "remove one of these references; only `collaborations` may be mutual, because a model decides about them";
    let problem = Diagnostic::new(rule, back.location.clone(), message, help);
    cycle[..cycle.len() - 1].iter().take(MAX_SHOWN).fold(problem, |problem, edge| {
        let note = format!("`{}` {} `{}` here", edge.from, edge.kind.verb(), edge.to.as_str());
        problem.with_related(note, edge.location.clone())
    })
}
