//! Transitions other than forward: back, on failure, after a refusal, and to a tool that must run again.

use crate::agent::WorkflowStep;

use super::{Confirmation, Machine, Waits};
use crate::workflow::data::{Held, Ran, StateFailure};
use crate::workflow::refusal::Refusal;

impl<'a> Machine<'a> {
    /// Returns to the last state that involves the user.
    pub fn back(&mut self) -> Result<(), Refusal> {
        let has_say = |name: &String| self.find(name).is_some_and(asks);
        let at = self.data.trail.iter().rposition(has_say).ok_or(Refusal::AtTheBeginning)?;
        let Some(state) = self.find(&self.data.trail[at]) else { return Err(Refusal::AtTheBeginning) };
        self.move_to(state);
        self.rest(Held::Back);
        Ok(())
    }

    /// The state's tool succeeded. This uses up the user's consent: the next tool needs another confirmation.
    pub fn ran(&mut self, ran: Ran) {
        self.data.has_consent = false;
        self.data.ran.insert(self.name().to_owned(), ran);
        self.data.is_ready = true;
    }

    /// The state's tool failed: enters the `on_failure` state, or else the last state that collects values, if any.
    pub fn failed(&mut self, failure: StateFailure) {
        let held = Held::Failed { state: self.name().to_owned(), failure };
        if let Some(state) = self.on_failure() {
            self.move_to(state);
            self.arrive();
            self.data.held = Some(held);
        } else {
            match self.last_collecting() {
                Some(state) => {
                    self.move_to(state);
                    self.rest(held);
                }
                None => self.data.held = Some(held),
            }
        }
        self.data.has_consent = false;
    }

    /// The outcome of the state's tool is unknown: the user decides whether to run it again.
    pub fn unsure(&mut self, failure: StateFailure) {
        self.data.has_consent = false;
        self.data.held = Some(Held::Failed { state: self.name().to_owned(), failure });
    }

    /// Applies the user's answer to the state's question.
    pub fn confirm(&mut self, verdict: Confirmation) -> Result<(), Refusal> {
        let Waits::Confirm(_) = self.waits() else { return Err(Refusal::NothingToConfirm) };
        if verdict != Confirmation::No {
            self.data.is_agreed = true;
            self.data.has_consent = verdict == Confirmation::Yes;
            self.data.question = None;
            return Ok(());
        }
        let held = Held::Declined { state: self.name().to_owned() };
        if let Some(state) = self.on_failure() {
            self.move_to(state);
            self.arrive();
            self.data.held = Some(held);
        } else {
            let here = (!self.state.collect.is_empty()).then_some(self.state);
            match here.or_else(|| self.last_collecting()) {
                Some(state) if state.name != self.state.name => {
                    self.move_to(state);
                    self.rest(held);
                }
                _ => self.data.held = Some(held),
            }
        }
        self.data.has_consent = false;
        self.data.question = None;
        Ok(())
    }

    /// Values have changed: tools that used them run again, and confirmations are asked for again.
    pub(super) fn changed(&mut self, keys: &[String]) {
        if keys.is_empty() {
            return;
        }
        self.data.is_agreed = false;
        self.data.has_consent = false;
        self.data.question = None;
        let looked = |name: &str| {
            self.data.ran.get(name).is_some_and(|ran| keys.iter().any(|key| ran.uses.contains(key)))
        };
        let earlier = self.data.trail.iter().find(|name| looked(name)).and_then(|name| self.find(name));
        if let Some(state) = earlier {
            self.move_to(state);
            self.arrive();
        } else if looked(self.name()) {
            self.data.is_ready = self.state.run.is_none();
        }
    }

    /// The trail never contains the current state: moving to a state on the trail truncates it there.
    pub(super) fn move_to(&mut self, state: &'a WorkflowStep) {
        if let Some(at) = self.data.trail.iter().position(|name| *name == state.name.0) {
            self.data.trail.truncate(at);
        }
        self.state = state;
    }

    /// Enters the state anew, including its tool.
    pub(super) fn arrive(&mut self) {
        self.data.is_ready = self.state.run.is_none();
        self.data.is_agreed = false;
        self.data.question = None;
        self.data.asked = None;
        self.data.held = None;
    }

    /// Enters the state without running its tool again, and waits for an instruction.
    fn rest(&mut self, held: Held) {
        let has_run = self.state.run.is_none() || self.data.ran.contains_key(self.name());
        self.arrive();
        self.data.is_ready = has_run;
        self.data.has_consent = false;
        self.data.held = Some(held);
    }

    fn on_failure(&self) -> Option<&'a WorkflowStep> {
        self.workflow.state(self.state.on_failure.as_ref()?)
    }

    fn last_collecting(&self) -> Option<&'a WorkflowStep> {
        let states = self.data.trail.iter().rev().filter_map(|name| self.find(name));
        states.into_iter().find(|state| !state.collect.is_empty())
    }
}

/// Whether a state involves the user.
fn asks(state: &WorkflowStep) -> bool {
    !state.collect.is_empty() || state.confirm.is_some()
}
