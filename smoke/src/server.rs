//! The `baton serve` process of a case.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};

/// How long a server may take until it listens.
const START: Duration = Duration::from_mins(1);
/// Length of the log in an error, in characters.
const MAX_LOG_CHARS: usize = 2000;

/// Starts the command that its arguments are, and kills it when its standard input ends. The kernel closes that pipe however this
/// program ends, also when it is killed.
const GUARD: &str = r#""$@" </dev/null & server=$!; exec >/dev/null; cat; kill -9 "$server""#;

/// A server on a free port of the loopback interface. The process ends with this value, and with this program.
#[derive(Debug)]
pub struct Server {
    guard: Child,
    /// Open while the server is to run.
    pipe: ChildStdin,
    pub url: String,
}

impl Server {
    /// Starts `baton serve` in a project and waits until it listens.
    pub async fn start(baton: &Path, project: &Path) -> anyhow::Result<Self> {
        let log = project.join("server.log");
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "guard"]).arg(baton);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BATON_"))
        {
            command.env_remove(name);
        }
        // A group of its own: Ctrl-C in the terminal reaches only this program.
        let mut guard = command
            .args(["serve", "--no-ui", "--listen", "127.0.0.1:0"])
            .current_dir(project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", baton.display()))?;
        let pipe = guard.stdin.take().context("no stdin")?;
        let mut lines = BufReader::new(guard.stdout.as_mut().context("no stdout")?).lines();
        let first = tokio::time::timeout(START, lines.next_line()).await;
        match first.context("the server does not start")?? {
            Some(url) => Ok(Self { guard, pipe, url: url.trim().to_owned() }),
            None => bail!("the server does not start:\n{}", end_of(&log)),
        }
    }

    /// Ends the process. Runs that are left are given up with it.
    pub async fn stop(self) {
        let Self { mut guard, pipe, .. } = self;
        drop(pipe);
        let _ = guard.wait().await;
    }
}

/// The end of a log.
fn end_of(log: &Path) -> String {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let skipped = log.chars().count().saturating_sub(MAX_LOG_CHARS);
    log.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A command that takes the place of `baton` and writes its process id to `pid`.
    fn command(dir: &Path, text: &str) -> std::path::PathBuf {
        let file = dir.join("baton");
        std::fs::write(&file, format!("#!/bin/sh\necho $$ > pid\n{text}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    fn is_running(dir: &Path) -> bool {
        let pid = std::fs::read_to_string(dir.join("pid")).unwrap();
        let signal =
            std::process::Command::new("kill").args(["-0", pid.trim()]).stderr(Stdio::null()).status();
        signal.unwrap().success()
    }

    /// Dropping the value closes the pipe, which is what the kernel does when this program is killed.
    #[tokio::test]
    async fn server_ends_with_the_pipe() {
        let dir = tempfile::tempdir().unwrap();
        let baton = command(dir.path(), "echo http://127.0.0.1:1; exec sleep 600");
        let server = Server::start(&baton, dir.path()).await.unwrap();
        assert_eq!(server.url, "http://127.0.0.1:1");
        assert!(is_running(dir.path()));
        drop(server);
        for _ in 0..200 {
            if !is_running(dir.path()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the server still runs");
    }

    #[tokio::test]
    async fn server_that_does_not_start_is_reported_with_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let baton = command(dir.path(), "echo no agents here >&2; exit 1");
        let error = Server::start(&baton, dir.path()).await.unwrap_err().to_string();
        assert!(error.contains("does not start") && error.contains("no agents here"), "{error}");
    }
}
