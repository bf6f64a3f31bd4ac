//! What is asked: the argument, and what is piped in below it.

use std::io::{IsTerminal as _, Read as _};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::Context as _;

use crate::report;

/// What is piped in is a question or a document, not a data set.
const MAX_STDIN_BYTES: u64 = 1024 * 1024;
/// A pipe that is silent for this long may have been left open by mistake.
const SILENCE: Duration = Duration::from_secs(2);

/// The prompt among the arguments: the only one, or the second after the word `mission`. `baton run mission` alone asks "mission".
pub(super) fn argument(arguments: &[String]) -> anyhow::Result<Option<&str>> {
    match arguments {
        [] => Ok(None),
        [prompt] => Ok(Some(prompt)),
        [word, prompt] if word == "mission" => Ok(Some(prompt)),
        _ => anyhow::bail!("the prompt is one argument: put quotes around it"),
    }
}

/// `None` when there is nothing to ask.
pub(super) fn read(argument: Option<&str>) -> anyhow::Result<Option<String>> {
    let piped = match argument {
        _ if std::io::stdin().is_terminal() => String::new(),
        Some(_) => explained(piped)?,
        None => piped()?,
    };
    let parts = [argument.unwrap_or_default(), piped.trim_end()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    Ok(if parts.is_empty() { None } else { Some(parts.join("\n\n")) })
}

fn piped() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(MAX_STDIN_BYTES + 1);
    input.read_to_end(&mut bytes).context("cannot read the piped input")?;
    anyhow::ensure!(
        bytes.len() as u64 <= MAX_STDIN_BYTES,
        "the piped input is longer than {MAX_STDIN_BYTES} bytes"
    );
    String::from_utf8(bytes).context("the piped input is not text")
}

/// Says what is waited for when a read takes long: a person who gave a prompt may not expect that more is read.
fn explained<T>(read: impl FnOnce() -> T) -> T {
    let (reading, ended) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if ended.recv_timeout(SILENCE) == Err(RecvTimeoutError::Timeout) {
                report::tell("reading more from stdin; close it or use </dev/null");
            }
        });
        let result = read();
        drop(reading);
        result
    })
}
