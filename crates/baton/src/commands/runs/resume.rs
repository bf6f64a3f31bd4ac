//! Runs whose process is gone go on, and what has outlived its time goes. A server does both by itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_core::store::{PageRequest, Retention, RunQuery, RunRecord, RunStatus};
use baton_core::{RunId, Store, StoreError, TenantId};
use baton_engine::{Agents, Engine, recovery};
use jiff::SignedDuration;
use tokio::signal::unix::{SignalKind, signal};

use super::super::archive;
use crate::cli::Common;
use crate::exit::Exit;
use crate::progress::WaitingLine;
use crate::project::Project;
use crate::report::figures::count;
use crate::report::tell;
use crate::wiring::{self, Wired};

/// Threads that are listed; all others are taken up too.
const LISTED: u32 = 1000;
/// How long tasks may take to be dropped at the end.
const LEAVE: Duration = Duration::from_secs(1);

type Due = Vec<(TenantId, RunId)>;

pub(super) fn resume(common: &Common) -> anyhow::Result<Exit> {
    let project = super::super::project(common)?;
    let workflow_state = SignedDuration::try_from(project.config.handoff.state_retention.get())?;
    // Before the agents: where there is nothing to do, broken ones do not matter.
    let due = archive::with_project(&project, async |archive| {
        recovery::sweep(&archive.store, Retention { workflow_state }).await?;
        archive.release_dead_owners().await?;
        Ok(due(&archive.store).await?)
    })?;
    if due.is_empty() {
        tell("no run has lost its process");
        return Ok(Exit::Ok);
    }
    let agents = super::super::everybody(&project)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let exit = runtime.block_on(take_up(&project, agents, &due));
    runtime.shutdown_timeout(LEAVE);
    exit
}

/// Runs without a live process.
async fn due(store: &dyn Store) -> Result<Due, StoreError> {
    let mut found = Vec::new();
    let only = super::super::TENANT.get();
    for (tenant, thread) in store.due(LISTED).await? {
        if only.is_some_and(|only| *only != tenant) {
            continue;
        }
        let query = RunQuery { thread_id: Some(thread), ..RunQuery::default() };
        let runs = store.tenant(&tenant).runs(query, PageRequest::first(PageRequest::MAX_LIMIT)).await?;
        let open =
            runs.data.iter().rev().filter(|run| matches!(run.status, RunStatus::Queued | RunStatus::Running));
        found.extend(open.map(|run| (tenant.clone(), run.run_id)));
    }
    Ok(found)
}

async fn take_up(project: &Project, agents: Arc<Agents>, due: &Due) -> anyhow::Result<Exit> {
    let Wired { engine, servers } = wiring::wire(project, agents).await?;
    let waiting = WaitingLine::new(&format!("{} being taken up…", count(due.len() as u64, "run")));
    let ended = tokio::select! {
        recovered = engine.recover() => recovered.map(|_| None),
        exit = asked_to_end() => exit.map(Some).map_err(|error| StoreError::Failed(error.to_string())),
    };
    drop(waiting);
    if let Some(exit) = ended? {
        // Runs are dropped as they are, and their servers with them: a server that ended first would fail calls for good.
        tell("interrupted; `baton runs resume` goes on with what is left");
        return Ok(exit);
    }
    servers.shutdown().await;
    wiring::seal(&*engine.parts.store).await;
    report(&engine, due).await
}

async fn asked_to_end() -> std::io::Result<Exit> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(tokio::select! {
        _ = interrupt.recv() => Exit::Interrupted,
        _ = terminate.recv() => Exit::Terminated,
    })
}

/// How each of them ended.
async fn report(engine: &Engine, due: &Due) -> anyhow::Result<Exit> {
    let mut runs: Vec<RunRecord> = Vec::new();
    for (tenant, run) in due {
        match engine.parts.store.tenant(tenant).run(*run).await {
            Ok(run) => runs.push(run),
            // Its thread was deleted meanwhile.
            Err(StoreError::NotFound(_) | StoreError::ThreadNotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    super::print(&super::table(&runs))?;
    summarize(&runs);
    let is_bad = |run: &RunRecord| matches!(run.status, RunStatus::Failed | RunStatus::Interrupted);
    Ok(if runs.iter().any(|run| is_bad(run) || is_left(run)) { Exit::Failed } else { Exit::Ok })
}

fn summarize(runs: &[RunRecord]) {
    let mut statuses: BTreeMap<RunStatus, u64> = BTreeMap::new();
    for run in runs {
        *statuses.entry(run.status).or_default() += 1;
    }
    let statuses: Vec<String> = statuses.iter().map(|(status, count)| format!("{count} {status}")).collect();
    tell(&format!("{} taken up: {}", count(runs.len() as u64, "run"), statuses.join(", ")));
    let left: Vec<String> =
        runs.iter().filter(|run| is_left(run)).map(|run| run.run_id.to_string()).collect();
    if !left.is_empty() {
        let left = left.join(", ");
        tell(&format!(
            "not ended: {left}; `baton runs resume` tries again, `baton runs cancel` ends one for good"
        ));
    }
}

/// Whether there is still work without a waiter.
fn is_left(run: &RunRecord) -> bool {
    !run.status.is_final() && run.status != RunStatus::Waiting
}
