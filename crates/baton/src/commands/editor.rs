//! A line that a person types and can correct.

use std::io::IsTerminal as _;

use rustyline::config::Behavior;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{
    Cmd, ConditionalEventHandler, Config, Event, EventContext, EventHandler, KeyEvent, Movement, RepeatCount,
};

use super::lines::{InputLine, LinePrompt};

pub(super) struct Editor(rustyline::Editor<(), DefaultHistory>);

impl Editor {
    /// `None` where the terminal cannot be set up; lines are then read as from a pipe.
    pub(super) fn open() -> Option<Self> {
        // With the conversation in a file the prompt still belongs on the terminal.
        let is_shown = std::io::stdout().is_terminal();
        let behavior = if is_shown { Behavior::Stdio } else { Behavior::PreferTerm };
        let config = Config::builder().auto_add_history(true).behavior(behavior).build();
        let mut editor = rustyline::Editor::with_config(config).ok()?;
        editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(CtrlC)));
        Some(Self(editor))
    }

    pub(super) fn read(&mut self, LinePrompt { prompt, initial }: &LinePrompt) -> InputLine {
        match self.0.readline_with_initial(prompt, (initial, "")) {
            Ok(line) => InputLine::Said(line),
            Err(ReadlineError::Eof) => InputLine::End,
            Err(ReadlineError::Interrupted) => InputLine::Interrupted,
            Err(error) => {
                InputLine::Failed(anyhow::Error::new(error).context("cannot read from the terminal"))
            }
        }
    }
}

/// Takes back what was typed; with nothing typed it leaves.
struct CtrlC;

impl ConditionalEventHandler for CtrlC {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let is_empty = context.line().is_empty();
        Some(if is_empty { Cmd::Interrupt } else { Cmd::Kill(Movement::WholeBuffer) })
    }
}
