//! What was kept, as commands look at it: the local tenant's part of the store, without agents and without an engine.

use std::future::Future;
use std::sync::Arc;

use anyhow::Context as _;
use baton_core::message::Message;
use baton_core::store::{MessageQuery, Page, PageRequest, RunQuery, RunRecord, SessionRecord};
use baton_core::{RunId, SessionId, Store, StoreError, TenantStore, ThreadId};
use baton_engine::recovery;
use baton_store::Database;
use serde::Serialize;

use super::reference::Reference;
use super::{print, print_json};
use crate::cli::Common;
use crate::exit::Exit;
use crate::identity::identity;
use crate::project::Project;
use crate::report::tell;
use crate::wiring;

/// Said where there is no store yet.
pub(super) const NOTHING_KEPT: &str = "nothing was kept yet";

pub(super) struct Archive {
    pub(super) store: Database,
    pub(super) tenant: Arc<dyn TenantStore>,
    /// Whether there is a store. None is created only to find it empty.
    is_there: bool,
}

/// Opens what the project around the current folder keeps, and does something with it.
pub(super) fn with<T>(
    common: &Common,
    work: impl AsyncFnOnce(&Archive) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    with_project(&super::project(common)?, work)
}

pub(super) fn with_project<T>(
    project: &Project,
    work: impl AsyncFnOnce(&Archive) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    on(Archive::open(project), work)
}

/// The same for a command that begins something: a store that is not there yet is made.
pub(super) fn with_new<T>(
    project: &Project,
    work: impl AsyncFnOnce(&Archive) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let opened = async {
        let store = wiring::store(project).await?;
        Ok(Archive { tenant: store.tenant(&super::tenant()), store, is_there: true })
    };
    on(opened, work)
}

fn on<T>(
    opened: impl Future<Output = anyhow::Result<Archive>>,
    work: impl AsyncFnOnce(&Archive) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    block_on(async {
        let archive = opened.await?;
        let result = work(&archive).await;
        // What was written is durable already; closing only tidies up.
        let _ = archive.store.close().await;
        result.map_err(blamed)
    })
}

/// A cursor is the caller's, so one that is not valid is a mistake of the command line.
fn blamed(error: anyhow::Error) -> anyhow::Error {
    if error.downcast_ref() == Some(&StoreError::InvalidCursor) {
        let said = "--cursor is not valid: use the one that the list before ended with, or leave it out";
        return Exit::Usage.because(anyhow::anyhow!(said));
    }
    error
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start")?.block_on(work)
}

impl Archive {
    async fn open(project: &Project) -> anyhow::Result<Self> {
        let is_there = wiring::has_store(project);
        let store = wiring::store_to_look(project).await?;
        let tenant = store.tenant(&super::tenant());
        Ok(Self { store, tenant, is_there })
    }

    /// Whether anything was ever kept.
    pub(super) fn is_there(&self) -> bool {
        self.is_there
    }

    /// Prints one page of a list. `what` are its items, in the plural.
    pub(super) fn list<T: Serialize>(
        &self,
        page: Page<T>,
        json: bool,
        what: &str,
        table: impl FnOnce(&[T]) -> String,
    ) -> anyhow::Result<Exit> {
        if json {
            print_json(&ListJson { data: page.data, next_cursor: page.next_cursor })?;
            return Ok(Exit::Ok);
        }
        if page.data.is_empty() {
            tell(&if self.is_there { format!("no {what}") } else { NOTHING_KEPT.to_owned() });
            return Ok(Exit::Ok);
        }
        print(&table(&page.data))?;
        if let Some(cursor) = page.next_cursor {
            tell(&format!("there are more {what}: --cursor {cursor}"));
        }
        Ok(Exit::Ok)
    }

    pub(super) async fn thread_id(&self, named: &Reference<ThreadId>) -> anyhow::Result<ThreadId> {
        let found = named.find(self.tenant.threads(None, newest()), |thread| Some(thread.thread_id));
        found.await?.ok_or_else(|| StoreError::ThreadNotFound.into())
    }

    /// A thread to look for in a list: one that is not there is a mistake, not an empty list.
    pub(super) async fn known_thread(
        &self,
        named: Option<&Reference<ThreadId>>,
    ) -> anyhow::Result<Option<ThreadId>> {
        let Some(named) = named else { return Ok(None) };
        let thread = self.thread_id(named).await?;
        Ok(Some(self.tenant.thread(thread, None).await?.thread_id))
    }

    pub(super) async fn run(&self, named: &Reference<RunId>) -> anyhow::Result<RunRecord> {
        let found = named.find(self.tenant.runs(RunQuery::default(), newest()), |run| Some(run.run_id));
        let run = found.await?.ok_or(StoreError::NotFound("run"))?;
        Ok(self.tenant.run(run).await?)
    }

    /// A run that is to be changed: a beginning has to mean one of all, not only of the newest.
    pub(super) async fn run_to_change(&self, named: &Reference<RunId>) -> anyhow::Result<RunRecord> {
        let all = async {
            let page = self.tenant.runs(RunQuery::default(), newest()).await?;
            if page.next_cursor.is_none() {
                return Ok(page);
            }
            let most = PageRequest::MAX_LIMIT;
            let error = format!(
                "there are more than {most} runs, so the beginning of an id is not enough: give the whole id"
            );
            Err(Exit::Usage.because(anyhow::anyhow!(error)))
        };
        let run = named.find(all, |run| Some(run.run_id)).await?.ok_or(StoreError::NotFound("run"))?;
        Ok(self.tenant.run(run).await?)
    }

    pub(super) async fn session_id(&self, named: &Reference<SessionId>) -> anyhow::Result<SessionId> {
        // The beginning of a run's id is that of all its sessions, and means the first.
        let first = |session: SessionRecord| Some(session.session_id).filter(|id| id.level() == 1);
        let found = named.find(self.tenant.sessions(None, newest()), first);
        found.await?.ok_or_else(|| StoreError::NotFound("session").into())
    }

    /// Sessions that are called so below their parent, the newest first.
    pub(super) async fn labelled(&self, label: &str) -> anyhow::Result<Vec<SessionId>> {
        let sessions = self.tenant.sessions(None, newest()).await?.data;
        let mut found: Vec<SessionRecord> = sessions
            .into_iter()
            .filter(|session| session.session_id.as_str().rsplit(':').next() == Some(label))
            .collect();
        found.sort_by_key(|session| std::cmp::Reverse(session.started_at));
        Ok(found.into_iter().map(|session| session.session_id).collect())
    }

    /// What a run was asked.
    pub(super) async fn message_of(&self, run: &RunRecord) -> Result<Option<Message>, StoreError> {
        let query = MessageQuery {
            limit: 1,
            before: Some(run.message_number + 1),
            include_internal: true,
            include_system: true,
        };
        let found = self.tenant.messages(run.thread_id, query).await?.pop();
        Ok(found.filter(|found| found.number == run.message_number).map(|found| found.message))
    }

    /// Ends the leases of processes that are gone, so that no command waits for them.
    pub(super) async fn release_dead_owners(&self) -> Result<(), StoreError> {
        recovery::release_dead_owners(&self.store, &identity()).await.map(drop)
    }
}

/// Among these a beginning of an id is looked for.
fn newest() -> PageRequest {
    PageRequest::first(PageRequest::MAX_LIMIT)
}

/// Which piece of a list is wanted.
#[derive(Debug, Clone, clap::Args)]
pub struct PagingArgs {
    /// How many to list
    #[arg(long, value_name = "N", default_value_t = PageRequest::DEFAULT_LIMIT,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(PageRequest::MAX_LIMIT)))]
    limit: u32,
    /// Go on where another list ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl PagingArgs {
    pub(super) fn request(&self) -> PageRequest {
        PageRequest { limit: self.limit, cursor: self.cursor.clone() }
    }
}

/// A list for programs.
#[derive(Serialize)]
struct ListJson<T> {
    data: Vec<T>,
    next_cursor: Option<String>,
}
