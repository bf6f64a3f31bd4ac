//! A walk with its effects. Each change is kept before anybody hears of it, and the run records what the walk looked like when the
//! place in the run was reached: after a crash everything from there is decided again in the same way, and done once.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::store::{HandoffSession, StepKind, StepState, WorkflowState};
use jiff::Timestamp;

use super::data::{Data, Question};
use super::entry_tool::{self, Entered};
use super::machine::{Machine, Waits};
use super::progress;
use crate::failure::Failure;
use crate::handoff::lease::Lease;
use crate::journal::Record;
use crate::scope::Scope;

/// Something that happened on the way, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Happened {
    Entered(String),
    Ran { tool: String, text: String },
    Failed { tool: String, error: String },
}

#[derive(Debug)]
pub(crate) struct Walk<'a> {
    /// Where in the run it happens.
    place: Scope,
    lease: Arc<Lease>,
    agent: &'a Agent,
    pub(crate) machine: Machine<'a>,
    pub(crate) happened: Vec<Happened>,
    kept: (String, Data),
    /// Tools that were run here.
    tools: u32,
    /// States that were announced here.
    states: u32,
}

/// Whether optional values are asked for before a state is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Optional {
    Asked,
    Left,
}

impl<'a> Walk<'a> {
    /// The walk of the scope's agent, as it was when `place` was reached first.
    pub(crate) async fn begin(
        place: Scope,
        lease: &Arc<Lease>,
        agent: &'a Agent,
    ) -> Result<Option<Self>, Failure> {
        let Some(workflow) = &agent.workflow else { return Ok(None) };
        let before: Option<WorkflowState> = match place.interrupted()? {
            Some(before) => before,
            None => {
                let before = lease.workflow();
                place.begin_soon(StepKind::Note, &before, Vec::new(), Vec::new()).await?;
                before
            }
        };
        let Some(machine) = Machine::read(workflow, before.as_ref()) else { return Ok(None) };
        let kept = (machine.name().to_owned(), machine.data.clone());
        let (lease, happened) = (Arc::clone(lease), Vec::new());
        Ok(Some(Self { place, lease, agent, machine, happened, kept, tools: 0, states: 0 }))
    }

    /// Goes on as far as nobody is needed.
    pub(crate) async fn onward(&mut self, optional: Optional) -> Result<(), Failure> {
        self.settle().await?;
        let mut seen = BTreeSet::from([self.machine.name()]);
        loop {
            match self.machine.waits() {
                Waits::Tool(tool) => self.enter(tool).await?,
                Waits::Onward(_) if optional == Optional::Asked && !self.machine.open().is_empty() => break,
                // States that lead to each other in a circle wait for the next message.
                Waits::Onward(next) if seen.contains(next.0.as_str()) => break,
                Waits::Onward(next) => {
                    seen.insert(&next.0);
                    if self.machine.go(None).is_err() {
                        break;
                    }
                }
                _ => break,
            }
            self.settle().await?;
        }
        let is_asked = optional == Optional::Left || self.machine.open().is_empty();
        if matches!(self.machine.waits(), Waits::Confirm(_))
            && self.machine.data.question.is_none()
            && is_asked
        {
            let question = Question { run_id: self.place.run.run_id, at: Timestamp::now() };
            self.machine.data.question = Some(question);
        }
        self.settle().await
    }

    /// Runs the tool of the state.
    async fn enter(&mut self, tool: &str) -> Result<(), Failure> {
        self.tools += 1;
        let place = self.place.at(&format!("entry:{}", self.tools));
        let tool = tool.to_owned();
        match entry_tool::call(&place, &self.machine, &tool).await? {
            Entered::Ran(ran) => {
                self.happened.push(Happened::Ran { tool, text: ran.text.clone() });
                self.machine.ran(ran);
            }
            Entered::Failed(error) => {
                self.happened.push(Happened::Failed { tool, error: error.clone() });
                self.machine.failed(error);
            }
            Entered::Unsure(error) => {
                self.happened.push(Happened::Failed { tool, error: error.clone() });
                self.machine.unsure(error);
            }
        }
        Ok(())
    }

    /// Keeps what has changed, then says where the walk is if it is somewhere else.
    pub(crate) async fn settle(&mut self) -> Result<(), Failure> {
        let (state, data) = &self.kept;
        let is_elsewhere = state != self.machine.name();
        if !is_elsewhere && *data == self.machine.data {
            return Ok(());
        }
        self.machine.data.changes += 1;
        let kept = self.machine.kept();
        let changes = self.machine.data.changes;
        let change = self.lease.change(|handoff| replace(handoff, &kept, changes));
        self.kept = (kept.state.clone(), self.machine.data.clone());
        let mut record = Record { handoffs: vec![change], ..Record::default() };
        if is_elsewhere {
            self.happened.push(Happened::Entered(kept.state.clone()));
            record = record.and(self.announced(&kept)?);
        }
        self.place.run.journal.keep_soon(record).await;
        Ok(())
    }

    /// Where the walk is; nothing if that was said before a crash.
    fn announced(&mut self, kept: &WorkflowState) -> Result<Record, Failure> {
        self.states += 1;
        let place = self.place.at(&format!("state:{}", self.states));
        if place.is_finished() {
            return Ok(Record::default());
        }
        let events = progress(self.agent, kept).map(|progress| place.event(progress)).into_iter().collect();
        let steps = vec![place.step(StepKind::Note, StepState::Finished, &kept.state)?];
        Ok(Record { steps, events, ..Record::default() })
    }
}

/// Whoever was taken for dead and still writes does not undo what came after.
fn replace(handoff: &mut HandoffSession, kept: &WorkflowState, changes: u64) {
    let now = handoff.workflow.as_ref().map(|now| Data::read(&now.data).changes);
    if now.is_none_or(|now| now < changes) {
        handoff.workflow = Some(kept.clone());
    }
}
