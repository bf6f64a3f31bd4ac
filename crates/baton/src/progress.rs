//! What is going on, on stderr, while the answer is on its way. Only for people: nothing is shown in a pipe.

use std::io::IsTerminal as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use baton_core::agent::Agent;
use baton_core::event::{Event, EventKind};
use baton_core::message::Visibility;
use baton_core::usage::Cost;
use baton_engine::Finished;
use indicatif::{ProgressBar, ProgressStyle};

use crate::report::visible;

/// A line with a spinner: who is at work, on what, for how long. It is there while there is nothing to read; an answer that is
/// being written speaks for itself.
#[derive(Debug)]
pub struct Progress {
    is_shown: bool,
    spinner: Option<ProgressBar>,
    agent: String,
    started: Instant,
}

impl Progress {
    /// `is_wanted` is false when every event is printed anyway.
    pub fn new(agent: &Agent, is_wanted: bool) -> Self {
        let is_shown = is_wanted && std::io::stderr().is_terminal();
        let agent = visible(&agent.display_name);
        let mut progress = Self { is_shown, spinner: None, agent, started: Instant::now() };
        progress.spin(&format!("{} thinks…", progress.agent));
        progress
    }

    /// Called before an event is printed.
    pub fn show(&mut self, event: &Event) {
        let thinks = format!("{} thinks…", self.agent);
        match &event.kind {
            EventKind::TextStarted { .. } if event.visibility == Visibility::User => self.clear(),
            EventKind::ToolCalled { tool, .. } => self.spin(&format!("{} uses {tool}…", self.agent)),
            EventKind::ToolReturned { .. } => self.spin(&thinks),
            EventKind::Status { text } => self.spin(text),
            EventKind::RunFinished { .. } | EventKind::RunFailed { .. } => self.clear(),
            _ => {}
        }
    }

    fn spin(&mut self, message: &str) {
        if !self.is_shown {
            return;
        }
        let spinner = self.spinner.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner:.cyan} {msg} {elapsed:.dim}");
            let spinner = ProgressBar::new_spinner().with_elapsed(self.started.elapsed());
            spinner.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            spinner.enable_steady_tick(Duration::from_millis(100));
            spinner
        });
        // Tools are named by the model, and a status may quote a server.
        spinner.set_message(visible(message));
    }

    fn clear(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }

    /// One line that says what it took.
    pub fn end(&mut self, finished: &Finished) {
        self.clear();
        if !self.is_shown {
            return;
        }
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
