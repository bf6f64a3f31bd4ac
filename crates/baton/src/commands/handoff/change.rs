//! Leaving a handoff and going on with one. The engine runs in this process, on the same store as other processes.

use std::sync::Arc;
use std::time::Duration;

use baton_core::message::{Role, Visibility};
use baton_core::store::{MessageQuery, Page, PageRequest, RunRecord, RunStatus};
use baton_core::{HandoffId, Rights, RunId, StoreError, ThreadId};
use baton_engine::{Agents, Engine, ExitRequest, Failure, RunCaller};
use baton_server::wire::handoff::{HandoffResumed, HandoffReturn, HandoffView, called};

use super::{Args, NOBODY, ThreadHandoffs};
use crate::commands::reference::Reference;
use crate::commands::signals::Signals;
use crate::commands::{everybody, print, print_json, tenant, user};
use crate::exit::Exit;
use crate::project::Project;
use crate::report::conversation;
use crate::report::tell;
use crate::wiring::{self, Wired};

/// Poll interval for a run that another process executes.
const GLANCE: Duration = Duration::from_millis(100);
/// How long tasks may take to be dropped at the end.
const LEAVE: Duration = Duration::from_secs(1);

pub(super) fn exit(project: &Project, found: &ThreadHandoffs, args: &Args) -> anyhow::Result<Exit> {
    if found.open.is_none() {
        tell(NOBODY);
        return Ok(Exit::Failed);
    }
    let agents = everybody(project)?;
    let exit = leaving(found);
    with_engine(project, &agents, async |engine| {
        let ended = engine.exit_handoff(exit).await?;
        // The agent that gets the thread back answers in a run of its own.
        engine.idle().await;
        let returned = HandoffReturn::of(&tenant(), ended, &agents);
        if args.json {
            print_json(&returned)?;
        } else {
            print(&format!("{}\n", returned.message))?;
        }
        Ok(Exit::Ok)
    })
}

pub(super) fn resume(
    project: &Project,
    found: &ThreadHandoffs,
    args: &Args,
    named: Option<&Reference<HandoffId>>,
) -> anyhow::Result<Exit> {
    let agents = everybody(project)?;
    let exit = leaving(found);
    with_engine(project, &agents, async |engine| {
        let Some(id) = wanted(found, named).await? else {
            tell("no handoff of this thread was left before it was done");
            return Ok(Exit::Failed);
        };
        let (handoff, run_id) = engine.resume_handoff(exit, id).await?;
        let run = ended(engine, run_id).await?;
        if args.json {
            let handoff = HandoffView::of(&tenant(), handoff, &agents);
            print_json(&HandoffResumed { handoff, run_id })?;
        } else {
            print(&said(engine, &run, &agents).await?)?;
        }
        Ok(if run.status == RunStatus::Completed { Exit::Ok } else { Exit::Failed })
    })
}

/// The one that is named, or the one that ended last.
async fn wanted(
    found: &ThreadHandoffs,
    named: Option<&Reference<HandoffId>>,
) -> anyhow::Result<Option<HandoffId>> {
    let Some(named) = named else { return Ok(found.left.first().map(|one| one.handoff_id)) };
    let all = Page { data: found.left.clone(), next_cursor: None };
    let among = async { Ok::<_, StoreError>(all) };
    let found = named.find(among, |one| Some(one.handoff_id)).await?;
    Ok(Some(found.ok_or(StoreError::NotFound("handoff"))?))
}

/// Without a server everyone is the local user, who may do everything.
fn leaving(found: &ThreadHandoffs) -> ExitRequest {
    let (user, thread_id): (_, ThreadId) = (user(), found.thread.thread_id);
    ExitRequest {
        is_administrator: found.thread.user_id != user,
        caller: RunCaller { tenant: tenant(), user, thread_id },
        rights: Rights::all(),
        trace: None,
        address: None,
    }
}

fn with_engine(
    project: &Project,
    agents: &Arc<Agents>,
    work: impl AsyncFnOnce(&Arc<Engine>) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let exit = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let Wired { engine, servers } = wiring::wire_chat(project, Arc::clone(agents)).await?;
        // A run of this thread whose process is gone need not wait for its lease.
        engine.release_dead_owners().await?;
        let exit = tokio::select! {
            exit = work(&engine) => exit,
            exit = signals.any() => return Ok(exit),
        };
        servers.shutdown().await;
        wiring::seal(&*engine.parts.store).await;
        exit
    });
    runtime.shutdown_timeout(LEAVE);
    exit.map_err(blamed)
}

/// What the rules do not allow is not a fault of the program.
fn blamed(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<Failure>() {
        Some(Failure::NotAllowed(_)) => Exit::Forbidden.because(error),
        _ => error,
    }
}

/// The run once it has ended, in whichever process.
async fn ended(engine: &Engine, run: RunId) -> anyhow::Result<RunRecord> {
    let store = engine.parts.store.tenant(&tenant());
    loop {
        let record = store.run(run).await?;
        if record.status.is_final() || record.status == RunStatus::Waiting {
            return Ok(record);
        }
        tokio::time::sleep(GLANCE).await;
    }
}

/// The text of a run for the person.
async fn said(engine: &Engine, run: &RunRecord, agents: &Agents) -> anyhow::Result<String> {
    let store = engine.parts.store.tenant(&tenant());
    let messages = store.messages(run.thread_id, MessageQuery::last(PageRequest::MAX_LIMIT)).await?;
    let theirs = messages.iter().map(|one| &one.message).filter(|message| {
        message.run_id == run.run_id
            && message.role == Role::Assistant
            && message.visibility == Visibility::User
    });
    let entries = theirs.map(|message| {
        let speaker = message.agent.as_ref().map(|agent| called(agent, agents)).unwrap_or_default();
        conversation::entry(&speaker, Some(message.created_at), &conversation::text_of(&message.parts))
    });
    Ok(entries.collect())
}
