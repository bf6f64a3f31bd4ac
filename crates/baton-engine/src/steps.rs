//! Effects that happen once: `finished` gives back what came of one before a crash, and whoever performs it says so before
//! (`begin`) and after (`finish`).

use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::store::{NewEvent, Step, StepKind, StepState};
use baton_core::{LedgerRow, StoreError};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;
use crate::journal::Record;
use crate::scope::Scope;

impl Scope {
    /// What came of the step at this place, if it was finished before the run's process died.
    pub(crate) fn finished<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.recorded(StepState::Finished)
    }

    /// What was about to happen at this place when the run's process died.
    pub(crate) fn interrupted<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.recorded(StepState::Started)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.run.steps.get(self.path()).is_some_and(|step| step.state == StepState::Finished)
    }

    fn recorded<T: DeserializeOwned>(&self, state: StepState) -> Result<Option<T>, Failure> {
        let step = self.run.steps.get(self.path()).filter(|step| step.state == state);
        let Some(step) = step else { return Ok(None) };
        serde_json::from_value(step.data.clone()).map(Some).map_err(|error| {
            Failure::Interrupted(format!("what it recorded at {} cannot be read: {error}", step.path))
        })
    }

    /// Something is about to happen here. Returns when that is kept, together with the events that say so.
    pub(crate) async fn begin(
        &self,
        kind: StepKind,
        data: &impl Serialize,
        events: Vec<NewEvent>,
    ) -> Result<(), Failure> {
        let steps = vec![self.step(kind, StepState::Started, data)?];
        self.run.journal.keep(Record { steps, events, ..Record::default() }).await
    }

    /// The same for what may be done again: it need not be waited for, only kept before anything is heard of it.
    pub(crate) async fn begin_soon(
        &self,
        kind: StepKind,
        data: &impl Serialize,
        events: Vec<NewEvent>,
        rows: Vec<LedgerRow>,
    ) -> Result<(), Failure> {
        let steps = vec![self.step(kind, StepState::Started, data)?];
        self.run.ledger.count(&rows);
        self.run.journal.keep_soon(Record { steps, events, rows, ..Record::default() }).await;
        Ok(())
    }

    /// It has happened; once that is kept it never happens again. The run does not wait for it: what is lost in a crash is done again, or has
    /// an unknown outcome if it may not be.
    pub(crate) async fn finish(
        &self,
        kind: StepKind,
        outcome: &impl Serialize,
        events: Vec<NewEvent>,
        rows: Vec<LedgerRow>,
    ) -> Result<(), Failure> {
        let steps = vec![self.step(kind, StepState::Finished, outcome)?];
        self.run.ledger.count(&rows);
        self.run.journal.keep_soon(Record { steps, events, rows, ..Record::default() }).await;
        Ok(())
    }

    pub(crate) fn step(
        &self,
        kind: StepKind,
        state: StepState,
        data: &impl Serialize,
    ) -> Result<Step, Failure> {
        let data: Value =
            serde_json::to_value(data).map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(Step {
            path: self.path().to_owned(),
            session_id: self.session_id.clone(),
            kind,
            state,
            data,
            at: Timestamp::now(),
        })
    }

    pub(crate) fn event(&self, kind: EventKind) -> NewEvent {
        self.event_as(self.visibility(), kind)
    }

    pub(crate) fn event_as(&self, visibility: Visibility, kind: EventKind) -> NewEvent {
        let agent = self.agent.name.clone();
        NewEvent { at: Timestamp::now(), agent, path: self.shared_path(), visibility, kind }
    }
}
