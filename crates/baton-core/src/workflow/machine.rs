//! The state machine. It has no side effects and is deterministic. [`moves`]: transitions other than forward.

use std::collections::{BTreeMap, BTreeSet};

use crate::RunId;
use crate::agent::{Slot, StateName, Workflow, WorkflowStep};
use crate::store::WorkflowState;
use jiff::Timestamp;

use super::data::{Data, Held};
use super::refusal::Refusal;
use super::value;

/// A workflow in its current state.
#[derive(Debug, Clone)]
pub struct Machine<'a> {
    workflow: &'a Workflow,
    state: &'a WorkflowStep,
    pub data: Data,
}

/// What a workflow waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waits<'a> {
    /// An instruction from the user.
    Change(Held),
    /// The state's tool.
    Tool(&'a str),
    /// Required values.
    Values(Vec<&'a Slot>),
    /// Confirmation of this question.
    Confirm(&'a str),
    /// A choice between several next states.
    Choice(&'a [StateName]),
    /// Nothing: it can advance.
    Onward(&'a StateName),
    /// Nothing: it has finished.
    Done,
}

/// The user's answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// The user's own words.
    Yes,
    /// A model's interpretation: enough to advance, but not to approve a tool.
    TakenForYes,
    No,
}

impl<'a> Machine<'a> {
    /// Restores a workflow. If its state no longer exists in the file, falls back to the last completed state that does.
    pub fn read(workflow: &'a Workflow, kept: Option<&WorkflowState>) -> Option<Self> {
        let first = workflow.states.first()?;
        let Some(kept) = kept else {
            let data = Data { is_ready: first.run.is_none(), ..Data::default() };
            return Some(Self { workflow, state: first, data });
        };
        let mut data = Data::read(&kept.data);
        let find = |name: &String| workflow.states.iter().find(|state| state.name.0 == *name);
        data.trail.retain(|name| find(name).is_some());
        if let Some(state) = find(&kept.state) {
            return Some(Self { workflow, state, data });
        }
        let last = data.trail.pop();
        let state = last.as_ref().and_then(find).unwrap_or(first);
        let mut machine = Self { workflow, state, data };
        machine.arrive();
        Some(machine)
    }

    pub fn kept(&self) -> WorkflowState {
        self.data.kept(self.name())
    }

    pub fn workflow(&self) -> &'a Workflow {
        self.workflow
    }

    pub fn state(&self) -> &'a WorkflowStep {
        self.state
    }

    pub fn name(&self) -> &'a str {
        &self.state.name.0
    }

    /// Number of the current state, from 1, and the number of states.
    pub fn step(&self) -> (usize, usize) {
        let states = &self.workflow.states;
        let step = states.iter().position(|state| state.name == self.state.name).map_or(1, |at| at + 1);
        (step, states.len())
    }

    /// How many of its values the workflow has, and how many it collects on its way: in the completed states, the current one and
    /// those that follow by default. A value counts once it is known or skipped, at whatever state the user gave it. The first number
    /// never goes back, because values are replaced but not removed; at the end it is the second.
    pub fn answers(&self) -> (usize, usize) {
        let mut keys = BTreeMap::new();
        for slot in self.route().into_iter().flat_map(|state| &state.collect) {
            *keys.entry(slot.key.as_str()).or_insert(false) |= self.is_answered(slot);
        }
        let answered = keys.values().filter(|is_answered| **is_answered).count();
        (if self.waits() == Waits::Done { keys.len() } else { answered }, keys.len())
    }

    fn is_answered(&self, slot: &Slot) -> bool {
        let is_skipped = !slot.required && self.data.skipped.contains(&slot.key);
        is_skipped || self.data.values.contains_key(&slot.key)
    }

    /// The completed states, the current one, and those that follow it by default.
    fn route(&self) -> Vec<&'a WorkflowStep> {
        let completed = self.data.trail.iter().filter_map(|name| self.find(name));
        let mut route: Vec<&WorkflowStep> = completed.chain([self.state]).collect();
        let mut last = self.state;
        while let Some(next) = last.next.first().and_then(|name| self.workflow.state(name)) {
            if route.iter().any(|state| state.name == next.name) {
                break;
            }
            route.push(next);
            last = next;
        }
        route
    }

    /// The slot of a key; the current state's takes precedence.
    pub fn slot(&self, key: &str) -> Option<&'a Slot> {
        let mut slots =
            self.state.collect.iter().chain(self.workflow.states.iter().flat_map(|one| &one.collect));
        slots.find(|slot| slot.key == key)
    }

    /// All keys, in file order.
    pub fn keys(&self) -> Vec<&'a str> {
        let mut seen = BTreeSet::new();
        let keys = self.workflow.states.iter().flat_map(|state| &state.collect).map(|slot| slot.key.as_str());
        keys.filter(|key| seen.insert(*key)).collect()
    }

    /// Required slots of the current state without a value.
    pub fn missing(&self) -> Vec<&'a Slot> {
        let missing = |slot: &&Slot| slot.required && !self.data.values.contains_key(&slot.key);
        self.state.collect.iter().filter(missing).collect()
    }

    /// Slots of the current state that can still be asked for, in file order.
    pub fn open(&self) -> Vec<&'a Slot> {
        self.state.collect.iter().filter(|slot| !self.is_answered(slot)).collect()
    }

    pub fn waits(&self) -> Waits<'a> {
        if let Some(held) = &self.data.held {
            return Waits::Change(held.clone());
        }
        if let Some(tool) = self.state.run.as_deref().filter(|_| !self.data.is_ready) {
            return Waits::Tool(tool);
        }
        let missing = self.missing();
        if !missing.is_empty() {
            return Waits::Values(missing);
        }
        if let Some(question) = self.state.confirm.as_deref().filter(|_| !self.data.is_agreed) {
            return Waits::Confirm(question);
        }
        match self.state.next.as_slice() {
            [] => Waits::Done,
            [next] => Waits::Onward(next),
            several => Waits::Choice(several),
        }
    }

    /// Sets values, all or none. Returns the keys whose value changed.
    pub fn take(&mut self, given: &BTreeMap<String, String>) -> Result<Vec<String>, Refusal> {
        let mut checked = Vec::new();
        for (key, text) in given {
            let slot = self.slot(key).ok_or_else(|| self.unknown(key))?;
            let is_left_out = text.trim().is_empty() && !slot.required;
            checked.push((slot, if is_left_out { None } else { Some(value::checked(slot, text)?) }));
        }
        let mut changed = Vec::new();
        for (slot, text) in checked {
            match text {
                Some(text) if self.data.values.get(&slot.key) != Some(&text) => {
                    self.data.values.insert(slot.key.clone(), text);
                    changed.push(slot.key.clone());
                }
                Some(_) => {}
                None => drop(self.data.skipped.insert(slot.key.clone())),
            }
        }
        if !given.is_empty() {
            self.data.held = None;
            self.data.asked = None;
        }
        self.changed(&changed);
        Ok(changed)
    }

    /// Skips an optional key.
    pub fn skip(&mut self, key: &str) -> Result<(), Refusal> {
        let slot = self.slot(key).ok_or_else(|| self.unknown(key))?;
        if slot.required {
            return Err(Refusal::Needed(slot.key.clone()));
        }
        self.data.skipped.insert(slot.key.clone());
        self.data.asked = None;
        Ok(())
    }

    /// Advances to a declared next state, if the current one is complete. `None` selects the only one.
    pub fn go(&mut self, to: Option<&str>) -> Result<(), Refusal> {
        let from = || self.name().to_owned();
        let ways = || self.state.next.iter().map(|way| way.0.clone()).collect::<Vec<_>>();
        let next = match to {
            Some(to) => {
                let way = self.state.next.iter().find(|way| way.0 == to);
                Some(way.ok_or_else(|| Refusal::NoWay { from: from(), to: to.to_owned(), ways: ways() })?)
            }
            None => None,
        };
        let only = match self.waits() {
            Waits::Onward(only) => Some(only),
            Waits::Choice(_) => None,
            Waits::Done => {
                return Err(Refusal::NoWay { from: from(), to: to.unwrap_or("?").to_owned(), ways: ways() });
            }
            Waits::Change(held) => return Err(Refusal::Held(held.reason())),
            Waits::Tool(_) => return Err(Refusal::NotReady(from())),
            Waits::Values(slots) => {
                let keys = slots.iter().map(|slot| slot.key.clone()).collect();
                return Err(Refusal::Missing { state: from(), keys });
            }
            Waits::Confirm(question) => return Err(Refusal::NotConfirmed(question.to_owned())),
        };
        let undecided = || Refusal::Undecided { from: from(), ways: ways() };
        let next = next.or(only).ok_or_else(undecided)?;
        let next = self.workflow.state(next).ok_or_else(undecided)?;
        // The question was about the default. A yes to it does not approve what follows another state.
        self.data.has_consent &= self.state.next.first() == Some(&next.name);
        self.data.trail.push(self.state.name.0.clone());
        self.move_to(next);
        self.arrive();
        Ok(())
    }

    /// Whether a message of this run can answer the state's question: the user must have seen it before.
    pub fn was_asked(&self, run_id: RunId, said_at: Timestamp) -> bool {
        self.data
            .question
            .as_ref()
            .is_some_and(|put| put.run_id != run_id && put.at.as_millisecond() <= said_at.as_millisecond())
    }

    /// Removes the hold, so that the workflow advances unchanged.
    pub fn release(&mut self) {
        self.data.held = None;
        self.data.asked = None;
    }

    fn find(&self, name: &str) -> Option<&'a WorkflowStep> {
        self.workflow.states.iter().find(|state| state.name.0 == name)
    }

    fn unknown(&self, key: &str) -> Refusal {
        let keys = self.keys();
        let nearest = value::nearest(key, keys.iter().copied()).map(str::to_owned);
        let known = keys.into_iter().map(str::to_owned).collect();
        Refusal::UnknownKey { key: key.to_owned(), known, nearest }
    }
}

mod moves;
#[cfg(test)]
mod tests;
