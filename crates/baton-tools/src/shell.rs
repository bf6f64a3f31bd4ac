//! `shell`: one command in the work folder, in a sandbox.

use std::sync::Arc;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, Tool, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::process::{self, ProcessSettings, Program};
use crate::schema::{arguments, object};

#[derive(Debug)]
pub struct Shell {
    spec: ToolSpec,
    settings: Arc<ProcessSettings>,
}

#[derive(Debug, Deserialize)]
struct ShellArguments {
    command: String,
}

impl Shell {
    pub fn new(settings: ProcessSettings) -> Self {
        let spec = ToolSpec {
            name: "shell".to_owned(),
            description: format!(
                "Runs a command with `sh -c` in the work folder and returns its exit code and output, stdout and stderr in \
                 the order they came. There is no input and no terminal. Commands end after {}, and everything they left \
                 in the background ends with them. {}",
                settings.timeout,
                process::attachments::NOTE
            ),
            parameters: object(
                json!({
                    "command": {"type": "string", "minLength": 1, "description": "The command, as for `sh -c`"},
                }),
                &["command"],
            ),
            effect: Effect::Writes,
            risk: Risk::High,
            timeout: settings.tool_timeout(),
        };
        Self { spec, settings: Arc::new(settings) }
    }
}

impl Tool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_untrusted(&self) -> bool {
        true
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let settings = self.settings.clone();
        Box::pin(async move {
            let ShellArguments { command } = arguments(input)?;
            let arguments = vec!["-c".into(), command.into()];
            let program = Program { path: "sh".to_owned(), arguments, input: None };
            process::run(program, &settings, &context).await
        })
    }
}
