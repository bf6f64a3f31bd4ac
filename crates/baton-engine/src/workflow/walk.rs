//! Executes a workflow: runs entry tools, moves between states and commits every change. The workflow's state at the start of a
//! walk is recorded under its path in the run, so a replay after a crash takes the same decisions and repeats no effect.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::event::EventKind;
use baton_core::store::{HandoffSession, StepKind, StepState, WorkflowState};
use baton_core::tool::ToolError;
use baton_core::workflow::data::{Data, Question, StateFailure};
use baton_core::workflow::{Machine, Waits, WorkflowChange, WorkflowProgress};
use jiff::Timestamp;

use super::entry_tool::{self, EntryOutcome};
use crate::failure::Failure;
use crate::journal::Record;
use crate::lease::HandoffLease;
use crate::scope::Scope;

/// One execution of a workflow within a run: the state machine plus its pending effects.
#[derive(Debug)]
pub(crate) struct WorkflowWalk<'a> {
    /// The path in the run under which the walk is recorded.
    pub(super) place: Scope,
    lease: Arc<HandoffLease>,
    agent: &'a Agent,
    pub(crate) machine: Machine<'a>,
    pub(crate) changes: Vec<WorkflowChange>,
    kept: (String, Data),
    /// Number of entry tools that this walk has run.
    tools: u32,
    /// Number of states that this walk has announced.
    states: u32,
}

/// Whether [`WorkflowWalk::onward`] stops in a state to ask for its optional values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionalSlots {
    Asked,
    Left,
}

impl<'a> WorkflowWalk<'a> {
    /// Starts a walk at `place`, from the state that was recorded there before a crash or else from the lease. Returns `None` if
    /// the agent has no workflow.
    pub(crate) async fn begin(
        place: Scope,
        lease: &Arc<HandoffLease>,
        agent: &'a Agent,
    ) -> Result<Option<Self>, Failure> {
        let Some(workflow) = &agent.workflow else { return Ok(None) };
        let before: Option<WorkflowState> = match place.step().interrupted()? {
            Some(before) => before,
            None => {
                let before = lease.workflow();
                place.step().begin_soon(StepKind::Note, &before, Vec::new(), Vec::new()).await?;
                before
            }
        };
        let Some(machine) = Machine::read(workflow, before.as_ref()) else { return Ok(None) };
        let kept = (machine.name().to_owned(), machine.data.clone());
        let (lease, changes) = (Arc::clone(lease), Vec::new());
        Ok(Some(Self { place, lease, agent, machine, changes, kept, tools: 0, states: 0 }))
    }

    /// Advances until the workflow needs the user or the model, or is done.
    pub(crate) async fn onward(&mut self, optional: OptionalSlots) -> Result<(), Failure> {
        self.settle().await?;
        let mut seen = BTreeSet::from([self.machine.name()]);
        loop {
            match self.machine.waits() {
                Waits::Tool(tool) => self.enter(tool).await?,
                Waits::Onward(_) if optional == OptionalSlots::Asked && !self.machine.open().is_empty() => {
                    break;
                }
                // A cycle of states without input stops here until the next message.
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
        let is_asked = optional == OptionalSlots::Left || self.machine.open().is_empty();
        if matches!(self.machine.waits(), Waits::Confirm(_))
            && self.machine.data.question.is_none()
            && is_asked
        {
            let question = Question { run_id: self.place.run.run_id, at: Timestamp::now() };
            self.machine.data.question = Some(question);
        }
        self.settle().await
    }

    /// Runs the entry tool of the current state.
    async fn enter(&mut self, tool: &str) -> Result<(), Failure> {
        self.tools += 1;
        let place = self.place.at(&format!("entry:{}", self.tools));
        let tool = tool.to_owned();
        let called = entry_tool::call(&place, &self.machine, &tool).await;
        if matches!(called, Err(Failure::Cancelled)) && self.machine.data.has_consent {
            // The consent was for this call, whose effect is unknown now.
            self.machine.unsure(StateFailure::new(&ToolError::OutcomeUnknown, false));
            self.settle().await?;
        }
        match called? {
            EntryOutcome::Ran { ran, is_untrusted } => {
                self.changes.push(WorkflowChange::Ran { tool, text: ran.text.clone(), is_untrusted });
                self.machine.ran(ran);
            }
            EntryOutcome::Failed(failure) => {
                self.changes.push(WorkflowChange::failed(tool, &failure));
                self.machine.failed(failure);
            }
            EntryOutcome::Unsure(failure) => {
                self.changes.push(WorkflowChange::failed(tool, &failure));
                self.machine.unsure(failure);
            }
        }
        Ok(())
    }

    /// Commits the changes since the last call. Announces the state if it is a new one.
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
            self.changes.push(WorkflowChange::Entered(kept.state.clone()));
            record = record.and(self.announced(&kept)?);
        }
        self.place.run.recorder.journal.commit_soon(record).await;
        Ok(())
    }

    /// Record that announces the current state; empty if it was announced before a crash.
    fn announced(&mut self, kept: &WorkflowState) -> Result<Record, Failure> {
        self.states += 1;
        let progress = WorkflowProgress::of(self.agent, kept);
        self.place.run.progress.announce(progress.as_ref());
        let place = self.place.at(&format!("state:{}", self.states));
        if place.step().is_finished() {
            return Ok(Record::default());
        }
        let steps = vec![place.step().build(StepKind::Note, StepState::Finished, &progress)?];
        let event = progress.map(|progress| place.event(place.visibility(), EventKind::Progress(progress)));
        let events = event.into_iter().collect();
        Ok(Record { steps, events, ..Record::default() })
    }
}

/// Stores `kept` unless the lease has a newer one. A worker that was presumed dead and still writes must not undo later changes.
fn replace(handoff: &mut HandoffSession, kept: &WorkflowState, changes: u64) {
    let now = handoff.workflow.as_ref().map(|now| Data::read(&now.data).changes);
    if now.is_none_or(|now| now < changes) {
        handoff.workflow = Some(kept.clone());
    }
}
