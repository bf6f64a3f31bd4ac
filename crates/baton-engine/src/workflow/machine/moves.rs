//! How a walk gets somewhere else than on: back, along the way of a failure, after a no, to a tool that has to run again.

use baton_core::agent::State;

use super::{Machine, Verdict, Waits};
use crate::workflow::data::{Held, Ran};
use crate::workflow::refusal::Refusal;

impl<'a> Machine<'a> {
    /// Back to the last state in which somebody had something to say.
    pub(crate) fn back(&mut self) -> Result<(), Refusal> {
        let has_say = |name: &String| self.find(name).is_some_and(asks);
        let at = self.data.trail.iter().rposition(has_say).ok_or(Refusal::AtTheBeginning)?;
        let Some(state) = self.find(&self.data.trail[at]) else { return Err(Refusal::AtTheBeginning) };
        self.move_to(state);
        self.rest(Held::Back);
        Ok(())
    }

    /// The state's tool did its work.
    pub(crate) fn ran(&mut self, ran: Ran) {
        self.data.ran.insert(self.name().to_owned(), ran);
        self.data.is_ready = true;
    }

    /// The state's tool failed: along the declared way, or to where something can be changed that it depends on.
    pub(crate) fn failed(&mut self, error: String) {
        let held = Held::Failed { state: self.name().to_owned(), error };
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

    /// It is not known whether the state's tool did its work: somebody has to say whether it is to run again.
    pub(crate) fn unsure(&mut self, error: String) {
        self.data.held = Some(Held::Failed { state: self.name().to_owned(), error });
    }

    /// The person answered the question of the state.
    pub(crate) fn confirm(&mut self, verdict: Verdict) -> Result<(), Refusal> {
        let Waits::Confirm(_) = self.waits() else { return Err(Refusal::NothingToConfirm) };
        if verdict != Verdict::No {
            self.data.is_agreed = true;
            self.data.has_consent = verdict == Verdict::Yes;
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

    /// Values are not what they were: tools that looked at them run again, and what the person agreed to is asked again.
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

    /// A state is never twice on the trail, nor on it while the walk is there: what lies behind it lies ahead again.
    pub(super) fn move_to(&mut self, state: &'a State) {
        if let Some(at) = self.data.trail.iter().position(|name| *name == state.name.0) {
            self.data.trail.truncate(at);
        }
        self.state = state;
    }

    /// The state begins anew, with its tool.
    pub(super) fn arrive(&mut self) {
        self.data.is_ready = self.state.run.is_none();
        self.data.is_agreed = false;
        self.data.question = None;
        self.data.asked = None;
        self.data.held = None;
    }

    /// The state is there as it was left, and waits for what somebody says.
    fn rest(&mut self, held: Held) {
        let has_run = self.state.run.is_none() || self.data.ran.contains_key(self.name());
        self.arrive();
        self.data.is_ready = has_run;
        self.data.has_consent = false;
        self.data.held = Some(held);
    }

    fn on_failure(&self) -> Option<&'a State> {
        self.workflow.state(self.state.on_failure.as_ref()?)
    }

    fn last_collecting(&self) -> Option<&'a State> {
        let states = self.data.trail.iter().rev().filter_map(|name| self.find(name));
        states.into_iter().find(|state| !state.collect.is_empty())
    }
}

/// Whether somebody has something to say in a state.
fn asks(state: &State) -> bool {
    !state.collect.is_empty() || state.confirm.is_some()
}
