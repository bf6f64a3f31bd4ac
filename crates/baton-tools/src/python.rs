//! `python`: Python code or a Python file of the work folder, in the sandbox of `shell`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::offload::offload;
use crate::process::{self, ProcessSettings, Program};
use crate::schema::{arguments, object};
use crate::work_dir::WorkDir;

const MAX_CODE_BYTES: usize = 256 * 1024;
const MAX_ARGUMENTS: usize = 64;

/// How Python runs. The tool exists only where an operator asked for it.
#[derive(Debug, Clone)]
pub struct PythonSettings {
    /// A name in `PATH`, or a path.
    pub interpreter: String,
    pub process: ProcessSettings,
    /// What the file that is run must not be.
    pub protected: Vec<PathBuf>,
}

impl Default for PythonSettings {
    fn default() -> Self {
        Self { interpreter: "python3".to_owned(), process: ProcessSettings::default(), protected: Vec::new() }
    }
}

#[derive(Debug)]
pub struct Python {
    spec: ToolSpec,
    settings: Arc<PythonSettings>,
}

#[derive(Debug, Deserialize)]
struct PythonArguments {
    code: Option<String>,
    path: Option<String>,
    #[serde(default)]
    args: Vec<String>,
}

impl Python {
    pub fn new(settings: PythonSettings) -> Self {
        let spec = ToolSpec {
            name: "python".to_owned(),
            description: format!(
                "Runs Python in the work folder and returns the exit code and the output: print what you want to know. Give \
                 either `code` or the `path` of a file. Every call is a new process, so nothing but files is kept. There is no \
                 input and no terminal. It ends after {}. {}",
                settings.process.timeout,
                process::attachments::NOTE
            ),
            parameters: object(
                json!({
                    "code": {"type": "string", "minLength": 1, "maxLength": MAX_CODE_BYTES, "description": "The program"},
                    "path": {"type": "string", "minLength": 1, "description": "A file in place of `code`, relative to the work folder, such as scripts/check.py"},
                    "args": {"type": "array", "items": {"type": "string"}, "maxItems": MAX_ARGUMENTS, "description": "Arguments, sys.argv[1:]. Default none"},
                }),
                &[],
            ),
            effect: Effect::Writes,
            risk: Risk::High,
            timeout: settings.process.tool_timeout(),
        };
        Self { spec, settings: Arc::new(settings) }
    }
}

impl Tool for Python {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_untrusted(&self) -> bool {
        true
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let settings = self.settings.clone();
        Box::pin(async move {
            let wanted: PythonArguments = arguments(input)?;
            let program = program(wanted, &settings, &context).await?;
            process::run(program, &settings.process, &context).await
        })
    }
}

/// Code goes to standard input, so that its length is not limited by the kernel and other users of the machine do not see it.
async fn program(
    wanted: PythonArguments,
    settings: &Arc<PythonSettings>,
    context: &Arc<CallContext>,
) -> Result<Program, ToolError> {
    let (script, input) = match (wanted.code, wanted.path) {
        (Some(code), None) => ("-".to_owned(), Some(code.into_bytes())),
        (None, Some(path)) => {
            check_file(path.clone(), settings, context).await?;
            // A name that begins with a dash is not an option.
            (if path.starts_with('/') { path } else { format!("./{path}") }, None)
        }
        _ => return Err(ToolError::InvalidArguments("give either `code` or `path`".to_owned())),
    };
    // Unbuffered, so that what was printed before a time limit or a crash is there; no `__pycache__` in the work folder.
    let own = ["-u".to_owned(), "-B".to_owned(), script];
    let arguments: Vec<OsString> = own.into_iter().chain(wanted.args).map(OsString::from).collect();
    Ok(Program { path: settings.interpreter.clone(), arguments, input })
}

/// The same rules as those of `read_file`: inside the work folder, not hidden, not protected.
async fn check_file(
    path: String,
    settings: &Arc<PythonSettings>,
    context: &Arc<CallContext>,
) -> Result<(), ToolError> {
    let (settings, context) = (Arc::clone(settings), Arc::clone(context));
    offload(move |_| {
        WorkDir::of(&context, &settings.protected)?.file(&path)?;
        Ok(())
    })
    .await
}
