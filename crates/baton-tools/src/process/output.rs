//! Output of a program, as far as it is kept.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdout};

pub const MAX_BYTES: usize = 1024 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;

/// Both streams of a child. Read to their end even when nothing more is kept: a full pipe would stop the program.
#[derive(Debug)]
pub struct ProcessPipes {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    chunks: [Vec<u8>; 2],
}

impl ProcessPipes {
    pub fn of(child: &mut Child) -> Self {
        let chunks = [vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]];
        Self { stdout: child.stdout.take(), stderr: child.stderr.take(), chunks }
    }

    pub fn is_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Takes what comes next from either stream. Loses nothing when dropped while it waits.
    pub async fn read(&mut self, output: &mut ProcessOutput) {
        let [out, err] = &mut self.chunks;
        tokio::select! {
            count = next(&mut self.stdout, out), if self.stdout.is_some() => output.keep(&out[..count]),
            count = next(&mut self.stderr, err), if self.stderr.is_some() => output.keep(&err[..count]),
            else => {}
        }
    }
}

/// How many bytes were read. A stream that ended or broke is closed.
async fn next(stream: &mut Option<impl AsyncRead + Unpin>, chunk: &mut [u8]) -> usize {
    let Some(open) = stream else { return 0 };
    let count = open.read(chunk).await.unwrap_or(0);
    if count == 0 {
        *stream = None;
    }
    count
}

#[derive(Debug, Default)]
pub struct ProcessOutput {
    kept: Vec<u8>,
    dropped: u64,
}

impl ProcessOutput {
    fn keep(&mut self, chunk: &[u8]) {
        let room = MAX_BYTES - self.kept.len();
        let (kept, dropped) = chunk.split_at(chunk.len().min(room));
        self.kept.extend_from_slice(kept);
        self.dropped += dropped.len() as u64;
    }

    pub fn shown(&self, status: ExitStatus) -> String {
        let end = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None) => "ended".to_owned(),
        };
        let text = String::from_utf8_lossy(&self.kept);
        let text = text.trim_end_matches('\n');
        let rest = match self.dropped {
            0 => String::new(),
            dropped => format!("\n… ({dropped} more bytes were not kept)"),
        };
        if text.is_empty() { format!("{end}, no output{rest}") } else { format!("{end}\n\n{text}{rest}") }
    }
}
