//! What is going on, on stderr, while the answer is on its way. Only for people: nothing is shown in a pipe.

mod crew;

use std::io::{IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use baton_core::event::{Event, EventKind};
use baton_core::message::Visibility;
use baton_core::store::RunStatus;
use baton_core::{AgentName, ThreadId};
use baton_engine::RunResult;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::termios::{self, LocalModes};

use crate::report::table::{cut, width_of};
use crate::report::{self, figures, visible};
pub use crew::AgentNames;
use crew::{Crew, CrewChange};

const TICK: Duration = Duration::from_millis(100);
/// What the spinner and the time take of a line.
const AROUND: usize = 10;
/// What is always said of an agent.
const LEAST: usize = 20;

/// The progress that is drawn, for code that has to write between its lines.
static SCREEN: OnceLock<MultiProgress> = OnceLock::new();

/// Whether its lines are there at the moment.
static IS_DRAWN: AtomicBool = AtomicBool::new(false);

/// Writes to stderr without leaving half a tree behind: its lines go away, and are drawn again below.
pub fn aside(write: impl FnOnce()) {
    match SCREEN.get() {
        Some(screen) => screen.suspend(write),
        None => write(),
    }
}

/// After Ctrl-C. The terminal has shown it as `^C` behind the last line, which is full, so it stands on a line of its own: what is
/// drawn next would be one line too low. Behind an answer that is being written it may stay.
pub fn interrupted() {
    let stderr = std::io::stderr();
    let is_typed = || {
        let modes = termios::tcgetattr(&stderr).ok()?.local_modes;
        let is_in_front = termios::tcgetpgrp(&stderr).ok()? == rustix::process::getpgrp();
        Some(is_in_front && modes.contains(LocalModes::ECHO | LocalModes::ECHOCTL))
    };
    if IS_DRAWN.load(Ordering::Acquire) && stderr.is_terminal() && is_typed().unwrap_or(false) {
        let _ = write!(stderr.lock(), "\r\x1b[K\x1b[A");
    }
}

/// The tree of running agents, a line with a spinner for each: on what, for how long, and how much it has written. It is there while
/// there is nothing to read; an answer that is being written speaks for itself.
#[derive(Debug)]
pub struct Progress {
    is_shown: bool,
    crew: Crew,
    screen: MultiProgress,
    /// One for each member of the crew, or none while they are not shown.
    lines: Vec<ProgressBar>,
    agent: String,
    names: AgentNames,
    /// Known from the first event on.
    thread: Option<ThreadId>,
    started: Instant,
}

impl Progress {
    /// `is_wanted` is false when every event is printed anyway.
    pub fn new(agent: &AgentName, names: AgentNames, is_wanted: bool) -> Self {
        let mut progress = Self {
            is_shown: is_wanted && std::io::stderr().is_terminal(),
            crew: Crew::new(names.clone(), agent),
            screen: SCREEN.get_or_init(MultiProgress::new).clone(),
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
            CrewChange::Nothing => {}
            CrewChange::Changed(_) if is_hidden && is_more_of_answer(event) => {}
            _ if is_hidden => self.draw(),
            CrewChange::Changed(at) => self.update(at),
            CrewChange::Joined(at) => self.insert(at),
            CrewChange::Left(at, count, told) => self.remove(at, count, &told),
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
        let line = spinner(self.crew.since(at));
        line.set_message(self.crew.line(at, room()));
        let line = self.screen.insert(at, line);
        line.enable_steady_tick(TICK);
        IS_DRAWN.store(true, Ordering::Release);
        self.lines.insert(at.min(self.lines.len()), line);
        self.update_above(at);
    }

    fn update(&self, at: usize) {
        if let Some(line) = self.lines.get(at) {
            line.set_message(self.crew.line(at, room()));
        }
    }

    /// Shows that an agent waits for another one.
    fn update_above(&self, at: usize) {
        (0..at).for_each(|at| self.update(at));
    }

    /// Their lines go away; one that says how it went stays above.
    fn remove(&mut self, at: usize, count: usize, told: &str) {
        for line in self.lines.drain(at..at + count) {
            line.finish_and_clear();
            self.screen.remove(&line);
        }
        let dim = anstyle::Style::new().dimmed();
        let told = cut(told, room() + AROUND);
        let _ = self.screen.println(colored(&format!("{dim}{told}{dim:#}")));
        self.update_above(at);
    }

    /// All at once: lines that go away one by one leave some of them behind.
    pub fn clear(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        self.lines.iter().for_each(ProgressBar::disable_steady_tick);
        IS_DRAWN.store(false, Ordering::Release);
        let _ = self.screen.clear();
        self.screen.set_draw_target(ProgressDrawTarget::hidden());
        for line in self.lines.drain(..) {
            line.finish_and_clear();
            self.screen.remove(&line);
        }
        self.screen.set_draw_target(ProgressDrawTarget::stderr());
    }

    /// One line that says what it took, and one that says how the conversation goes on.
    pub fn end(&mut self, finished: &RunResult) {
        self.clear();
        // A run that waits has not ended; what it took is said when it has.
        if !self.is_shown || finished.status == RunStatus::Waiting {
            return;
        }
        let usage = &finished.usage;
        let turns = finished.answer.as_ref().map(|answer| answer.turns).filter(|turns| *turns > 0);
        let facts = [
            (finished.status == RunStatus::Cancelled).then(|| "cancelled".to_owned()),
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
    fn answered_by(&self, finished: &RunResult) -> String {
        let other = finished.answered_by.as_ref();
        let other = other.map(|agent| visible(self.names.get(agent).map_or(agent.as_str(), String::as_str)));
        match other.filter(|other| *other != self.agent) {
            Some(other) => format!("{} → {other}", self.agent),
            None => self.agent.clone(),
        }
    }
}

/// Columns for what is said of an agent. A line that is too long would break, and stay when it should go away.
fn room() -> usize {
    width_of(&std::io::stderr()).map_or(usize::MAX, |width| width.saturating_sub(AROUND)).max(LEAST)
}

/// A text without deltas starts with its end.
fn is_beginning_of_answer(event: &Event) -> bool {
    event.visibility == Visibility::User
        && matches!(event.kind, EventKind::TextStarted { .. } | EventKind::TextFinished { .. })
}

fn is_more_of_answer(event: &Event) -> bool {
    event.visibility == Visibility::User && matches!(event.kind, EventKind::TextDelta { .. })
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
pub struct WaitingLine(Option<ProgressBar>);

impl WaitingLine {
    pub fn new(message: &str) -> Self {
        let is_shown = std::io::stderr().is_terminal();
        let spinner = is_shown.then(|| spinner(Instant::now()));
        if let Some(spinner) = &spinner {
            spinner.set_message(cut(&visible(message), room()));
            spinner.set_draw_target(ProgressDrawTarget::stderr());
            spinner.enable_steady_tick(TICK);
        }
        Self(spinner)
    }
}

impl Drop for WaitingLine {
    fn drop(&mut self) {
        if let Some(spinner) = self.0.take() {
            spinner.finish_and_clear();
        }
    }
}

/// Nothing is drawn before it is known where.
fn spinner(since: Instant) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner:.cyan} {msg} {elapsed:.dim}");
    let nowhere = ProgressDrawTarget::hidden();
    let spinner = ProgressBar::with_draw_target(None, nowhere).with_elapsed(since.elapsed());
    spinner.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    spinner
}
