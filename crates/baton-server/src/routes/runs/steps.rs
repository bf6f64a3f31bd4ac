//! What each step of a run did.

use axum::Json;
use axum::extract::State;
use baton_core::message::Part;
use baton_core::store::{MessageQuery, RunRecord};
use baton_core::{StoreError, TenantStore};

use super::{find, gone};
use crate::app::App;
use crate::identity::Caller;
use crate::problem::ApiResult;
use crate::strict::RunPath;
use crate::wire::problem::ProblemBody;
use crate::wire::step::{RunSteps, StepsOf};

/// What each step of a run did: the steps with what went in and what came out, every call of a model or tool, and every hop of the
/// baton. What looks like a secret is masked.
#[utoipa::path(get, path = "/api/v1/runs/{run_id}/steps", tag = "runs",
    params(("run_id" = uuid::Uuid, Path, description = "The id of the run")),
    responses((status = 200, body = RunSteps),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`not_found`: there is no such run, or it belongs to another user.")),
    extensions(("x-permission" = json!("trace:read"))))]
pub(super) async fn list_steps(
    State(app): State<App>,
    caller: Caller,
    RunPath(run_id): RunPath,
) -> ApiResult<Json<RunSteps>> {
    let run = find(&app, &caller, run_id).await?;
    let data = app.data(&caller);
    let of = StepsOf {
        asked: asked(&*data, &run).await.map_err(gone)?,
        steps: data.steps(run_id).await.map_err(gone)?,
        sessions: data.run_sessions(run_id).await.map_err(gone)?,
        rows: data.ledger(run_id).await.map_err(gone)?,
        hops: data.hops(run.thread_id).await.map_err(gone)?,
        run,
    };
    Ok(Json(RunSteps::from(of)))
}

/// The message that the run is about: the task of its own session.
async fn asked(data: &dyn TenantStore, run: &RunRecord) -> Result<Vec<Part>, StoreError> {
    let query = MessageQuery {
        before: Some(run.message_number + 1),
        include_internal: true,
        include_system: true,
        ..MessageQuery::last(1)
    };
    let found = data.messages(run.thread_id, query).await?.pop();
    Ok(found
        .filter(|found| found.number == run.message_number)
        .map(|found| found.message.parts)
        .unwrap_or_default())
}
