//! `baton run`: one message, its answer on stdout.

mod attend;
mod prompt;
mod screen;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use baton_core::message::Part;
use baton_core::store::{OnBusy, RunStatus};
use baton_core::{HumanDuration, ModelErrorKind, Rights, RunId, StoreError, ThreadId, Usd};
use baton_engine::{Agents, Engine, Failure, Overrides, PreApproval, RunRequest, RunResult, RunTask};
use clap::ValueEnum;
use serde_json::Value;
use tracing::Instrument as _;

use super::cast::Cast;
use super::signals::Signals;
use crate::cli::Common;
use crate::exit::Exit;
use crate::project::Project;
use crate::report::printable;
use crate::wiring::Wired;
use crate::{commands, report, telemetry, wiring};
pub(super) use attend::Attendant;

/// How long tasks may take to be dropped at the end, and how long a writer that hangs is waited for.
const LEAVE: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to ask; piped input is appended to it. The word `mission` may stand before it
    #[arg(num_args = 0..=2, value_name = "[mission] PROMPT")]
    pub prompt: Vec<String>,
    /// Who answers [default: the main agent, or the best match with `main = "auto"`]
    #[arg(short, long)]
    pub agent: Option<String>,
    /// Continue this conversation, or begin it under this id (a UUID version 4)
    #[arg(long, value_name = "ID")]
    pub thread: Option<ThreadId>,
    /// Print every event as a line of JSON (AG-UI) instead of the answer
    #[arg(long)]
    pub json: bool,
    /// A file with a JSON Schema that the answer must satisfy
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// End after this many turns, with an answer from what is there
    #[arg(long, value_name = "N")]
    pub max_turns: Option<u32>,
    /// End when this many dollars are spent
    #[arg(long, value_name = "USD")]
    pub max_cost: Option<Usd>,
    /// End after this time, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = HumanDuration::parse)]
    pub timeout: Option<HumanDuration>,
    /// Which tool calls need no approval of a person: those of the agents' and the project's rules, those that read, or all
    #[arg(long, value_name = "WHICH", default_value = "none")]
    pub approve: ApprovalArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ApprovalArg {
    None,
    /// Those that only read
    Read,
    All,
}

impl From<ApprovalArg> for PreApproval {
    fn from(approval: ApprovalArg) -> Self {
        match approval {
            ApprovalArg::None => Self::None,
            ApprovalArg::Read => Self::Read,
            ApprovalArg::All => Self::All,
        }
    }
}

pub fn run(common: &Common, args: &Args) -> anyhow::Result<Exit> {
    let Some(Cast { project, agents, entry }) = Cast::read(common, args.agent.as_deref())? else {
        return Ok(Exit::Invalid);
    };
    // Before the input, which may take its time.
    let overrides = overrides(args)?;
    let asked = prompt::argument(&args.prompt).map_err(|error| Exit::Usage.because(error))?;
    let Some(prompt) = prompt::read(asked).map_err(|error| Exit::Usage.because(error))? else {
        report::tell("error: nothing to ask: give a prompt, or pipe one in");
        return Ok(Exit::Usage);
    };
    let (name, chosen) = entry.first(&agents, &prompt);
    let request = RunRequest {
        caller: commands::local(args.thread.unwrap_or_else(ThreadId::random)),
        agent: name,
        input: vec![Part::text(prompt)],
        overrides,
        on_busy: OnBusy::Enqueue,
        entry: chosen,
        task: RunTask::Answer,
        rights: Rights::all(),
        trace: None,
        metadata: None,
    };
    ask(&project, &agents, request, args)
}

fn ask(project: &Project, agents: &Arc<Agents>, request: RunRequest, args: &Args) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (trace, span) = telemetry::command("baton run");
    let request = RunRequest { trace: Some(trace), ..request };
    let exit = runtime.block_on(converse(project, agents, request, args).instrument(span));
    // Drops what still runs, and with it every process: a shell command ends with its future, a server with its last
    // handle. Only a writer that hangs outlives this, until the process ends.
    runtime.shutdown_timeout(LEAVE);
    exit
}

/// Sends the message and attends to its run. A store that does not answer must not keep signals from being heard: until there is
/// a run to cancel, the first one ends everything.
async fn converse(
    project: &Project,
    agents: &Arc<Agents>,
    request: RunRequest,
    args: &Args,
) -> anyhow::Result<Exit> {
    // Listened to before anything is started, so that nothing started is left behind.
    let mut signals = Signals::listen()?;
    let Wired { engine, servers } = tokio::select! {
        biased;
        wired = wiring::wire(project, Arc::clone(agents)) => wired?,
        exit = signals.any() => return Ok(exit),
    };
    // A run of this thread whose process is gone comes first, and need not wait for its lease.
    tokio::select! {
        biased;
        released = engine.release_dead_owners() => released?,
        exit = signals.any() => return Ok(leave(engine, exit)),
    };
    let attendant =
        Attendant { engine: &engine, agents, thread: request.caller.thread_id, is_json: args.json };
    let screen = attendant.screen(&request.agent);
    tokio::select! {
        // A run that is there can be cancelled as it should be.
        biased;
        run = engine.start(request) => {
            let exit = attendant.see_through(run?, screen, servers, &mut signals).await;
            wiring::seal(&*engine.parts.store).await;
            exit
        }
        exit = signals.any() => {
            screen.clear().await;
            report::tell("the message may have been accepted: `baton runs list` shows its run then");
            Ok(leave(engine, exit))
        }
    }
}

/// Goes without waiting for the store, which would finish first what it has begun.
fn leave(engine: Arc<Engine>, exit: Exit) -> Exit {
    tokio::task::spawn_blocking(move || drop(engine));
    exit
}

fn overrides(args: &Args) -> anyhow::Result<Overrides> {
    let output_schema = args.output_schema.as_deref().map(schema).transpose();
    Ok(Overrides {
        max_turns: args.max_turns,
        max_cost_usd: args.max_cost,
        timeout: args.timeout,
        output_schema: output_schema.map_err(|error| Exit::Usage.because(error))?,
        approve: args.approve.into(),
        is_named: args.agent.is_some(),
    })
}

/// Checked here, so that a mistake in it costs no call of a model.
fn schema(path: &Path) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let schema: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
    if let Err(error) = jsonschema::validator_for(&schema) {
        anyhow::bail!("{} is not a valid JSON Schema: {error}", path.display());
    }
    Ok(schema)
}

pub(super) fn explain(run: RunId, finished: &RunResult) {
    let is_error = matches!(finished.status, RunStatus::Failed | RunStatus::Interrupted);
    if let Some(failure) = finished.failure.as_ref().filter(|_| is_error) {
        let style = anstyle::AnsiColor::Red.on_default().bold();
        report::tell(&format!("{style}error:{style:#} {}", printable(&failure.to_string())));
    }
    if is_left(finished) {
        report::tell(&format!(
            "run {run} may not have ended: when the store is back, `baton runs cancel {run}` ends it, and `baton runs resume` goes on \
             with it"
        ));
    }
}

/// Whether the store may still have the run as one to be worked on. A run that is not there was deleted with its thread.
fn is_left(finished: &RunResult) -> bool {
    match &finished.failure {
        Some(Failure::Store(error)) => !matches!(error, StoreError::ThreadNotFound | StoreError::NotFound(_)),
        _ => false,
    }
}

/// How the run ended, and the writing.
struct RunEnding {
    finished: RunResult,
    written: std::io::Result<()>,
    /// The number of the last event that was shown.
    last_seq: u64,
}

impl RunEnding {
    /// `signal` is what cancelled the run, if one did. That the store could not be told changes nothing about who ended it.
    fn exit(self, signal: Option<Exit>) -> anyhow::Result<Exit> {
        let is_cancelled = self.finished.status == RunStatus::Cancelled
            || matches!(self.finished.failure, Some(Failure::Store(_)));
        match (signal, self.written) {
            (Some(signal), _) if is_cancelled => Ok(signal),
            (_, Err(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::ReaderGone),
            (_, Err(error)) => Err(error).context("cannot write to stdout"),
            (_, Ok(())) => Ok(conclude(&self.finished)),
        }
    }
}

fn conclude(finished: &RunResult) -> Exit {
    match (finished.status, finished.failure.as_ref().map(Failure::cause)) {
        (RunStatus::Cancelled, _) => Exit::Interrupted,
        (RunStatus::Failed, Some(Failure::Model(error))) if error.kind == ModelErrorKind::Auth => {
            Exit::Forbidden
        }
        (RunStatus::Failed, Some(Failure::DeadlineReached | Failure::BudgetExhausted { .. })) => Exit::Limit,
        (RunStatus::Completed, _)
            if finished.answer.as_ref().is_some_and(|answer| answer.limit.is_some()) =>
        {
            Exit::Limit
        }
        (RunStatus::Completed, _) => Exit::Ok,
        (RunStatus::Waiting, _) => Exit::Waiting,
        _ => Exit::Failed,
    }
}
