//! A depth-first walk over the edges that are followed without asking anybody.

use std::collections::BTreeMap;

use baton_core::AgentName;

use crate::graph::{Edge, EdgeTarget};
use crate::roster::RosterDraft;

/// What a walk over all agents found. Linear in agents and edges, and without recursion, so that a chain of any
/// length fits.
#[derive(Debug)]
pub struct AgentWalk<'a> {
    /// Every agent, after those it leads to.
    pub order: Vec<AgentName>,
    /// Each cycle as the edges along it, one for every edge that leads back.
    pub cycles: Vec<Vec<&'a Edge>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitMark {
    New,
    /// On the path from where the walk started, at this depth.
    Open(usize),
    Done,
}

pub fn walk(draft: &RosterDraft) -> AgentWalk<'_> {
    let names: Vec<&AgentName> = draft.agents().map(|entry| &entry.agent.name).collect();
    let index: BTreeMap<&AgentName, usize> = names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
    let mut out: Vec<Vec<(usize, &Edge)>> = vec![Vec::new(); names.len()];
    for edge in draft.edges().iter().filter(|edge| edge.kind.is_fixed()) {
        let to = match &edge.to {
            EdgeTarget::Agent(name) => index.get(name),
            EdgeTarget::Unknown(_) => None,
        };
        if let (Some(from), Some(to)) = (index.get(&edge.from), to) {
            out[*from].push((*to, edge));
        }
    }

    let mut found = AgentWalk { order: Vec::with_capacity(names.len()), cycles: Vec::new() };
    let mut marks = vec![VisitMark::New; names.len()];
    for start in 0..names.len() {
        if marks[start] != VisitMark::New {
            continue;
        }
        marks[start] = VisitMark::Open(0);
        // The path: an agent, how many of its edges are done, and the edge that led to it.
        let mut path: Vec<(usize, usize, Option<&Edge>)> = vec![(start, 0, None)];
        while let Some((at, done, _)) = path.last_mut() {
            let Some((to, edge)) = out[*at].get(*done).copied() else {
                marks[*at] = VisitMark::Done;
                found.order.push(names[*at].clone());
                path.pop();
                continue;
            };
            *done += 1;
            match marks[to] {
                VisitMark::New => {
                    marks[to] = VisitMark::Open(path.len());
                    path.push((to, 0, Some(edge)));
                }
                VisitMark::Open(depth) => {
                    let along = path[depth + 1..].iter().filter_map(|(_, _, edge)| *edge);
                    found.cycles.push(along.chain([edge]).collect());
                }
                VisitMark::Done => {}
            }
        }
    }
    found
}
