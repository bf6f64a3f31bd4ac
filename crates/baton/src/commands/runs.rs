//! `baton runs`: the work for single messages.

mod events;
mod hops;
mod resume;
mod show;
mod tree;
mod who;

use baton_core::store::{Cancel, RunQuery, RunRecord, RunStatus};
use baton_core::{AgentName, RunId, ThreadId};
use jiff::Timestamp;

use super::archive::{self, Archive, PagingArgs};
use super::print;
use super::reference::{Reference, since, status};
use crate::cli::Common;
use crate::exit::Exit;
use crate::report::figures;
use crate::report::table::{Column, Table};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Runs, the newest first
    List(List),
    /// One run: how it ended, and what each of its steps took
    Show {
        /// The run's id, or the beginning of it
        #[arg(value_name = "ID")]
        run: Reference<RunId>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// What happened in a run, one line each
    Events {
        /// The run's id, or the beginning of it
        #[arg(value_name = "ID")]
        run: Reference<RunId>,
        /// Print each event as a line of JSON
        #[arg(long)]
        json: bool,
    },
    /// End a run before it is done
    Cancel {
        /// The run's id; where there are 200 runs at most, the beginning of it is enough
        #[arg(value_name = "ID")]
        run: Reference<RunId>,
        /// Let it say in one closing turn what it has
        #[arg(long)]
        stop: bool,
    },
    /// Take up every run whose process is gone
    Resume,
}

#[derive(Debug, clap::Args)]
pub struct List {
    /// Only of this thread: its id, or the beginning of it
    #[arg(long, value_name = "ID")]
    thread: Option<Reference<ThreadId>>,
    /// Only those that this agent answers
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentName>,
    /// Only with this status, such as `running` or `failed`
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Option<RunStatus>,
    /// Only since then: a duration, such as 2h, or a time, such as 2026-11-15T09:30
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Timestamp>,
    #[command(flatten)]
    paging: PagingArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(common: &Common, command: &Command) -> anyhow::Result<Exit> {
    match command {
        Command::List(args) => archive::with(common, async |archive| list(archive, args).await),
        Command::Show { run, json } => {
            archive::with(common, async |archive| show::show(archive, &archive.run(run).await?, *json).await)
        }
        Command::Events { run, json } => archive::with(common, async |archive| {
            events::print_all(archive, &archive.run(run).await?, *json).await
        }),
        Command::Cancel { run, stop } => archive::with(common, async |archive| {
            cancel(archive, &archive.run_to_change(run).await?, *stop).await
        }),
        Command::Resume => resume::resume(common),
    }
}

async fn list(archive: &Archive, args: &List) -> anyhow::Result<Exit> {
    let query = RunQuery {
        thread_id: archive.known_thread(args.thread.as_ref()).await?,
        user_id: None,
        agent: args.agent.clone(),
        status: args.status,
        since: args.since,
    };
    let page = archive.tenant.runs(query, args.paging.request()).await?;
    archive.list(page, args.json, "runs", table)
}

fn table(runs: &[RunRecord]) -> String {
    let mut table = Table::new([
        Column::Id("run"),
        Column::Text("agent"),
        Column::Text("status"),
        Column::Text("began"),
        Column::Number("took"),
        Column::Number("tokens"),
        Column::Number("cost"),
        Column::Text("answer"),
    ]);
    for run in runs {
        table.add([
            run.run_id.to_string(),
            run.agent.to_string(),
            run.status.to_string(),
            figures::moment(run.created_at),
            took(run),
            figures::tokens(&run.usage),
            figures::cost(run.usage.cost),
            outcome(run),
        ]);
    }
    table.print()
}

fn took(run: &RunRecord) -> String {
    figures::took(run.started_at, run.finished_at).map_or_else(|| "-".to_owned(), figures::stretch)
}

/// The answer, or why there is none.
fn outcome(run: &RunRecord) -> String {
    match &run.end {
        Some(end) => end.answer.clone().or_else(|| end.message.clone()).unwrap_or_default(),
        None => String::new(),
    }
}

async fn cancel(archive: &Archive, run: &RunRecord, stop: bool) -> anyhow::Result<Exit> {
    let id = run.run_id;
    if run.status.is_final() {
        print(&format!("run {id} had already ended: {}\n", run.status))?;
        return Ok(Exit::Ok);
    }
    // A run whose process is gone ends now, and not when its lease does.
    archive.release_dead_owners().await?;
    let how = if stop { Cancel::Stop } else { Cancel::Abort };
    let said = match archive.tenant.cancel_run(id, how).await? {
        RunStatus::Cancelled => format!("run {id} has ended: cancelled\n"),
        status if status.is_final() => format!("run {id} had already ended: {status}\n"),
        _ if stop => format!("run {id} will end with a closing turn, after the current step\n"),
        _ => format!("run {id} will end when its process notices, in a few seconds\n"),
    };
    print(&said)?;
    Ok(Exit::Ok)
}
