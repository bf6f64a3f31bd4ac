//! The stored results of sub-agents, one for each, before any synthesis.

use baton_core::event::EventKind;
use baton_core::store::{NewEvent, Step, StepKind, StepState};
use baton_core::{RunId, StoreError, SubAgentResult, TenantStore};
use serde_json::Value;

use crate::bounds::InvocationKind;
use crate::failure::Failure;
use crate::journal::Record;
use crate::scope::Scope;

const SEGMENT: &str = "results";

/// The results that sub-agents returned to the holder of the baton, in the order in which a model or the caller asked for them.
/// Results of nested sub-agents are left out: they belong to the sessions of those that asked for them.
pub async fn results(store: &dyn TenantStore, run: RunId) -> Result<Vec<SubAgentResult>, StoreError> {
    Ok(results_in(&store.steps(run).await?))
}

/// Like [`results`], from the steps of the run.
pub fn results_in(steps: &[Step]) -> Vec<SubAgentResult> {
    let kept = steps.iter().filter(|step| step.kind == StepKind::Note && is_from_holder(&step.path));
    kept.flat_map(read).collect()
}

/// Data that cannot be read counts as no results.
fn read(step: &Step) -> Vec<SubAgentResult> {
    step.data.read().unwrap_or_default()
}

fn is_from_holder(path: &str) -> bool {
    let behind =
        [InvocationKind::Call, InvocationKind::Delegate, InvocationKind::Advisor, InvocationKind::Member];
    let is_behind = |segment: &str| {
        segment
            .split_once(':')
            .is_some_and(|(word, _)| behind.iter().any(|invocation| invocation.word() == word))
    };
    path.rsplit('/').next() == Some(SEGMENT) && !path.split('/').any(is_behind)
}

/// Records the results of the sub-agents that this scope asked. After a crash they are read instead of asking again.
pub(crate) async fn keep_results(scope: &Scope, results: &[SubAgentResult]) -> Result<(), Failure> {
    let place = scope.at(SEGMENT);
    if place.step().is_finished() {
        return Ok(());
    }
    let steps = vec![place.step().build(StepKind::Note, StepState::Finished, &results)?];
    // Stored before the next step of this scope, which is the one that relies on it.
    scope.run.recorder.journal.commit_soon(Record { steps, ..Record::default() }).await;
    Ok(())
}

/// Publishes the result of one sub-agent as soon as it is there, and once. A cancelled sub-agent has none.
pub(crate) async fn emit_result(scope: &Scope, result: &SubAgentResult) -> Result<(), Failure> {
    let place = scope.at(&format!("result:{}", result.agent_id));
    let is_ended = result.error_type.as_deref() == Some(Failure::Cancelled.code());
    if is_ended || place.step().is_finished() {
        return Ok(());
    }
    let steps = vec![place.step().build(StepKind::Note, StepState::Finished, &Value::Null)?];
    let told = scope.event(scope.visibility(), EventKind::SubAgentFinished(result.clone()));
    let events = vec![NewEvent { agent: result.agent_id.clone(), ..told }];
    scope.run.recorder.journal.commit_soon(Record { steps, events, ..Record::default() }).await;
    Ok(())
}

/// The results that were recorded before a crash.
pub(crate) fn kept_results(scope: &Scope) -> Result<Option<Vec<SubAgentResult>>, Failure> {
    scope.at(SEGMENT).step().finished()
}

#[cfg(test)]
mod tests {
    use super::is_from_holder;

    #[test]
    fn nested_results_belong_to_the_sub_agent() {
        for path in
            ["a/results", "a/turn:1/tool:2/results", "a/turn:1/tool:1/route:delegate/turn:1/tool:1/results"]
        {
            assert!(is_from_holder(path), "{path}");
        }
        for path in [
            "a/turn:1/tool:1",
            "a/turn:1/tool:1/delegate:b/turn:1/tool:1/results",
            "a/advisor:results/turn:1/tool:1/results",
            "a/denied",
        ] {
            assert!(!is_from_holder(path), "{path}");
        }
    }
}
