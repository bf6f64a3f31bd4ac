//! Keys of one agent that do not go together, and agents that may not be used.

use std::collections::BTreeMap;

use baton_core::agent::RoutingMode;

use crate::graph::EdgeKind;
use crate::problem::{Diagnostic, Rule};
use crate::roster::{RosterDraft, RosterEntry};

/// What a pure router, whose only tool is `route_to`, cannot have.
const NOT_IN_PURE_ROUTER: &[&str] = &[
    "tools",
    "skills",
    "mcp_servers",
    "team",
    "collaborations",
    "workflow",
    "delegation",
    "output_schema",
    "handoffs",
];

pub(super) fn check(entry: &RosterEntry, draft: &RosterDraft, problems: &mut Vec<Diagnostic>) {
    router(entry, problems);
    team(entry, problems);
    transfers(entry, draft, problems);
    orchestration(entry, draft, problems);
}

/// A problem between two keys: reported at the one to remove, pointing at the other.
fn conflict(
    entry: &RosterEntry,
    rule: Rule,
    remove: &str,
    because: &str,
    message: String,
    help: &str,
) -> Option<Diagnostic> {
    let problem = Diagnostic::new(rule, entry.locate(entry.spans.get(remove)?), message, help);
    Some(match entry.spans.get(because) {
        Some(span) => problem.with_related(format!("`{because}` is here"), entry.locate(span)),
        None => problem,
    })
}

fn router(entry: &RosterEntry, problems: &mut Vec<Diagnostic>) {
    let Some(router) = &entry.agent.router else { return };
    if router.mode == RoutingMode::Pure {
        for key in NOT_IN_PURE_ROUTER {
            let message = format!("a router with `router: true` cannot have `{key}`: it only routes");
            let help =
                "remove it, or use the map form `router: {destinations: […]}`, which keeps its own tools";
            problems.extend(conflict(entry, Rule::RouterConflict, key, "router", message, help));
        }
    } else if entry.agent.team.is_some() {
        let message = "an agent is either a router or the coordinator of a team".to_owned();
        problems.extend(conflict(
            entry,
            Rule::RouterConflict,
            "team",
            "router",
            message,
            "remove one of them",
        ));
    }
    if entry.agent.accepts_handoff.is_some() {
        let message = "a router cannot hold a thread: it passes every request on".to_owned();
        let help = "put `accepts_handoff` on the agents it routes to";
        problems.extend(conflict(entry, Rule::RouterHolds, "accepts_handoff", "router", message, help));
    }
}

fn team(entry: &RosterEntry, problems: &mut Vec<Diagnostic>) {
    if entry.agent.team.is_some() && entry.spans.get("handoff").is_some() {
        let message = "a team coordinator cannot have `handoff`: it owns the team's answer".to_owned();
        let help = "remove it, or let another agent lead the team and hand off to this one";
        problems.extend(conflict(entry, Rule::TeamHandoff, "handoff", "team", message, help));
    }
}

fn transfers(entry: &RosterEntry, draft: &RosterDraft, problems: &mut Vec<Diagnostic>) {
    let mut tools: BTreeMap<String, &str> = BTreeMap::new();
    for edge in draft.edges_of(&entry.agent.name).filter(|edge| edge.kind == EdgeKind::Transfer) {
        let Some(target) = edge.to.agent() else { continue };
        if *target == entry.agent.name {
            problems.push(Diagnostic::new(
                Rule::SelfTransfer,
                edge.location.clone(),
                format!("`{target}` cannot transfer to itself"),
                "remove it from the collaborators",
            ));
        }
        let clash =
            tools.insert(target.transfer_tool(), target.as_str()).filter(|other| *other != target.as_str());
        if let Some(other) = clash {
            problems.push(Diagnostic::new(
                Rule::TransferClash,
                edge.location.clone(),
                format!("`{other}` and `{target}` would both get the tool `{}`", target.transfer_tool()),
                "rename one of the two agents",
            ));
        }
    }
}

fn orchestration(entry: &RosterEntry, draft: &RosterDraft, problems: &mut Vec<Diagnostic>) {
    for edge in draft.edges_of(&entry.agent.name) {
        let closed = edge
            .to
            .agent()
            .and_then(|name| draft.agent(name))
            .filter(|target| !target.agent.can_be_orchestrated);
        // A transfer or a button passes the whole conversation on; that is not orchestrating.
        let Some(target) = closed.filter(|_| !matches!(edge.kind, EdgeKind::Transfer | EdgeKind::Button))
        else {
            continue;
        };
        let name = &target.agent.name;
        let problem = Diagnostic::new(
            Rule::NotOrchestratable,
            edge.location.clone(),
            format!(
                "`{}` {} `{name}`, which has `can_be_orchestrated: false`",
                entry.agent.name,
                edge.kind.verb()
            ),
            format!("remove it here, or allow it in {}", target.path().display()),
        );
        let reason = ["can_be_orchestrated", "mode", "disable_model_invocation", "infer"];
        let span = reason.iter().find_map(|key| target.spans.get(key)).unwrap_or_default();
        problems.push(problem.with_related("not allowed here", target.locate(span)));
    }
}
