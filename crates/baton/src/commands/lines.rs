//! Where lines come from: a person at a terminal, or a pipe.

use std::io::{BufRead as _, IsTerminal as _, Read as _};

use anyhow::Context as _;
use rustix::termios::{self, OptionalActions, Termios};
use tokio::sync::mpsc;

use super::editor::Editor;

/// A line is something that a person says, not a data set.
const MAX_LINE_BYTES: u64 = 1024 * 1024;

pub(crate) enum InputLine {
    Said(String),
    /// There is no more.
    End,
    /// Ctrl-C at an empty prompt.
    Interrupted,
    Failed(anyhow::Error),
}

/// What stands before the line, and on it.
pub(crate) struct LinePrompt {
    pub(crate) prompt: String,
    pub(crate) initial: String,
}

/// Read by a thread of its own, one line per request, so that signals are handled while a person types.
pub(crate) struct InputLines {
    ask: std::sync::mpsc::Sender<LinePrompt>,
    said: mpsc::Receiver<InputLine>,
    /// Whether a person types them.
    pub(crate) is_typed: bool,
    _modes: Modes,
}

impl InputLines {
    pub(crate) fn open() -> Self {
        let (ask, asked) = std::sync::mpsc::channel::<LinePrompt>();
        let (tell, said) = mpsc::channel(1);
        let is_typed = std::io::stdin().is_terminal();
        let modes = Modes(termios::tcgetattr(std::io::stdin()).ok().filter(|_| is_typed));
        std::thread::spawn(move || {
            let mut editor = if is_typed { Editor::open() } else { None };
            while let Ok(prompt) = asked.recv() {
                let line = editor.as_mut().map_or_else(piped, |editor| editor.read(&prompt));
                if tell.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { ask, said, is_typed, _modes: modes }
    }

    /// The next line. The prompt is for people only.
    pub(crate) async fn next(&mut self, prompt: String) -> InputLine {
        self.read(LinePrompt { prompt, initial: String::new() }).await
    }

    /// The same with a text that the person can change.
    pub(crate) async fn edit(&mut self, prompt: String, initial: String) -> InputLine {
        self.read(LinePrompt { prompt, initial }).await
    }

    async fn read(&mut self, prompt: LinePrompt) -> InputLine {
        if self.ask.send(prompt).is_err() {
            return InputLine::End;
        }
        self.said.recv().await.unwrap_or(InputLine::End)
    }
}

fn piped() -> InputLine {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut bytes);
    let line = read.context("cannot read the input").and_then(|length| {
        anyhow::ensure!(length as u64 <= MAX_LINE_BYTES, "a line is longer than {MAX_LINE_BYTES} bytes");
        String::from_utf8(bytes).context("the input is not text")
    });
    match line {
        Ok(line) if line.is_empty() => InputLine::End,
        Ok(line) => InputLine::Said(line),
        Err(error) => InputLine::Failed(error),
    }
}

/// How the terminal was. It is like this again whatever the editor was at when the chat ended.
struct Modes(Option<Termios>);

impl Drop for Modes {
    fn drop(&mut self) {
        if let Some(modes) = self.0.take() {
            let _ = termios::tcsetattr(std::io::stdin(), OptionalActions::Drain, &modes);
        }
    }
}
