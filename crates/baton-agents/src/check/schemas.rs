//! An agent gets what its `input_schema` describes: the answer of the stage before it in a chain, or the input of the agent that
//! routes to it or asks its advice. Missions are written by models, and are checked only when they are sent.

use baton_core::AgentName;

use crate::graph::{Edge, EdgeKind};
use crate::problem::{Diagnostic, Rule};
use crate::roster::{RosterDraft, RosterEntry};
use crate::schema_fit::{Conflict, conflict};
use crate::terminal::Owners;

pub(super) fn check(draft: &RosterDraft, problems: &mut Vec<Diagnostic>) {
    if !draft.agents().any(|entry| entry.agent.input_schema.is_some()) {
        return;
    }
    let owners = Owners::of(draft);
    for edge in draft.edges() {
        let Some(target) = edge.to.agent().and_then(|name| draft.agent(name)) else { continue };
        let Some(giver) = draft.agent(&edge.from) else { continue };
        match edge.kind {
            EdgeKind::Chain => {
                let speakers = speakers(giver, &owners);
                let givers = speakers.into_iter().filter_map(|name| draft.agent(name));
                problems.extend(givers.filter_map(|giver| mismatch(edge, giver, "output_schema", target)));
            }
            // Both get the same input.
            EdgeKind::Route | EdgeKind::Advise => {
                problems.extend(mismatch(edge, giver, "input_schema", target));
            }
            EdgeKind::Call | EdgeKind::Member | EdgeKind::Transfer | EdgeKind::Button => {}
        }
    }
}

/// The agents whose answer a stage hands on: its own, or those of a router's destinations.
fn speakers<'a>(giver: &'a RosterEntry, owners: &'a Owners) -> Vec<&'a AgentName> {
    let agent = &giver.agent;
    let Some(router) = &agent.router else { return vec![&agent.name] };
    let destinations = router.destinations.iter().chain(&router.fallback);
    let mut speakers: Vec<&AgentName> = destinations.flat_map(|name| &owners.of_agent(name).named).collect();
    speakers.extend(router.may_answer.then_some(&agent.name));
    speakers.sort();
    speakers.dedup();
    speakers
}

fn mismatch(edge: &Edge, giver: &RosterEntry, key: &str, target: &RosterEntry) -> Option<Diagnostic> {
    let schema = if key == "output_schema" { &giver.agent.output_schema } else { &giver.agent.input_schema };
    let Conflict { pointer, reason } = conflict(schema.as_ref()?, target.agent.input_schema.as_ref()?)?;
    let (from, to) = (&giver.agent.name, &target.agent.name);
    let place = if pointer.is_empty() { String::new() } else { format!(" at `{pointer}`") };
    let message = format!(
        "`{}` {} `{to}`, whose `input_schema` the `{key}` of `{from}` cannot satisfy{place}: {reason}",
        edge.from,
        edge.kind.verb()
    );
    let help = format!("change one of the two schemas, or do not involve `{to}` here");
    let at = |entry: &RosterEntry, key: &str| entry.locate(entry.spans.get(key).unwrap_or_default());
    let problem = Diagnostic::new(Rule::SchemaMismatch, edge.location.clone(), message, help);
    Some(
        problem
            .with_related(format!("`{key}` of `{from}`"), at(giver, key))
            .with_related(format!("`input_schema` of `{to}`"), at(target, "input_schema")),
    )
}
