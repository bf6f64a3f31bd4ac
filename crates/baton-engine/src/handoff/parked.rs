//! The runs of a handoff that wait for a person. They end with the handoff: otherwise the next message of the user, who is with another
//! agent again, would answer a question of the agent that they have left.

use baton_core::store::{HandoffSession, Step};
use baton_core::{HandoffId, RunId, StoreError, TenantStore};

use crate::routing::{RoutingDecision, RunRoute};

/// Returns the runs that wait for a person and are answered by the holder of `handoff`.
pub(super) async fn parked_runs(
    store: &dyn TenantStore,
    handoff: &HandoffSession,
) -> Result<Vec<RunId>, StoreError> {
    let open = store.open_approvals(handoff.thread_id).await?.into_iter();
    let awaited = open.filter(|one| !one.request.is_workflow_question());
    let mut parked: Vec<RunId> = awaited.map(|one| one.run_id).collect();
    parked.sort_unstable();
    parked.dedup();
    let mut found = Vec::new();
    for run in parked {
        let steps = store.steps(run).await?;
        if steps.iter().any(|step| gives_to_holder(step, handoff.handoff_id)) {
            found.push(run);
        }
    }
    Ok(found)
}

/// Whether the step routes its run to the holder, or opens the handoff in the middle of its run.
fn gives_to_holder(step: &Step, handoff: HandoffId) -> bool {
    if step.path.ends_with("/lease") {
        return step.data.read().is_ok_and(|opened: HandoffId| opened == handoff);
    }
    // The step of the route has the path of the run.
    let is_route = !step.path.contains('/');
    is_route
        && step.data.read().is_ok_and(|routing: RoutingDecision| {
            let is_held = matches!(routing.route, RunRoute::Held(_) | RunRoute::SecondRequest(_));
            is_held && routing.handoff_id == Some(handoff)
        })
}
