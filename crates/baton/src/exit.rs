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
    /// There is an answer, but a limit of turns, money or time was met before it was complete.
    Limit = 6,
    /// Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
