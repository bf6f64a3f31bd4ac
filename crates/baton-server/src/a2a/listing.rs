//! The list of a caller's tasks (1.0).

use baton_a2a::model::{ListQuery, TaskList};
use baton_core::store::{PageRequest, RunQuery, RunRecord};
use baton_core::{RunId, TenantStore};
use jiff::Timestamp;

use super::chain::{self, Chain, MessageRecord};
use super::context::thread_of;
use super::exchange::Exchange;
use super::failure::{A2aFailure, A2aResult};
use super::tasks::{self, Wanted};

/// The newest runs that are searched.
const MAX_RUNS: usize = 2000;
const DEFAULT_PAGE: u32 = 50;

/// The caller's tasks, those that changed last first. With an agent in the path, those of that agent.
pub async fn list(exchange: &Exchange, query: ListQuery) -> A2aResult<TaskList> {
    let store = exchange.app.data(&exchange.caller);
    let after = query.page_token.as_deref().map(page_start).transpose()?;
    let page_size = query.page_size.unwrap_or(DEFAULT_PAGE) as usize;
    let (mut page, mut total, mut is_more) = (Vec::new(), 0_u32, false);
    for run in candidates(&*store, exchange, &query).await? {
        let is_behind = after.is_none_or(|last| position(&run) < last);
        let (is_on_page, is_rest) =
            (is_behind && page.len() < page_size, is_behind && page.len() == page_size);
        let chain = match query.state {
            // Without a filter only the tasks of the page are read.
            None if !is_on_page => None,
            _ => Some(chain::complete(&*store, run).await?),
        };
        let is_wanted = |chain: &Chain| query.state.is_none_or(|state| tasks::state(chain) == state);
        if !chain.as_ref().is_none_or(is_wanted) {
            continue;
        }
        total += 1;
        is_more |= is_rest;
        page.extend(chain.filter(|_| is_on_page));
    }
    let mut found = Vec::with_capacity(page.len());
    for chain in &page {
        let base = exchange.base.as_deref();
        let wanted = Wanted { history: query.history_length, artifacts: query.include_artifacts, base };
        found.push(tasks::task(&*store, chain, wanted).await?);
    }
    let last = page.last().filter(|_| is_more).map(|chain| token(position(chain.first())));
    let page_size = query.page_size.unwrap_or(DEFAULT_PAGE);
    Ok(TaskList { tasks: found, next_page_token: last.unwrap_or_default(), page_size, total_size: total })
}

/// The order of the list: the last change of a task, and its id.
type Position = (i64, RunId);

fn position(run: &RunRecord) -> Position {
    (changed_at(run).as_microsecond(), run.run_id)
}

fn token((changed, run): Position) -> String {
    format!("{changed}.{run}")
}

fn page_start(token: &str) -> A2aResult<Position> {
    let parsed = token
        .split_once('.')
        .and_then(|(changed, run)| Some((changed.parse().ok()?, RunId::parse(run).ok()?)));
    parsed.ok_or_else(|| A2aFailure::invalid("pageToken is not one of this list"))
}

/// The first runs of tasks, those that changed last first: a run that continues a task is not one of its own.
async fn candidates(
    store: &dyn TenantStore,
    exchange: &Exchange,
    query: &ListQuery,
) -> A2aResult<Vec<RunRecord>> {
    let caller = &exchange.caller;
    let wanted = RunQuery {
        thread_id: query.context_id.as_deref().map(|context| thread_of(caller, context)),
        user_id: Some(caller.user.clone()),
        agent: exchange.agent.as_ref().map(|agent| agent.name.clone()),
        ..RunQuery::default()
    };
    let is_task = |run: &RunRecord| MessageRecord::of_run(run).task_id.is_none();
    let is_recent = |run: &RunRecord| query.changed_after.is_none_or(|after| changed_at(run) >= after);
    let (mut found, mut seen, mut cursor) = (Vec::new(), 0, None);
    loop {
        let page = store.runs(wanted.clone(), PageRequest { limit: PageRequest::MAX_LIMIT, cursor }).await?;
        seen += page.data.len();
        found.extend(page.data.into_iter().filter(|run| is_task(run) && is_recent(run)));
        cursor = page.next_cursor;
        if cursor.is_none() || seen >= MAX_RUNS {
            found.sort_by_key(|run| std::cmp::Reverse(position(run)));
            return Ok(found);
        }
    }
}

fn changed_at(run: &RunRecord) -> Timestamp {
    run.finished_at.or(run.started_at).unwrap_or(run.created_at)
}
