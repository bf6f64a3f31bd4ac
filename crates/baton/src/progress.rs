//! What is going on, on stderr, while the answer is on its way. Only for people: nothing is shown in a pipe.

mod crew;

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use baton_core::event::{Event, EventKind};
use baton_core::message::Visibility;
use baton_core::{AgentName, ThreadId};
use baton_engine::Finished;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::report::{self, figures, visible};
pub use crew::Names;
use crew::{Change, Crew};

/// The tree of agents at work, a line with a spinner for each: on what, for how long, and how much it has written. It is there while
/// there is nothing to read; an answer that is being written speaks for itself.
#[derive(Debug)]
pub struct Progress {
    is_shown: bool,
    crew: Crew,
    screen: MultiProgress,
    /// One for each member of the crew, or none while they are not shown.
    lines: Vec<ProgressBar>,
    agent: String,
    names: Names,
    /// Known from the first event on.
    thread: Option<ThreadId>,
    started: Instant,
}

impl Progress {
    /// `is_wanted` is false when every event is printed anyway.
    pub fn new(agent: &AgentName, names: Names, is_wanted: bool) -> Self {
        let mut progress = Self {
            is_shown: is_wanted && std::io::stderr().is_terminal(),
            crew: Crew::new(names.clone(), agent),
            screen: MultiProgress::new(),
            lines: Vec::new(),
            agent: visible(names.get(agent).map_or(agent.as_str(), String::as_str)),
            names,
            thread: None,
            started: Instant::now(),
        };
        progress.draw();
        progress
    }

    /// Called before an event is printed.
    pub fn show(&mut self, event: &Event) {
        self.thread = Some(event.thread_id);
        let change = self.crew.take(event);
        if event.kind.is_end() || is_beginning_of_answer(event) {
            return self.clear();
        }
        // While a text grows its line stays away, until its agent does something else.
        let is_hidden = self.lines.is_empty();
        match change {
            Change::Nothing => {}
            Change::Changed(_) if is_hidden && is_more_of_answer(event) => {}
            _ if is_hidden => self.draw(),
            Change::Changed(at) => self.update(at),
            Change::Joined(at) => self.insert(at),
            Change::Left(at, count, told) => self.remove(at, count, &told),
        }
    }

    fn draw(&mut self) {
        if self.is_shown {
            for at in 0..self.crew.len() {
                self.insert(at);
            }
        }
    }

    fn insert(&mut self, at: usize) {
        let line = self.screen.insert(at, spinner(self.crew.since(at)));
        line.set_message(self.crew.line(at));
        self.lines.insert(at.min(self.lines.len()), line);
    }

    fn update(&self, at: usize) {
        if let Some(line) = self.lines.get(at) {
            line.set_message(self.crew.line(at));
        }
    }

    /// Their lines go away; one that says how it went stays above.
    fn remove(&mut self, at: usize, count: usize, told: &str) {
        for line in self.lines.drain(at..at + count) {
            line.finish_and_clear();
            self.screen.remove(&line);
        }
        let dim = anstyle::Style::new().dimmed();
        let _ = self.screen.println(colored(&format!("{dim}{told}{dim:#}")));
        for at in 0..at {
            self.update(at);
        }
    }

    fn clear(&mut self) {
        for line in self.lines.drain(..).rev() {
            line.finish_and_clear();
            self.screen.remove(&line);
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
            Some(self.answered_by(finished)),
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

    /// Who was asked and, if that is another one, who answered.
    fn answered_by(&self, finished: &Finished) -> String {
        let other = finished.answered_by.as_ref();
        let other = other.map(|agent| visible(self.names.get(agent).map_or(agent.as_str(), String::as_str)));
        match other.filter(|other| *other != self.agent) {
            Some(other) => format!("{} → {other}", self.agent),
            None => self.agent.clone(),
        }
    }
}

fn is_beginning_of_answer(event: &Event) -> bool {
    event.visibility == Visibility::User && matches!(event.kind, EventKind::TextStarted { .. })
}

fn is_more_of_answer(event: &Event) -> bool {
    event.visibility == Visibility::User
        && matches!(event.kind, EventKind::TextDelta { .. } | EventKind::TextFinished { .. })
}

/// The line as this terminal wants it.
fn colored(text: &str) -> String {
    match anstream::AutoStream::choice(&std::io::stderr()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(text).to_string(),
        _ => text.to_owned(),
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
