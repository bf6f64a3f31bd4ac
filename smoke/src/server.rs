//! The `baton serve` process of a case.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// How long a server may take until it listens.
const START: Duration = Duration::from_mins(1);
/// Length of the log in an error, in characters.
const MAX_LOG_CHARS: usize = 2000;

/// A server on a free port of the loopback interface. The process ends with this value.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pub url: String,
}

impl Server {
    /// Starts `baton serve` in a project and waits until it listens.
    pub async fn start(baton: &Path, project: &Path) -> anyhow::Result<Self> {
        let log = project.join("server.log");
        let mut command = Command::new(baton);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BATON_"))
        {
            command.env_remove(name);
        }
        let mut child = command
            .args(["serve", "--no-ui", "--listen", "127.0.0.1:0"])
            .current_dir(project)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", baton.display()))?;
        let mut lines = BufReader::new(child.stdout.as_mut().context("no stdout")?).lines();
        let first = tokio::time::timeout(START, lines.next_line()).await;
        match first.context("the server does not start")?? {
            Some(url) => Ok(Self { child, url: url.trim().to_owned() }),
            None => bail!("the server does not start:\n{}", end_of(&log)),
        }
    }

    /// Ends the process. Runs that are left are given up with it.
    pub async fn stop(mut self) {
        let _ = self.child.kill().await;
    }
}

/// The end of a log.
fn end_of(log: &Path) -> String {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let skipped = log.chars().count().saturating_sub(MAX_LOG_CHARS);
    log.chars().skip(skipped).collect()
}
