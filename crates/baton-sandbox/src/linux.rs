//! The launcher on Linux.

mod filesystem;
mod init;
mod launch;
mod restrict;
mod syscalls;
mod watch;

pub use filesystem::SYSTEM_PATHS;

use std::ffi::OsString;
use std::fmt::Display;

use crate::{ENVIRONMENT, INIT_MARKER, LaunchRequest, MARKER, NOT_STARTED};

/// An error of the launcher: what it did, and what the system said.
type Outcome<T> = Result<T, String>;

/// Adds what was being done to an error.
fn during<E: Display>(what: &str) -> impl FnOnce(E) -> String + '_ {
    move |error| format!("{what}: {error}")
}

/// The variables of the program, which nothing before it may use.
fn program_environment() -> Outcome<Vec<(String, String)>> {
    let text = std::env::var(ENVIRONMENT).map_err(during("the environment"))?;
    serde_json::from_str(&text).map_err(during("the environment"))
}

pub fn launch_if_requested() {
    let mut arguments = std::env::args_os().skip(1);
    let step: fn(&LaunchRequest, Vec<OsString>) -> Outcome<i32> = match arguments.next() {
        Some(mark) if mark == MARKER => launch::run,
        Some(mark) if mark == INIT_MARKER => init::run,
        _ => return,
    };
    let request = arguments.next().unwrap_or_default();
    let request = serde_json::from_slice(request.as_encoded_bytes()).map_err(during("the request"));
    let code = request.and_then(|request| step(&request, arguments.collect()));
    std::process::exit(code.unwrap_or_else(|problem| {
        eprintln!("sandbox: {problem}");
        NOT_STARTED
    }));
}
