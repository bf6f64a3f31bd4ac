//! `baton handoff`: who has a conversation for a while, how to get it back, and how to go on with what was left.
//!
//! - [`change`]: what needs an engine, because agents speak then.

mod change;

use baton_core::store::{HandoffSession, PageRequest, Thread};
use baton_core::{HandoffId, StoreError, ThreadId};
use baton_engine::Agents;
use baton_server::wire::handoff::HandoffView;
use baton_server::wire::thread::{ProgressView, ResumableView};

use super::archive::{self, Archive, NOTHING_KEPT};
use super::reference::Reference;
use super::{print, print_json, tenant};
use crate::cli::Common;
use crate::exit::Exit;
use crate::project::Project;
use crate::report::figures::moment;
use crate::report::table::facts;
use crate::report::tell;

/// Printed if the thread has no holder.
const NOBODY: &str = "no handoff is active on this thread";

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Who has a conversation by a handoff, and how far they have come
    Show(Args),
    /// Leave a handoff: what was collected is kept
    Exit(Args),
    /// Go on with a handoff that ended before it was done, exactly where it was
    Resume {
        #[command(flatten)]
        args: Args,
        /// The handoff's id, or the beginning of it [default: the one that ended last]
        #[arg(value_name = "HANDOFF")]
        handoff: Option<Reference<HandoffId>>,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The thread's id, or the beginning of it [default: the one that was used last]
    #[arg(long, value_name = "ID")]
    thread: Option<Reference<ThreadId>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A thread and what there is to know about its handoffs.
struct ThreadHandoffs {
    thread: Thread,
    open: Option<HandoffSession>,
    /// Those that ended before they were done, the newest first.
    left: Vec<HandoffSession>,
}

pub fn run(common: &Common, command: &Command) -> anyhow::Result<Exit> {
    let project = super::project(common)?;
    let args = command.args();
    let found = archive::with_project(&project, async |archive| ThreadHandoffs::find(archive, args).await)?;
    let Some(found) = found else {
        tell(NOTHING_KEPT);
        return Ok(Exit::Failed);
    };
    match command {
        Command::Show(args) => show(&project, found, args),
        Command::Exit(args) => change::exit(&project, &found, args),
        Command::Resume { args, handoff } => change::resume(&project, &found, args, handoff.as_ref()),
    }
}

impl Command {
    /// Agents speak when the conversation changes hands.
    pub fn makes_runs(&self) -> bool {
        !matches!(self, Self::Show(_))
    }

    fn args(&self) -> &Args {
        match self {
            Self::Show(args) | Self::Exit(args) | Self::Resume { args, .. } => args,
        }
    }
}

impl ThreadHandoffs {
    /// `None` where nothing was ever kept.
    async fn find(archive: &Archive, args: &Args) -> anyhow::Result<Option<Self>> {
        let thread = match &args.thread {
            Some(named) => archive.tenant.thread(archive.thread_id(named).await?, None).await?,
            None => match archive.tenant.threads(None, PageRequest::first(1)).await?.data.pop() {
                Some(last) => last,
                None if archive.is_there() => return Err(StoreError::ThreadNotFound.into()),
                None => return Ok(None),
            },
        };
        let id = thread.thread_id;
        let open = archive.tenant.open_handoff_of(id).await?;
        let left = archive.tenant.resumable_handoffs(id).await?;
        Ok(Some(Self { thread, open, left }))
    }
}

fn show(project: &Project, found: ThreadHandoffs, args: &Args) -> anyhow::Result<Exit> {
    // Names of files that are broken now are better than nothing.
    let agents = super::everybody(project).unwrap_or_default();
    let Some(open) = found.open else {
        tell(NOBODY);
        for one in ResumableView::all(found.left, &agents) {
            tell(&format!("{} (`baton handoff resume {}`)", one.message, one.handoff_id));
        }
        return Ok(Exit::Failed);
    };
    let view = HandoffView::of(&tenant(), open, &agents);
    if args.json {
        print_json(&view)?;
    } else {
        print(&described(&view, &agents))?;
    }
    Ok(Exit::Ok)
}

fn described(view: &HandoffView, agents: &Agents) -> String {
    let called = |name| baton_server::wire::handoff::called(name, agents);
    let mut said = vec![
        ("handoff", view.handoff_id.to_string()),
        ("thread", view.thread_id.to_string()),
        ("agent", format!("{} ({})", view.display_name, view.target_agent_id)),
        ("state", view.state.to_string()),
        ("progress", view.progress.as_ref().map(step).unwrap_or_default()),
        ("from", format!("{} ({})", called(&view.source_agent_id), view.source_agent_id)),
        ("reason", view.handoff_reason.clone()),
        ("began", moment(view.started_at)),
        ("ends by", view.expires_at.map(moment).unwrap_or_default()),
    ];
    said.retain(|(_, value)| !value.is_empty());
    facts(&said)
}

/// Step 2 of 5: Write it.
pub(super) fn step(progress: &ProgressView) -> String {
    let ProgressView { label, step, total, .. } = progress;
    format!("step {step} of {total}: {label}")
}
