//! `baton run`: one message, its answer on stdout.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use baton_agui::{Detail, Projection};
use baton_core::agent::Agent;
use baton_core::event::{Event, EventKind};
use baton_core::message::{Part, Visibility};
use baton_core::{HumanDuration, ModelErrorKind, TenantId, ThreadId, Usd, UserId};
use baton_engine::engine::Agents;
use baton_engine::{Approve, Caller, Failure, Finished, Overrides, Run, RunRequest, Status};
use clap::ValueEnum;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::agents::find;
use crate::cli::Common;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::{report, wiring};

/// What is piped in is a question or a document, not a data set.
const MAX_STDIN_BYTES: u64 = 1024 * 1024;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to ask; piped input is appended to it
    pub prompt: Option<String>,
    /// Who answers [default: the main agent]
    #[arg(short, long)]
    pub agent: Option<String>,
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
    /// Which tool calls that need a person's approval have it
    #[arg(long, value_name = "WHICH", default_value = "none")]
    pub approve: Approval,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Approval {
    None,
    /// Those that only read
    Read,
    All,
}

impl From<Approval> for Approve {
    fn from(approval: Approval) -> Self {
        match approval {
            Approval::None => Self::None,
            Approval::Read => Self::Read,
            Approval::All => Self::All,
        }
    }
}

pub fn run(common: &Common, args: &Args) -> anyhow::Result<Exit> {
    let project = super::project(common)?;
    let draft = project.draft();
    let errors = draft.problems().iter().filter(|problem| problem.is_error()).count();
    if errors > 0 {
        let mut found = report::Report::default();
        found.add(draft.files(), draft.problems().iter().filter(|problem| problem.is_error()).cloned());
        let _ = write!(anstream::stderr(), "{}", report::text::render(&found));
        return Ok(Exit::Invalid);
    }
    let name = match &args.agent {
        Some(text) => find(&draft, text)?,
        None => project.config.agents.main.clone(),
    };
    let roster = draft.finish()?;
    let agents: Arc<Agents> =
        Arc::new(roster.iter().map(|agent| (agent.name.clone(), Arc::clone(agent))).collect());
    let Some(agent) = agents.get(&name).cloned() else {
        anyhow::bail!("there is no agent `{name}`; `baton agents list` prints them all");
    };
    let Some(prompt) = prompt(args)? else {
        let _ = writeln!(anstream::stderr(), "error: nothing to ask: give a prompt, or pipe one in");
        return Ok(Exit::Usage);
    };
    let overrides = overrides(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = wiring::engine(&project, &agents)?;
        let request = RunRequest {
            caller: local(),
            agents,
            agent: Arc::clone(&agent),
            input: vec![Part::text(prompt)],
            overrides,
        };
        let finished = listen(engine.start(request), args, &agent).await?;
        Ok(conclude(&finished))
    })
}

/// Without a server everyone is the local user.
fn local() -> Caller {
    Caller {
        tenant: TenantId::parse("default").expect("a valid id"),
        user: UserId::parse("local").expect("a valid id"),
        thread_id: ThreadId::random(),
    }
}

/// The argument, and what is piped in below it.
fn prompt(args: &Args) -> anyhow::Result<Option<String>> {
    let mut piped = String::new();
    if !std::io::stdin().is_terminal() {
        let mut input = std::io::stdin().lock().take(MAX_STDIN_BYTES + 1);
        input.read_to_string(&mut piped).context("cannot read the piped input as text")?;
        anyhow::ensure!(
            piped.len() as u64 <= MAX_STDIN_BYTES,
            "the piped input is longer than {MAX_STDIN_BYTES} bytes"
        );
    }
    let parts = [args.prompt.as_deref().unwrap_or_default(), piped.trim_end()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    Ok(if parts.is_empty() { None } else { Some(parts.join("\n\n")) })
}

fn overrides(args: &Args) -> anyhow::Result<Overrides> {
    let output_schema = match &args.output_schema {
        Some(path) => {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            let schema: Value =
                serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
            Some(schema)
        }
        None => None,
    };
    Ok(Overrides {
        max_turns: args.max_turns,
        max_cost_usd: args.max_cost,
        timeout: args.timeout,
        output_schema,
        approve: args.approve.into(),
    })
}

/// Prints what happens until the run ends. Ctrl-C cancels it; a second one quits at once.
async fn listen(mut run: Run, args: &Args, agent: &Agent) -> anyhow::Result<Finished> {
    // Listened to from the start, so that none is missed between two events.
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut interrupted = false;
    let mut output = Output::new(args.json);
    let mut progress = Progress::new(agent, !args.json);
    loop {
        tokio::select! {
            event = run.events.recv() => match event {
                Some(event) => {
                    progress.show(&event);
                    output.show(&event)?;
                }
                None => break,
            },
            _ = interrupts.recv() => {
                if interrupted {
                    std::process::exit(Exit::Interrupted as i32);
                }
                interrupted = true;
                run.cancel();
            }
        }
    }
    let finished = run.join().await;
    progress.end(&finished);
    Ok(finished)
}

/// Where the answer goes.
enum Output {
    Json(Projection),
    /// On a terminal the text appears as it is written. In a pipe each message comes when it is whole, so that a turn that
    /// starts again leaves nothing half behind.
    Text {
        live: bool,
        written: bool,
    },
}

impl Output {
    fn new(json: bool) -> Self {
        if json {
            Self::Json(Projection::new(Detail::Trace))
        } else {
            Self::Text { live: std::io::stdout().is_terminal(), written: false }
        }
    }

    fn show(&mut self, event: &Event) -> anyhow::Result<()> {
        match self {
            Self::Json(projection) => {
                let lines = projection
                    .project(event)
                    .iter()
                    .map(serde_json::to_string)
                    .collect::<Result<Vec<_>, _>>()?;
                lines.iter().try_for_each(|line| super::print(&format!("{line}\n")))?;
            }
            Self::Text { .. } if event.visibility == Visibility::Internal => {}
            Self::Text { live, written } => match &event.kind {
                EventKind::TextStarted { .. } if *written && *live => super::print("\n")?,
                EventKind::TextDelta { delta, .. } if *live => {
                    super::print(delta)?;
                    *written = true;
                }
                EventKind::TextFinished { text, .. } if !*live => super::print(&format!("{text}\n"))?,
                EventKind::TextFinished { .. } => super::print("\n")?,
                EventKind::TurnRestarted { .. } => {
                    if *live {
                        super::print("\n")?;
                    }
                    let _ = writeln!(anstream::stderr(), "(the answer was cut; it starts again)");
                }
                _ => {}
            },
        }
        Ok(())
    }
}

fn conclude(finished: &Finished) -> Exit {
    if let Some(failure) = finished.failure.as_ref().filter(|_| finished.status == Status::Failed) {
        let style = anstyle::AnsiColor::Red.on_default().bold();
        let _ = writeln!(anstream::stderr(), "{style}error:{style:#} {failure}");
    }
    match (finished.status, &finished.failure) {
        (Status::Cancelled, _) => Exit::Interrupted,
        (Status::Failed, Some(Failure::Model(error))) if error.kind == ModelErrorKind::Auth => {
            Exit::Forbidden
        }
        (Status::Failed, Some(Failure::TimeUp)) => Exit::Limit,
        (Status::Failed, _) => Exit::Failed,
        (Status::Completed, _) if finished.answer.as_ref().is_some_and(|answer| answer.limit.is_some()) => {
            Exit::Limit
        }
        (Status::Completed, _) => Exit::Ok,
    }
}
