//! What is going on, on stderr, while the answer is on its way. Only for people: nothing is shown in a pipe.

use std::io::IsTerminal as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use baton_core::agent::Agent;
use baton_core::event::{Event, EventKind};
use baton_core::usage::Cost;
use baton_engine::Finished;
use indicatif::{ProgressBar, ProgressStyle};

/// A line with a spinner: who is at work, on what, for how long.
#[derive(Debug)]
pub struct Progress {
    spinner: Option<ProgressBar>,
    agent: String,
    started: Instant,
}

impl Progress {
    pub fn new(agent: &Agent) -> Self {
        let spinner = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{spinner:.cyan} {msg} {elapsed:.dim}");
            let spinner = ProgressBar::new_spinner();
            spinner.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            spinner.set_message(format!("{} thinks…", agent.display_name));
            spinner.enable_steady_tick(Duration::from_millis(100));
            spinner
        });
        Self { spinner, agent: agent.display_name.clone(), started: Instant::now() }
    }

    pub fn show(&self, event: &Event) {
        let Some(spinner) = &self.spinner else { return };
        match &event.kind {
            EventKind::ToolCalled { tool, .. } => spinner.set_message(format!("{} uses {tool}…", self.agent)),
            EventKind::ToolReturned { .. } | EventKind::TurnRestarted { .. } => {
                spinner.set_message(format!("{} thinks…", self.agent));
            }
            EventKind::Status { text } => spinner.set_message(text.clone()),
            EventKind::TextDelta { .. } => spinner.set_message(format!("{} writes…", self.agent)),
            _ => {}
        }
    }

    /// The spinner's line must not stand in the middle of the answer.
    pub fn hidden_while<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.spinner {
            Some(spinner) => spinner.suspend(write),
            None => write(),
        }
    }

    /// One line that says what it took.
    pub fn end(&self, finished: &Finished) {
        let Some(spinner) = &self.spinner else { return };
        spinner.finish_and_clear();
        let usage = &finished.usage;
        let cost = match usage.cost {
            Cost::Known(usd) => usd.to_string(),
            Cost::Unknown(usd) if usd.nanos() == 0 => "cost unknown".to_owned(),
            Cost::Unknown(usd) => format!("at least {usd}"),
        };
        let turns =
            finished.answer.as_ref().map(|answer| format!("{} turns · ", answer.turns)).unwrap_or_default();
        let dim = anstyle::Style::new().dimmed();
        let _ = writeln!(
            anstream::stderr(),
            "{dim}{} · {turns}{} tokens · {cost} · {:.1} s{dim:#}",
            self.agent,
            usage.tokens.total(),
            self.started.elapsed().as_secs_f64()
        );
    }
}
