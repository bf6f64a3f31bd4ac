//! What is going on, on stderr, while the answer is on its way. Only for people: nothing is shown in a pipe.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use baton_core::ThreadId;
use baton_core::agent::Agent;
use baton_core::event::{Event, EventKind};
use baton_core::message::Visibility;
use baton_engine::Finished;
use indicatif::{ProgressBar, ProgressStyle};

use crate::report::{self, figures, visible};

/// A line with a spinner: who is at work, on what, for how long. It is there while there is nothing to read; an answer that is
/// being written speaks for itself.
#[derive(Debug)]
pub struct Progress {
    is_shown: bool,
    spinner: Option<ProgressBar>,
    agent: String,
    /// Known from the first event on.
    thread: Option<ThreadId>,
    started: Instant,
}

impl Progress {
    /// `is_wanted` is false when every event is printed anyway.
    pub fn new(agent: &Agent, is_wanted: bool) -> Self {
        let is_shown = is_wanted && std::io::stderr().is_terminal();
        let agent = visible(&agent.display_name);
        let mut progress = Self { is_shown, spinner: None, agent, thread: None, started: Instant::now() };
        progress.spin(&format!("{} thinks…", progress.agent));
        progress
    }

    /// Called before an event is printed.
    pub fn show(&mut self, event: &Event) {
        self.thread = Some(event.thread_id);
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
        let spinner = self.spinner.get_or_insert_with(|| spinner(self.started));
        // Tools are named by the model, and a status may quote a server.
        spinner.set_message(visible(message));
    }

    fn clear(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }

    /// One line that says what it took, and one that says how the conversation goes on.
    pub fn end(&mut self, finished: &Finished) {
        self.clear();
        if !self.is_shown {
            return;
        }
        let usage = &finished.usage;
        let turns = finished.answer.as_ref().map(|answer| answer.turns).filter(|turns| *turns > 0);
        let facts = [
            Some(self.agent.clone()),
            turns.map(|turns| figures::count(turns.into(), "turn")),
            Some(format!("{} tokens", figures::tokens(usage))),
            Some(format!("cost {}", figures::cost(usage.cost))),
            Some(figures::stretch(self.started.elapsed())),
        ];
        let dim = anstyle::Style::new().dimmed();
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        report::tell(&format!("{dim}{}{dim:#}", facts.join(" · ")));
        if let Some(thread) = self.thread {
            report::tell(&format!("{dim}continue with: baton run --thread {thread}{dim:#}"));
        }
    }
}

/// For work that has no events to tell: a line that goes away when this is dropped.
#[derive(Debug)]
pub struct Waiting(Option<ProgressBar>);

impl Waiting {
    pub fn new(message: &str) -> Self {
        let is_shown = std::io::stderr().is_terminal();
        let spinner = is_shown.then(|| spinner(Instant::now()));
        if let Some(spinner) = &spinner {
            spinner.set_message(visible(message));
        }
        Self(spinner)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(spinner) = self.0.take() {
            spinner.finish_and_clear();
        }
    }
}

fn spinner(since: Instant) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner:.cyan} {msg} {elapsed:.dim}");
    let spinner = ProgressBar::new_spinner().with_elapsed(since.elapsed());
    spinner.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}
