//! What was spent, and what is left of the budgets.

use axum::Json;
use axum::extract::State;
use baton_core::store::budget::budget_reports;
use jiff::Timestamp;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::Caller;
use crate::problem::ApiResult;
use crate::strict::Params;
use crate::wire::budget::BudgetView;
use crate::wire::problem::ProblemBody;
use crate::wire::usage::{UsageLineView, UsageParams, UsageReport};

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_usage))
}

/// Tokens and money of the tenant, added up. Those that cost most come first, days in their order, and all come at once. `budgets`
/// are those of the tenant and of one user now: `user_id`, or the caller; and that of the thread `thread_id`.
#[utoipa::path(get, path = "/api/v1/usage", tag = "insight", params(UsageParams),
    responses((status = 200, body = UsageReport),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no thread `thread_id`")),
    extensions(("x-permission" = json!("usage:read"))))]
async fn get_usage(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<UsageParams>,
) -> ApiResult<Json<UsageReport>> {
    let store = app.data(&caller);
    let budgets = &app.engine.policy(&caller.tenant).budgets;
    if let Some(thread) = params.thread_id {
        store.thread(thread, None).await?;
    }
    let user = params.user_id.as_ref().unwrap_or(&caller.user);
    let accounts = budgets.accounts(params.thread_id, Some(user), Timestamp::now());
    let budgets = budget_reports(&*store, accounts).await?.into_iter().map(BudgetView::from).collect();
    let lines = store.usage(params.into()).await?;
    let data = lines.into_iter().map(UsageLineView::from).collect();
    Ok(Json(UsageReport { data, next_cursor: None, budgets }))
}
