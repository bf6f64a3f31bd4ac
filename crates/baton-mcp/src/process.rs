//! A server as a child process, with everything it starts.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_util::task::AbortOnDropHandle;

use crate::stdout::Stdout;

/// How long a process that has closed its output may take to be gone, and its last words to arrive.
const LAST_WORDS: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(10);

/// Ends with its value: dropping it kills the process and its descendants.
pub(crate) struct ChildProcess {
    child: Mutex<Child>,
    /// Taken with the last signal: afterwards the number may be somebody else's.
    #[cfg(unix)]
    group: Mutex<Option<nix::unistd::Pid>>,
    stderr: Tail,
    /// Lines on the standard output that are no messages.
    noise: Tail,
    listener: AbortOnDropHandle<()>,
}

pub(crate) type ProcessPipes = (Stdout<ChildStdout>, ChildStdin);

impl ChildProcess {
    pub fn spawn(program: std::process::Command, args: &[String]) -> std::io::Result<(Self, ProcessPipes)> {
        let mut builder = Command::from(program);
        builder.args(args).kill_on_drop(true);
        builder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: launchers such as `npx` start the real server as their child.
        #[cfg(unix)]
        builder.process_group(0);
        let mut child = builder.spawn()?;
        let missing = || std::io::Error::other("a pipe is missing");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let (tail, noise) = (Tail::default(), Tail::default());
        let process = Self {
            #[cfg(unix)]
            group: Mutex::new(
                child.id().and_then(|id| i32::try_from(id).ok()).map(nix::unistd::Pid::from_raw),
            ),
            child: Mutex::new(child),
            stderr: tail.clone(),
            noise: noise.clone(),
            listener: AbortOnDropHandle::new(tokio::spawn(tail.follow(stderr))),
        };
        Ok((process, (Stdout::new(stdout, noise), stdin)))
    }

    pub fn id(&self) -> Option<u32> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).id()
    }

    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait().ok().flatten()
    }

    pub fn kill(&self) {
        #[cfg(unix)]
        if let Some(group) = self.group.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Fails when nobody of the group is left.
            let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        }
        let _ = self.child.lock().unwrap_or_else(PoisonError::into_inner).start_kill();
    }

    /// Waits for the process, whose input was closed, to end by itself; then asks it, then kills what is left.
    pub async fn end(&self, patience: Duration) {
        if tokio::time::timeout(patience, self.exited()).await.is_err() {
            self.terminate();
            let _ = tokio::time::timeout(patience, self.exited()).await;
        }
        self.kill();
        let _ = tokio::time::timeout(LAST_WORDS, self.exited()).await;
    }

    #[cfg(unix)]
    fn terminate(&self) {
        if let Some(group) = *self.group.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGTERM);
        }
    }

    /// There is no way to ask.
    #[cfg(not(unix))]
    fn terminate(&self) {}

    async fn exited(&self) -> ExitStatus {
        loop {
            if let Some(status) = self.exit_status() {
                return status;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Everything that helps to understand why it does not work. For a process that has closed its output.
    pub async fn obituary(&self) -> String {
        let status = tokio::time::timeout(LAST_WORDS, self.exited()).await;
        let listened = async {
            while !self.listener.is_finished() {
                tokio::time::sleep(POLL).await;
            }
        };
        let _ = tokio::time::timeout(LAST_WORDS, listened).await;
        let end = match status {
            Ok(status) => format!("it ended with {status}"),
            Err(_) => "it closed its output".to_owned(),
        };
        end + &self.last_words()
    }

    /// The last lines it wrote that are not part of the protocol.
    pub fn last_words(&self) -> String {
        let mut words = String::new();
        for (name, tail) in [("stderr", &self.stderr), ("stdout, where only messages belong", &self.noise)] {
            let text = tail.text();
            if !text.is_empty() {
                words.push_str(&format!("; its last lines on {name}:\n{text}"));
            }
        }
        words
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last lines of an endless text.
#[derive(Clone, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    const MAX_LINES: usize = 20;
    const MAX_LINE_BYTES: usize = 300;

    pub fn push(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        if line.trim().is_empty() {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == Self::MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(line.trim_end().to_owned());
    }

    pub fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Adds to a line that is still being written; its beginning is what counts.
    pub fn extend(line: &mut Vec<u8>, bytes: &[u8]) {
        let room = Self::MAX_LINE_BYTES.saturating_sub(line.len());
        line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    async fn follow(self, mut source: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 4096];
        let mut line = Vec::new();
        while let Ok(count @ 1..) = source.read(&mut buffer).await {
            for part in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
                Self::extend(&mut line, part.strip_suffix(b"\n").unwrap_or(part));
                if part.ends_with(b"\n") {
                    self.push(&std::mem::take(&mut line));
                }
            }
        }
        self.push(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tail_is_bounded() {
        let tail = Tail::default();
        let text = format!("{}\n\nlast, not closed", "y".repeat(5000) + "\n").repeat(30);
        tail.clone().follow(text.as_bytes()).await;
        let kept = tail.text();
        assert_eq!(kept.lines().count(), Tail::MAX_LINES);
        assert!(kept.lines().all(|line| line.len() <= Tail::MAX_LINE_BYTES));
        assert!(kept.ends_with("last, not closed"));
    }
}
