//! What those brought who worked for others, as it is kept: each on its own, whatever was made of it.

use baton_core::event::EventKind;
use baton_core::store::{NewEvent, Step, StepKind, StepState};
use baton_core::{RunId, StoreError, SubAgentResult, TenantStore};
use serde_json::Value;

use crate::bounds::Edge;
use crate::failure::Failure;
use crate::journal::Record;
use crate::scope::Scope;

const PLACE: &str = "results";

/// What others brought to whoever had the baton in a run, in the order in which they were asked: because a model called them, or
/// because the caller did. What they had done for them by others is their own affair, and in their sessions.
pub async fn results(store: &dyn TenantStore, run: RunId) -> Result<Vec<SubAgentResult>, StoreError> {
    Ok(results_in(&store.steps(run).await?))
}

/// The same for whoever has read the steps of the run already.
pub fn results_in(steps: &[Step]) -> Vec<SubAgentResult> {
    let kept = steps.iter().filter(|step| step.kind == StepKind::Note && is_of_the_holder(&step.path));
    kept.flat_map(read).collect()
}

/// What cannot be read is not there; nobody is helped by an error here.
fn read(step: &Step) -> Vec<SubAgentResult> {
    serde_json::from_value(step.data.clone()).unwrap_or_default()
}

fn is_of_the_holder(path: &str) -> bool {
    let behind = [Edge::Call, Edge::Delegate, Edge::Advisor, Edge::Member];
    let is_behind = |segment: &str| {
        segment.split_once(':').is_some_and(|(word, _)| behind.iter().any(|edge| edge.word() == word))
    };
    path.rsplit('/').next() == Some(PLACE) && !path.split('/').any(is_behind)
}

impl Scope {
    /// Keeps what came of asking others from this place. After a crash it is the same again, or is not asked for any more.
    pub(crate) async fn keep_results(&self, results: &[SubAgentResult]) -> Result<(), Failure> {
        let place = self.at(PLACE);
        if place.is_finished() {
            return Ok(());
        }
        let steps = vec![place.step(StepKind::Note, StepState::Finished, &results)?];
        // Before the next step of this place, which is what makes it count.
        self.run.journal.keep_soon(Record { steps, ..Record::default() }).await;
        Ok(())
    }

    /// Tells whoever had others asked from this place what one of them brought, as soon as it is there, and once. Who was told to end
    /// brought nothing.
    pub(crate) async fn tell_result(&self, result: &SubAgentResult) -> Result<(), Failure> {
        let place = self.at(&format!("result:{}", result.agent_id));
        let is_ended = result.error_type.as_deref() == Some(Failure::Cancelled.code());
        if is_ended || place.is_finished() {
            return Ok(());
        }
        let steps = vec![place.step(StepKind::Note, StepState::Finished, &Value::Null)?];
        let told = self.event(EventKind::Brought(result.clone()));
        let events = vec![NewEvent { agent: result.agent_id.clone(), ..told }];
        self.run.journal.keep_soon(Record { steps, events, ..Record::default() }).await;
        Ok(())
    }

    /// What came of it before a crash.
    pub(crate) fn kept_results(&self) -> Result<Option<Vec<SubAgentResult>>, Failure> {
        self.at(PLACE).finished()
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_the_holder;

    #[test]
    fn what_sub_agents_have_others_do_is_theirs() {
        for path in
            ["a/results", "a/turn:1/tool:2/results", "a/turn:1/tool:1/route:delegate/turn:1/tool:1/results"]
        {
            assert!(is_of_the_holder(path), "{path}");
        }
        for path in [
            "a/turn:1/tool:1",
            "a/turn:1/tool:1/delegate:b/turn:1/tool:1/results",
            "a/advisor:results/turn:1/tool:1/results",
            "a/denied",
        ] {
            assert!(!is_of_the_holder(path), "{path}");
        }
    }
}
