//! Requests in the project's own store. After a decision the run continues in this process.

use std::sync::Arc;
use std::time::Duration;

use baton_core::StoreError;
use baton_core::store::{Approval, ApprovalFilter, ApprovalQuery, Order, Page, PageRequest, Revocation};
use baton_engine::{Agents, DecideError, DecisionInput};
use baton_server::wire::approval::ApprovalView;
use uuid::Uuid;

use super::{Command, List, forgotten, format, table};
use crate::cli::Common;
use crate::commands::archive::{self, Archive};
use crate::commands::reference::Reference;
use crate::commands::run::Attendant;
use crate::commands::signals::Signals;
use crate::commands::{everybody, print, print_json, tenant, user};
use crate::exit::Exit;
use crate::progress::AgentNames;
use crate::project::Project;
use crate::wiring::{self, Wired};

/// How long tasks may take to be dropped at the end.
const LEAVE: Duration = Duration::from_secs(1);

pub(super) fn run(common: &Common, command: &Command) -> anyhow::Result<Exit> {
    let project = crate::commands::project(common)?;
    // Names of files that are broken now are better than nothing.
    let names = || names_of(&everybody(&project).unwrap_or_default());
    match command {
        Command::List(args) => {
            archive::with_project(&project, async |archive| list(archive, args, &names()).await)
        }
        Command::Show(args) => archive::with_project(&project, async |archive| {
            let approval = find(archive, &args.which.approval, None).await?;
            if args.json {
                print_json(&ApprovalView::from(approval))?;
            } else {
                print(&format::whole(&approval, &names()))?;
            }
            Ok(Exit::Ok)
        }),
        Command::Forget(args) => archive::with_project(&project, async |archive| {
            let approval = find(archive, &args.which.approval, Some(ApprovalFilter::Decided)).await?;
            let (thread_id, tool) = (approval.thread_id, approval.request.tool.clone());
            let revocation = Revocation { thread_id, tool, by: user(), trace_id: None };
            if !archive.tenant.forget_decisions(revocation).await? {
                return Err(StoreError::NotFound("remembered decision").into());
            }
            print(&forgotten(&approval))?;
            Ok(Exit::Ok)
        }),
        Command::Approve(_) | Command::Deny(_) | Command::Answer(_) => decide(&project, command),
    }
}

async fn list(archive: &Archive, args: &List, names: &AgentNames) -> anyhow::Result<Exit> {
    let query = ApprovalQuery { status: Some(args.status), ..ApprovalQuery::default() };
    let page = archive.tenant.approvals(query, args.paging.request()).await?;
    if args.json {
        let data = page.data.into_iter().map(ApprovalView::from).collect();
        return archive
            .list(Page { data, next_cursor: page.next_cursor }, true, "requests", |_| String::new());
    }
    archive.list(page, false, "requests", |approvals| table(approvals, names))
}

/// A beginning of an id is looked for among those with this status, the newest first.
async fn find(
    archive: &Archive,
    named: &Reference<Uuid>,
    status: Option<ApprovalFilter>,
) -> anyhow::Result<Approval> {
    let query = ApprovalQuery { status, order: Order::Desc, ..ApprovalQuery::default() };
    let among = archive.tenant.approvals(query, PageRequest::first(PageRequest::MAX_LIMIT));
    let id = named.find(among, |approval| Some(approval.request.approval_id)).await?;
    Ok(archive.tenant.approval(id.ok_or(StoreError::NotFound("request"))?).await?)
}

fn decide(project: &Project, command: &Command) -> anyhow::Result<Exit> {
    let named = command.which().expect("a decision is about a request");
    let approval = archive::with_project(project, async |archive| {
        find(archive, named, Some(ApprovalFilter::Pending)).await
    })?;
    let input = command.decision(&approval)?.expect("the command decides");
    let agents = everybody(project)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let exit = runtime.block_on(carry_out(project, &agents, &approval, input, command.is_json()));
    runtime.shutdown_timeout(LEAVE);
    exit
}

/// Decides, and shows what the run does then.
async fn carry_out(
    project: &Project,
    agents: &Arc<Agents>,
    approval: &Approval,
    input: DecisionInput,
    is_json: bool,
) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen()?;
    let Wired { engine, servers } = tokio::select! {
        biased;
        wired = wiring::wire_chat(project, Arc::clone(agents)) => wired?,
        exit = signals.any() => return Ok(exit),
    };
    engine.release_dead_owners().await?;
    let thread = engine.parts.store.tenant(&tenant()).thread(approval.thread_id, None).await?;
    let decided = engine.decide(&tenant(), approval.request.approval_id, &user(), input).await;
    let decided = decided.map_err(refused)?;
    let run = decided.outcome.answer_run_id.unwrap_or(approval.run_id);
    let run = engine.attend(&tenant(), approval.thread_id, run, thread.last_seq);
    let attendant = Attendant { engine: &engine, agents, thread: approval.thread_id, is_json };
    let screen = attendant.screen(&approval.request.agent);
    let exit = attendant.see_through(run, screen, servers, &mut signals).await;
    wiring::seal(&*engine.parts.store).await;
    exit
}

/// Values that do not satisfy the schema are a mistake of the command line.
fn refused(error: DecideError) -> anyhow::Error {
    match error {
        DecideError::Invalid { .. } => Exit::Usage.because(error),
        DecideError::Store(error) => error.into(),
        other => other.into(),
    }
}

fn names_of(agents: &Agents) -> AgentNames {
    agents.values().map(|agent| (agent.name.clone(), agent.display_name.clone())).collect()
}
