//! Exit codes of the contract.

use std::process::ExitCode;

/// How a command ended. The numbers are promised to scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    Failed = 1,
    /// Wrong use of the command line. clap exits with the same number.
    Usage = 2,
    /// The configuration or an agent file is invalid.
    Invalid = 3,
    /// A key is missing or not accepted.
    Forbidden = 4,
    /// The run waits for a person's decision or answer.
    Waiting = 5,
    /// There is an answer, but a limit of turns, money or time was met before it was complete.
    Limit = 6,
    /// The server of `--server` cannot be reached.
    Unreachable = 7,
    /// SIGHUP: the terminal is gone. Like the ones below, the number a shell gives to a command that the signal ended.
    HungUp = 129,
    /// Ctrl-C.
    Interrupted = 130,
    /// The reader of the output closed the pipe, so the run was ended.
    ReaderGone = 141,
    /// SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// An error that ends the command with this code.
    pub fn because(self, error: impl Into<anyhow::Error>) -> anyhow::Error {
        ExitError { exit: self, error: error.into() }.into()
    }
}

/// An error that knows its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{error:#}")]
pub struct ExitError {
    pub exit: Exit,
    error: anyhow::Error,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
