//! The text of PDF and office documents.
//!
//! [`text_of`] reads a document in memory: `pdf` for PDF, `office` for the ZIP archives of Word, Excel, PowerPoint and
//! OpenDocument. A document is the work of a stranger, and a parser may loop, nest too deep or need too much memory. Therefore the
//! `baton` command reads it in a process of its own with limits of time and memory: [`DocumentReader::Process`] starts the binary
//! again, whose `main` calls [`extract_if_requested`] first.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, setrlimit};

mod office;
mod pdf;
mod xml;

use crate::offload::Abandoned;

/// Of a document.
pub const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// Of its text; the rest is left out.
pub const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;
/// Names of documents that end otherwise are not looked at by searches.
pub const EXTENSIONS: &[&str] = &["pdf", "docx", "xlsx", "pptx", "odt", "ods", "odp"];

/// First argument of a process that reads one document.
const MARKER: &str = "__extract";
/// As for programs in a sandbox: otherwise the allocator would commit 1 GiB at the start.
const ALLOCATOR: (&str, &str) = ("MIMALLOC_ARENA_EAGER_COMMIT", "0");
const MEMORY_BYTES: u64 = 768 * 1024 * 1024;
const CPU_SECONDS: u64 = 20;
const WITHIN: Duration = Duration::from_secs(30);
/// Parsers recurse; the stack of the first thread may be small.
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// Processes at once, of all calls together.
const MAX_PROCESSES: usize = 4;
const FAILED: i32 = 1;

/// Why a document has no text here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    #[error("it is neither a PDF nor a Word, Excel, PowerPoint or OpenDocument file")]
    Unknown,
    #[error("it is damaged: {0}")]
    Damaged(String),
    #[error("it is protected by a password")]
    Encrypted,
    #[error("it has more than {} bytes", MAX_FILE_BYTES)]
    TooLarge,
    #[error("it cannot be read within {} s and {} MiB of memory", CPU_SECONDS, MEMORY_BYTES >> 20)]
    Limits,
    #[error("the call was cancelled")]
    Cancelled,
    #[error("{0}")]
    Failed(String),
}

/// Whether the first bytes are those of a document that may be read here.
pub fn is_document(file: &File) -> bool {
    let mut start = [0; 1024];
    let length = file.read_at(&mut start, 0).unwrap_or(0);
    kind(&start[..length]).is_some()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DocumentKind {
    Pdf,
    Archive,
}

fn kind(start: &[u8]) -> Option<DocumentKind> {
    if start.starts_with(b"PK\x03\x04") {
        return Some(DocumentKind::Archive);
    }
    // Some bytes may precede the mark.
    let is_pdf = start.windows(5).take(1024).any(|bytes| bytes == b"%PDF-");
    is_pdf.then_some(DocumentKind::Pdf)
}

/// The text of a document. Memory and time are those that the parsers need: see [`DocumentReader::Process`].
pub fn text_of(bytes: &[u8]) -> Result<String, DocumentError> {
    let text = match kind(&bytes[..bytes.len().min(1024)]) {
        Some(DocumentKind::Pdf) => pdf::text(bytes),
        Some(DocumentKind::Archive) => office::text(bytes),
        None => Err(DocumentError::Unknown),
    };
    text.map(|text| tidy(&text))
}

/// Without control characters, spaces at the ends of lines and more than one blank line in a row.
fn tidy(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len());
    let mut blank = 0;
    for line in text.lines() {
        let line: String = line.chars().filter(|c| !c.is_control() || *c == '\t').collect();
        let line = line.trim_end();
        blank = if line.is_empty() { blank + 1 } else { 0 };
        if blank <= 1 {
            tidied += line;
            tidied.push('\n');
        }
    }
    tidied.trim_matches('\n').to_owned()
}

/// How documents are read.
#[derive(Debug, Clone, Default)]
pub enum DocumentReader {
    /// In this process, for tests and for documents that can be trusted. A panic is caught; memory and time are not limited.
    #[default]
    InProcess,
    /// By another process of this program, whose `main` calls [`extract_if_requested`].
    Process(PathBuf),
}

impl DocumentReader {
    /// The binary of this process.
    pub fn current() -> Self {
        let own =
            if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() };
        own.map_or(Self::InProcess, Self::Process)
    }

    /// Reads a document from its beginning. Blocks.
    pub fn read(&self, file: File, abandoned: &Abandoned) -> Result<String, DocumentError> {
        let failed = |error: std::io::Error| DocumentError::Failed(error.to_string());
        if file.metadata().map_err(failed)?.len() > MAX_FILE_BYTES {
            return Err(DocumentError::TooLarge);
        }
        match self {
            Self::InProcess => {
                let mut bytes = Vec::new();
                file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(failed)?;
                on_own_stack(move || text_of(&bytes))
            }
            Self::Process(program) => {
                let _running = Running::wait(abandoned)?;
                let mut command = Command::new(program);
                command.arg(MARKER).env_clear().env(ALLOCATOR.0, ALLOCATOR.1);
                command.stdin(file).stdout(Stdio::piped()).stderr(Stdio::piped());
                supervise(command.spawn().map_err(failed)?, abandoned)
            }
        }
    }
}

/// Counts processes.
struct Running;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

impl Running {
    fn wait(abandoned: &Abandoned) -> Result<Self, DocumentError> {
        loop {
            let running = RUNNING.load(Ordering::Acquire);
            let next = running + 1;
            let takes =
                || RUNNING.compare_exchange(running, next, Ordering::AcqRel, Ordering::Acquire).is_ok();
            if running < MAX_PROCESSES && takes() {
                return Ok(Self);
            }
            if abandoned.is_set() {
                return Err(DocumentError::Cancelled);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Waits for the process and its output. Ends it when the call is abandoned or takes too long.
fn supervise(mut child: Child, abandoned: &Abandoned) -> Result<String, DocumentError> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let text = scope.spawn(|| read_all(stdout, MAX_TEXT_BYTES));
        let problem = scope.spawn(|| read_all(stderr, 1000));
        let ended = wait(&mut child, abandoned);
        if ended.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let (text, problem) = (text.join().unwrap_or_default(), problem.join().unwrap_or_default());
        let status = ended?;
        match status.code() {
            Some(0) => Ok(text),
            Some(FAILED) => Err(DocumentError::Failed(problem.trim().to_owned())),
            _ => Err(broken_off(status)),
        }
    })
}

/// A process that exceeds its limits is killed by the kernel, or ends itself because memory is refused.
fn broken_off(status: ExitStatus) -> DocumentError {
    tracing::warn!(
        code = status.code(),
        signal = status.signal(),
        "a document was not read: its process broke off"
    );
    DocumentError::Limits
}

fn wait(child: &mut Child, abandoned: &Abandoned) -> Result<ExitStatus, DocumentError> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if abandoned.is_set() => return Err(DocumentError::Cancelled),
            Ok(None) if started.elapsed() > WITHIN => return Err(DocumentError::Limits),
            Ok(None) => std::thread::sleep(pause),
            Err(error) => return Err(DocumentError::Failed(error.to_string())),
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn read_all(pipe: Option<impl Read>, max_bytes: usize) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let _ = pipe.take(max_bytes as u64).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Turns this process into one that reads the document on its standard input, if its arguments say so, and then never returns.
pub fn extract_if_requested() {
    if std::env::args_os().nth(1).is_none_or(|argument| argument != MARKER) {
        return;
    }
    limit_resources();
    // A parser that panics is reported as a damaged document; where it is in the code tells a model nothing.
    std::panic::set_hook(Box::new(|_| {}));
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_FILE_BYTES).read_to_end(&mut bytes);
    let text = match read {
        Ok(_) => on_own_stack(move || text_of(&bytes)),
        Err(error) => Err(DocumentError::Failed(error.to_string())),
    };
    let code = match text {
        Ok(text) => {
            let mut stdout = std::io::stdout();
            i32::from(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err())
        }
        Err(error) => {
            let _ = write!(std::io::stderr(), "{error}");
            FAILED
        }
    };
    std::process::exit(code)
}

/// A limit that the system refuses is left out: the process that started this one also watches the time.
fn limit_resources() {
    let limits = [
        (Resource::Data, MEMORY_BYTES),
        (Resource::Cpu, CPU_SECONDS),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ];
    for (resource, limit) in limits {
        let _ = setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) });
    }
}

/// Runs a parser where it may recurse. A panic is an error.
fn on_own_stack(
    work: impl FnOnce() -> Result<String, DocumentError> + Send + 'static,
) -> Result<String, DocumentError> {
    let thread = std::thread::Builder::new().name("document".to_owned()).stack_size(STACK_BYTES).spawn(work);
    let thread = thread.map_err(|error| DocumentError::Failed(error.to_string()))?;
    thread
        .join()
        .unwrap_or_else(|_| Err(DocumentError::Damaged("its structure contradicts itself".to_owned())))
}

/// Adds text up to the limit of a document.
#[derive(Debug, Default)]
struct DocumentText {
    text: String,
    is_full: bool,
}

impl DocumentText {
    fn push(&mut self, text: &str) {
        let room = MAX_TEXT_BYTES - self.text.len();
        let end = text.floor_char_boundary(room);
        self.text += &text[..end];
        self.is_full |= end < text.len();
    }

    /// Begins a new line unless the text is at the start of one.
    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.push("\n");
        }
    }

    fn heading(&mut self, title: &str) {
        self.end_line();
        self.push(&format!("\n# {title}\n\n"));
    }
}
