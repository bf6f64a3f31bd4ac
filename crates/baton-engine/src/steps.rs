//! Effects that happen once. `finished` returns the outcome that was recorded before a crash. Code that performs an effect
//! records its start (`begin`) and its end (`finish`).

use baton_core::store::work::InterruptedCall;
use baton_core::store::{NewArtifact, NewEvent, SpooledOutput, Step, StepData, StepKind, StepState};
use baton_core::{LedgerRow, SessionId, StoreError};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::journal::Record;
use crate::run_state::RunState;

/// What is stored beside the outcome of a step.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    pub(crate) outputs: Vec<SpooledOutput>,
    pub(crate) artifacts: Vec<NewArtifact>,
}

/// Records the step at one path of a run, and reads what earlier attempts of the run recorded there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepRecorder<'a> {
    run: &'a RunState,
    session_id: &'a SessionId,
    path: &'a str,
}

impl<'a> StepRecorder<'a> {
    pub(crate) fn new(run: &'a RunState, session_id: &'a SessionId, path: &'a str) -> Self {
        Self { run, session_id, path }
    }

    /// The outcome of the step, if it finished before the run's process died.
    pub(crate) fn finished<T: DeserializeOwned>(self) -> Result<Option<T>, Failure> {
        self.recorded(StepState::Finished)
    }

    /// The data of the step, if it was started and not finished when the run's process died.
    pub(crate) fn interrupted<T: DeserializeOwned>(self) -> Result<Option<T>, Failure> {
        self.recorded(StepState::Started)
    }

    pub(crate) fn is_finished(self) -> bool {
        self.step().is_some_and(|step| step.state == StepState::Finished)
    }

    /// Whether an earlier attempt started the step.
    pub(crate) fn is_recorded(self) -> bool {
        self.step().is_some()
    }

    fn step(self) -> Option<&'a Step> {
        self.run.recorder.steps.get(self.path)
    }

    fn recorded<T: DeserializeOwned>(self, state: StepState) -> Result<Option<T>, Failure> {
        let Some(step) = self.step().filter(|step| step.state == state) else { return Ok(None) };
        step.data.read().map(Some).map_err(|error| {
            Failure::Interrupted(format!("what it recorded at {} cannot be read: {error}", step.path))
        })
    }

    /// Records that the step starts. Returns when the step and its events are stored.
    pub(crate) async fn begin(
        self,
        kind: StepKind,
        data: &impl Serialize,
        events: Vec<NewEvent>,
    ) -> Result<(), Failure> {
        let steps = vec![self.build(kind, StepState::Started, data)?];
        self.run.recorder.journal.commit(Record { steps, events, ..Record::default() }).await
    }

    /// Like [`StepRecorder::begin`], for a step that may be repeated: does not wait for the append.
    pub(crate) async fn begin_soon(
        self,
        kind: StepKind,
        data: &impl Serialize,
        events: Vec<NewEvent>,
        rows: Vec<LedgerRow>,
    ) -> Result<(), Failure> {
        let steps = vec![self.build(kind, StepState::Started, data)?];
        self.commit_soon(Record { steps, events, rows, ..Record::default() }).await;
        Ok(())
    }

    /// Like [`StepRecorder::begin_soon`], for a model call.
    pub(crate) async fn begin_turn(self, call: InterruptedCall) {
        let step = self.with_data(StepKind::Turn, StepState::Started, StepData::default());
        self.run.recorder.journal.turn_started(step, call).await;
    }

    /// Records the outcome of the step. Once it is stored, the step is never repeated. Does not wait for the append: if a crash
    /// loses it, the step is repeated or, if it must not be, has an unknown outcome.
    pub(crate) async fn finish(
        self,
        kind: StepKind,
        outcome: &impl Serialize,
        events: Vec<NewEvent>,
        rows: Vec<LedgerRow>,
    ) -> Result<(), Failure> {
        let steps = vec![self.build(kind, StepState::Finished, outcome)?];
        self.commit_soon(Record { steps, events, rows, ..Record::default() }).await;
        Ok(())
    }

    /// Like [`StepRecorder::finish`], with long output and files. If there are any, returns when they and the step are committed,
    /// all or none.
    pub(crate) async fn finish_with(
        self,
        kind: StepKind,
        outcome: &impl Serialize,
        events: Vec<NewEvent>,
        rows: Vec<LedgerRow>,
        attachments: Attachments,
    ) -> Result<(), Failure> {
        let Attachments { outputs, artifacts } = attachments;
        if outputs.is_empty() && artifacts.is_empty() {
            return self.finish(kind, outcome, events, rows).await;
        }
        let steps = vec![self.build(kind, StepState::Finished, outcome)?];
        let record = Record { steps, events, rows, outputs, artifacts, ..Record::default() };
        self.run.recorder.ledger.count(&record.rows);
        self.run.recorder.journal.commit(record).await
    }

    async fn commit_soon(self, record: Record) {
        let recorder = &self.run.recorder;
        recorder.ledger.count(&record.rows);
        recorder.journal.commit_soon(record).await;
    }

    /// The step as it is stored.
    pub(crate) fn build(
        self,
        kind: StepKind,
        state: StepState,
        data: &impl Serialize,
    ) -> Result<Step, Failure> {
        let data = StepData::new(data).map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(self.with_data(kind, state, data))
    }

    fn with_data(self, kind: StepKind, state: StepState, data: StepData) -> Step {
        let (path, session_id) = (self.path.to_owned(), self.session_id.clone());
        Step { path, session_id, kind, state, data, at: Timestamp::now() }
    }
}
