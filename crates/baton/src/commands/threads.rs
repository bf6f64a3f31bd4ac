//! `baton threads`: conversations.

mod session;

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use baton_core::message::{Role, Visibility};
use baton_core::store::{MessageQuery, PageRequest, RunQuery, Thread, ThreadMessage};
use baton_core::{AgentName, StoreError, TenantId, ThreadId, UserId, Workspaces as _};
use baton_engine::Agents;
use baton_server::wire::thread::{ProgressView, ResumableView};
use jiff::Timestamp;
use serde::Serialize;

use super::archive::{self, Archive, PagingArgs};
use super::reference::Reference;
use super::{print, print_json, tenant, user};
use crate::cli::Common;
use crate::confinement;
use crate::exit::Exit;
use crate::project::Project;
use crate::report::conversation;
use crate::report::figures::{count, moment};
use crate::report::table::{Column, Table, facts, line};
use crate::report::tell;
use crate::wiring;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Conversations, those that were used last first
    List {
        #[command(flatten)]
        paging: PagingArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// One conversation: where it stands, and who said what
    Show {
        /// The thread's id, or the beginning of it
        #[arg(value_name = "ID")]
        thread: Reference<ThreadId>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Also what the person did not see
        #[arg(long)]
        internal: bool,
        /// Print who has the baton, the ways it took and what for, as a JSON document
        #[arg(long, conflicts_with = "internal")]
        session: bool,
        /// Write the document to a file in this folder, which only its owner can read, and print its path
        #[arg(long, value_name = "FOLDER", requires = "session")]
        session_dir: Option<PathBuf>,
    },
    /// Delete a conversation with its runs, events, costs and files
    Delete {
        /// The thread's id; where it is asked for, the beginning of it is enough
        #[arg(value_name = "ID")]
        thread: Reference<ThreadId>,
        /// Do not ask; needs the whole id
        #[arg(long)]
        yes: bool,
    },
}

pub fn run(common: &Common, command: &Command) -> anyhow::Result<Exit> {
    if let Command::Delete { thread, yes } = command {
        check_deletion(thread, *yes).map_err(|error| Exit::Usage.because(error))?;
    }
    let project = super::project(common)?;
    archive::with_project(&project, async |archive| match command {
        Command::List { paging, json } => list(archive, paging, *json).await,
        Command::Show { thread, session: true, session_dir, .. } => {
            let id = archive.thread_id(thread).await?;
            let thread = archive.tenant.thread(id, None).await?;
            let are_enabled = wiring::switch(&project.config.features.transfers).is_on(&tenant());
            let document = session::document(archive, thread, are_enabled).await?;
            match session_dir {
                Some(folder) => {
                    let written = document.write(folder);
                    let path = written.with_context(|| format!("cannot write to {}", folder.display()))?;
                    print(&format!("{}\n", path.display()))?;
                }
                None => print_json(&document)?,
            }
            Ok(Exit::Ok)
        }
        Command::Show { thread, json, internal, .. } => {
            // Without them it is not known how far a holder has come; everything else is.
            let agents = super::everybody(&project).unwrap_or_default();
            show(archive, &agents, thread, *json, *internal).await
        }
        Command::Delete { thread, yes } => delete(archive, &project, thread, *yes).await,
    })
}

/// A beginning is looked for among the newest threads only, so it may match another one than was meant: a person has to confirm it.
fn check_deletion(thread: &Reference<ThreadId>, yes: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        yes || std::io::stdin().is_terminal(),
        "deletion needs a confirmation, and there is no terminal: add --yes"
    );
    anyhow::ensure!(
        !yes || matches!(thread, Reference::Whole(_)),
        "with --yes the beginning of an id is not enough: give the whole id, or leave --yes out to be asked"
    );
    Ok(())
}

async fn list(archive: &Archive, paging: &PagingArgs, json: bool) -> anyhow::Result<Exit> {
    let page = archive.tenant.threads(None, paging.request()).await?;
    let data = page.data.into_iter().map(ThreadContextJson::of).collect();
    let page = baton_core::store::Page { data, next_cursor: page.next_cursor };
    archive.list(page, json, "threads", table)
}

fn table(threads: &[ThreadContextJson]) -> String {
    let mut table = Table::new([
        Column::Id("thread"),
        Column::Text("answers"),
        Column::Number("messages"),
        Column::Text("last used"),
        Column::Text("title"),
    ]);
    for thread in threads {
        table.add([
            thread.thread_id.to_string(),
            thread.answers(),
            thread.total_messages.to_string(),
            moment(thread.updated_at),
            thread.title.clone(),
        ]);
    }
    table.print()
}

async fn show(
    archive: &Archive,
    agents: &Agents,
    named: &Reference<ThreadId>,
    json: bool,
    internal: bool,
) -> anyhow::Result<Exit> {
    let id = archive.thread_id(named).await?;
    let mut thread = ThreadContextJson::of(archive.tenant.thread(id, None).await?);
    let open = archive.tenant.open_handoff_of(id).await?;
    thread.progress = open.and_then(|handoff| ProgressView::of(&handoff, agents));
    let left = archive.tenant.resumable_handoffs(id).await?;
    let messages = messages(archive, id, internal).await?;
    if json {
        let resumable_handoffs = ResumableView::all(left, agents);
        print_json(&ThreadJson { thread, resumable_handoffs, messages })?;
        return Ok(Exit::Ok);
    }
    let said = messages.iter().map(|message| said(&thread, message));
    print(&(thread.facts() + &said.collect::<String>()))?;
    Ok(Exit::Ok)
}

/// All of them, oldest first.
async fn messages(
    archive: &Archive,
    thread: ThreadId,
    internal: bool,
) -> Result<Vec<ThreadMessage>, StoreError> {
    let mut pages = Vec::new();
    let mut before = None;
    loop {
        let limit = PageRequest::MAX_LIMIT;
        let query = MessageQuery { limit, before, include_internal: internal, include_system: internal };
        let page = archive.tenant.messages(thread, query).await?;
        let is_last = page.len() < limit as usize;
        before = page.first().map(|message| message.number);
        pages.push(page);
        if is_last {
            return Ok(pages.into_iter().rev().flatten().collect());
        }
    }
}

fn said(thread: &ThreadContextJson, ThreadMessage { message, .. }: &ThreadMessage) -> String {
    let speaker = match (&message.agent, message.role) {
        (Some(agent), _) => agent.as_str(),
        (None, Role::User) => thread.user_id.as_str(),
        (None, role) => role.word(),
    };
    let hidden = if message.visibility == Visibility::Internal { " (internal)" } else { "" };
    let words = conversation::text_of(&message.parts);
    conversation::entry(&format!("{speaker}{hidden}"), Some(message.created_at), &words)
}

async fn delete(
    archive: &Archive,
    project: &Project,
    named: &Reference<ThreadId>,
    yes: bool,
) -> anyhow::Result<Exit> {
    let id = archive.thread_id(named).await?;
    let thread = archive.tenant.thread(id, None).await?;
    let title = line(&thread.title);
    let held = held(archive, &thread).await?;
    if !yes && !confirmed(&format!("Delete thread {id} (“{title}”: {held})? [y/N] "))? {
        tell("kept");
        return Ok(Exit::Ok);
    }
    // The audit trail names who did it; a thread of another user can only be deleted as the system.
    let local = user();
    archive.tenant.delete_thread(id, Some(&local).filter(|local| thread.user_id == **local)).await?;
    if let Some(workspaces) = confinement::workspaces(project) {
        workspaces.delete(archive.tenant.tenant(), id).await?;
    }
    print(&format!("deleted thread {id} (“{title}”: {held})\n"))?;
    Ok(Exit::Ok)
}

async fn held(archive: &Archive, thread: &Thread) -> Result<String, StoreError> {
    let query = RunQuery { thread_id: Some(thread.thread_id), ..RunQuery::default() };
    let runs = archive.tenant.runs(query, PageRequest::first(PageRequest::MAX_LIMIT)).await?;
    let more = if runs.next_cursor.is_some() { "more than " } else { "" };
    Ok(format!("{}, {more}{}", count(thread.total_messages, "message"), count(runs.data.len() as u64, "run")))
}

pub(super) fn confirmed(question: &str) -> std::io::Result<bool> {
    let mut stderr = anstream::stderr();
    write!(stderr, "{question}")?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// A thread for programs, with the names that the HTTP API uses.
#[derive(Debug, Serialize)]
struct ThreadContextJson {
    thread_id: ThreadId,
    tenant_id: TenantId,
    user_id: UserId,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// None before the first answer.
    current_active_agent: Option<AgentName>,
    is_handoff_active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    handoff_target_agent: Option<AgentName>,
    /// How far that agent has come; only known of one thread that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressView>,
    total_messages: u64,
    title: String,
}

#[derive(Serialize)]
struct ThreadJson {
    #[serde(flatten)]
    thread: ThreadContextJson,
    resumable_handoffs: Vec<ResumableView>,
    messages: Vec<ThreadMessage>,
}

impl ThreadContextJson {
    fn of(thread: Thread) -> Self {
        Self {
            thread_id: thread.thread_id,
            tenant_id: tenant(),
            user_id: thread.user_id,
            created_at: thread.created_at,
            updated_at: thread.updated_at,
            is_handoff_active: thread.handoff.is_some(),
            handoff_target_agent: thread.holder.clone().filter(|_| thread.handoff.is_some()),
            progress: None,
            current_active_agent: thread.holder,
            total_messages: thread.total_messages,
            title: thread.title,
        }
    }

    fn answers(&self) -> String {
        self.current_active_agent.as_ref().map_or("-", AgentName::as_str).to_owned()
    }

    fn facts(&self) -> String {
        let handoff = if self.is_handoff_active { " (by a handoff)" } else { "" };
        let progress = self.progress.as_ref().map(|progress| ("progress", super::handoff::step(progress)));
        let mut said = vec![
            ("thread", self.thread_id.to_string()),
            ("title", self.title.clone()),
            ("user", self.user_id.to_string()),
            ("began", moment(self.created_at)),
            ("last used", moment(self.updated_at)),
            ("answers", self.answers() + handoff),
        ];
        said.extend(progress);
        said.push(("messages", self.total_messages.to_string()));
        facts(&said)
    }
}
