//! Effects that happen once. `finished` returns the outcome that was recorded before a crash. Code that performs an effect
//! records its start (`begin`) and its end (`finish`).

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
    /// The outcome of the step at this path, if it finished before the run's process died.
    pub(crate) fn finished<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.recorded(StepState::Finished)
    }

    /// The data of the step at this path, if it was started and not finished when the run's process died.
    pub(crate) fn interrupted<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.recorded(StepState::Started)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.run.steps.get(self.path()).is_some_and(|step| step.state == StepState::Finished)
    }

    /// Whether an earlier attempt started the step at this path.
    pub(crate) fn is_recorded(&self) -> bool {
        self.run.steps.contains_key(self.path())
    }

    fn recorded<T: DeserializeOwned>(&self, state: StepState) -> Result<Option<T>, Failure> {
        let step = self.run.steps.get(self.path()).filter(|step| step.state == state);
        let Some(step) = step else { return Ok(None) };
        serde_json::from_value(step.data.clone()).map(Some).map_err(|error| {
            Failure::Interrupted(format!("what it recorded at {} cannot be read: {error}", step.path))
        })
    }

    /// Records that a step starts. Returns when the step and its events are stored.
    pub(crate) async fn begin(
        &self,
        kind: StepKind,
        data: &impl Serialize,
        events: Vec<NewEvent>,
    ) -> Result<(), Failure> {
        let steps = vec![self.step(kind, StepState::Started, data)?];
        self.run.journal.commit(Record { steps, events, ..Record::default() }).await
    }

    /// Like [`Scope::begin`], for a step that may be repeated: does not wait for the append.
    pub(crate) async fn begin_soon(
        &self,
        kind: StepKind,
        data: &impl Serialize,
        events: Vec<NewEvent>,
        rows: Vec<LedgerRow>,
    ) -> Result<(), Failure> {
        let steps = vec![self.step(kind, StepState::Started, data)?];
        self.run.ledger.count(&rows);
        self.run.journal.commit_soon(Record { steps, events, rows, ..Record::default() }).await;
        Ok(())
    }

    /// Records the outcome of a step. Once it is stored, the step is never repeated. Does not wait for the append: if a crash
    /// loses it, the step is repeated or, if it must not be, has an unknown outcome.
    pub(crate) async fn finish(
        &self,
        kind: StepKind,
        outcome: &impl Serialize,
        events: Vec<NewEvent>,
        rows: Vec<LedgerRow>,
    ) -> Result<(), Failure> {
        let steps = vec![self.step(kind, StepState::Finished, outcome)?];
        self.run.ledger.count(&rows);
        self.run.journal.commit_soon(Record { steps, events, rows, ..Record::default() }).await;
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
